//! Fetching a hint: cut, damaged, lied about, or from somewhere else. A scripted server counts what
//! it is asked for.
#![allow(missing_docs)]

use primer::hints::stored::StoredHint;
use primer::service::hex;
use primer::service::message::{
    Card, Greeting, Reception, Reply, Request, send_hint_chunk, send_hint_index, send_tokenizer,
};
use primer::source::Model;
use primer::{Client, ClientOptions, Event, Identity, Server, ServerOptions, ServiceError};
use primer_hint::published::{CHUNK_BYTES, Index};
use primer_net::tls::TlsServer;
use primer_testkit::hint::{hints, share_secret};
use primer_testkit::wait::eventually;
use primer_wire::{Channel, Options};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};

/// What a server of the embedded model offers, and its hint.
struct Offer {
    card: Card,
    tokenizer: Vec<u8>,
    index: Index,
    bytes: Vec<u8>,
}

static OFFER: LazyLock<Offer> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    assert!(share_secret(dir.path()));
    let honest = Server::bind(ServerOptions {
        listen: "127.0.0.1:0".into(),
        state: Some(dir.path().to_owned()),
        hints: Some(hints()),
        ..ServerOptions::default()
    });
    let card = honest.unwrap().card().clone();
    let file = hints().join(hex(&card.hint.name));
    let bytes = std::fs::read(file.with_extension("hint")).unwrap();
    let index = Index::of(&card.hint.name, &bytes);
    assert_eq!(index.identity(), card.hint);
    assert!(index.chunks() >= 4);
    Offer {
        card,
        tokenizer: Model::load(None).unwrap().tokenizer.encode(),
        index,
        bytes,
    }
});

/// What goes wrong on a server.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Every connection ends after this number of chunks.
    Cut(usize),
    /// This chunk is another one.
    Lie(usize),
    /// Nothing is sent before this number of clients are at the hint.
    Late(usize),
}

struct Publisher {
    address: String,
    identity: Identity,
    /// Chunks that were sent.
    sent: Arc<Mutex<Vec<usize>>>,
    /// Clients that fetch the hint, or wait for one that does.
    there: Arc<AtomicUsize>,
}

impl Publisher {
    fn start(fault: Fault) -> Self {
        let identity = Identity::self_signed(&["localhost".into()]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sent, there) = (Arc::default(), Arc::default());
        let (tls, log) = (TlsServer::new(&identity).unwrap(), Arc::clone(&sent));
        let come = Arc::clone(&there);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let options = Options::default();
                let channel = primer_net::tls_accept(socket.unwrap(), &tls, &options);
                let (log, come) = (Arc::clone(&log), Arc::clone(&come));
                std::thread::spawn(move || serve(&mut channel.unwrap(), fault, &log, &come));
            }
        });
        Self {
            address,
            identity,
            sent,
            there,
        }
    }

    fn sent(&self) -> Vec<usize> {
        self.sent.lock().unwrap().clone()
    }

    fn client(&self, state: &Path, copy: Option<&str>, attempts: u32) -> Client {
        let options = ClientOptions {
            state: Some(state.to_owned()),
            trust: Some(self.identity.fingerprint()),
            hint_url: copy.map(str::to_owned),
            attempts,
            ..ClientOptions::default()
        };
        Client::connect(&self.address, options).unwrap()
    }
}

fn serve(
    channel: &mut Channel,
    fault: Fault,
    sent: &Mutex<Vec<usize>>,
    there: &AtomicUsize,
) -> Result<(), ServiceError> {
    Greeting::receive(channel)?;
    Reception::Card(Box::new(OFFER.card.clone())).send(channel)?;
    let mut here = 0;
    loop {
        match Request::receive(channel)? {
            Request::Tokenizer => send_tokenizer(channel, &OFFER.tokenizer)?,
            Request::HintIndex => {
                Reply::Hint.send(channel)?;
                send_hint_index(channel, &OFFER.index)?;
            }
            Request::HintChunks { first, count } => {
                Reply::Hint.send(channel)?;
                if let Fault::Late(clients) = fault {
                    eventually("all are there", || there.load(SeqCst) == clients);
                }
                for chunk in first as usize..(first + count) as usize {
                    if fault == Fault::Cut(here) {
                        return Ok(());
                    }
                    let place = OFFER.index.place(chunk);
                    let range = place.start as usize..place.end as usize;
                    let mut bytes = OFFER.bytes[range].to_vec();
                    if fault == Fault::Lie(chunk) {
                        bytes[17] ^= 1;
                    }
                    send_hint_chunk(channel, &bytes)?;
                    channel.flush()?;
                    sent.lock().unwrap().push(chunk);
                    here += 1;
                }
            }
            _ => return Ok(()),
        }
    }
}

fn all() -> Vec<usize> {
    (0..OFFER.index.chunks()).collect()
}

/// Finds the only hint of a state directory, and its file.
fn kept(state: &Path) -> (StoredHint, PathBuf) {
    let dir = state.join("client/hints");
    let mut kept = StoredHint::all(&dir).unwrap();
    assert_eq!(kept.len(), 1);
    let kept = kept.remove(0);
    let file = dir.join(&kept.name).with_extension("hint");
    (kept, file)
}

fn check_whole(state: &Path) {
    let (kept, file) = kept(state);
    assert!(kept.complete);
    assert!(std::fs::read(file).unwrap() == OFFER.bytes);
}

#[test]
fn a_hint_is_fetched_once() {
    let (dir, server) = (tempfile::tempdir().unwrap(), Publisher::start(Fault::None));
    let mut client = server.client(dir.path(), None, 1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seeing = Arc::clone(&seen);
    client.observe(move |event| {
        if let Event::Hint { done, bytes } = event {
            seeing.lock().unwrap().push((done, bytes));
        }
    });
    for _ in 0..2 {
        assert_eq!(client.fetch_hint().unwrap(), OFFER.card.hint);
    }
    let mut another = server.client(dir.path(), None, 1);
    assert_eq!(another.fetch_hint().unwrap(), OFFER.card.hint);
    assert_eq!(server.sent(), all());
    let (seen, total) = (seen.lock().unwrap(), OFFER.bytes.len() as u64);
    assert_eq!(seen.first(), Some(&(0, total)));
    assert_eq!(seen.last(), Some(&(total, total)));
    assert!(seen.is_sorted() && seen.len() == all().len() + 1);
    check_whole(dir.path());
}

/// Goes on where it was: neither another attempt nor another program fetches a chunk again.
#[test]
fn a_fetch_that_is_cut_goes_on_where_it_was() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Publisher::start(Fault::Cut(1)),
    );
    let error = server.client(dir.path(), None, 2).fetch_hint().unwrap_err();
    assert!(error.is_broken_connection(), "{error}");
    let (partial, file) = kept(dir.path());
    assert!(!partial.complete && partial.there == 2 * CHUNK_BYTES as u64);
    // What was torn off within a chunk is not taken for one.
    let part = std::fs::File::options()
        .append(true)
        .open(file.with_extension("part"));
    part.unwrap().write_all(b"torn").unwrap();
    server.client(dir.path(), None, 9).fetch_hint().unwrap();
    assert_eq!(server.sent(), all());
    check_whole(dir.path());
}

#[test]
fn a_wrong_chunk_is_refused_and_what_was_right_stays() {
    let (dir, liar) = (
        tempfile::tempdir().unwrap(),
        Publisher::start(Fault::Lie(2)),
    );
    let error = liar.client(dir.path(), None, 3).fetch_hint().unwrap_err();
    assert!(matches!(error, ServiceError::Nonsense { .. }), "{error}");
    assert!(error.to_string().contains("chunk 2"), "{error}");
    let (partial, _) = kept(dir.path());
    assert!(!partial.complete && partial.there == 2 * CHUNK_BYTES as u64);
    let honest = Publisher::start(Fault::None);
    honest.client(dir.path(), None, 1).fetch_hint().unwrap();
    assert_eq!(honest.sent(), all()[2..]);
    check_whole(dir.path());
}

#[test]
fn what_rotted_on_the_disk_is_fetched_again() {
    let (dir, server) = (tempfile::tempdir().unwrap(), Publisher::start(Fault::None));
    server.client(dir.path(), None, 1).fetch_hint().unwrap();
    let (_, file) = kept(dir.path());
    let mut bytes = OFFER.bytes.clone();
    bytes[CHUNK_BYTES + 5] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    server.client(dir.path(), None, 1).fetch_hint().unwrap();
    assert_eq!(server.sent()[all().len()..], all()[1..]);
    check_whole(dir.path());
    // Without its hashes a hint is worth nothing; they come from the server.
    std::fs::write(file.with_extension("json"), "{}").unwrap();
    server.client(dir.path(), None, 1).fetch_hint().unwrap();
    assert_eq!(server.sent().len(), 2 * all().len() - 1);
    check_whole(dir.path());
}

#[test]
fn of_several_that_need_it_one_fetches_it() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Publisher::start(Fault::Late(3)),
    );
    let clients = [(); 3].map(|()| server.client(dir.path(), None, 1));
    std::thread::scope(|scope| {
        for mut client in clients {
            let (there, mut said) = (Arc::clone(&server.there), false);
            client.observe(move |event| {
                if matches!(event, Event::Hint { .. }) && !std::mem::replace(&mut said, true) {
                    there.fetch_add(1, SeqCst);
                }
            });
            scope.spawn(move || client.fetch_hint().unwrap());
        }
    });
    assert_eq!(server.sent(), all());
    check_whole(dir.path());
}

/// Starts a web server of one file; asked for anything else, it sends one there. Tells its address
/// and how many bytes it sent.
fn web(file: Vec<u8>, ranges: bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let answer = move |mut socket: TcpStream| -> std::io::Result<()> {
        let lines = BufReader::new(socket.try_clone()?).lines();
        let lines: Vec<String> = lines
            .map_while(Result::ok)
            .take_while(|l| !l.is_empty())
            .collect();
        if !lines[0].starts_with("GET /real ") {
            return write!(socket, "HTTP/1.1 302 Found\r\nLocation: real\r\n\r\n");
        }
        let from = lines
            .iter()
            .find_map(|line| line.strip_prefix("Range: bytes="));
        let from: usize = from.unwrap().trim_end_matches('-').parse().unwrap();
        let body = match ranges {
            true => {
                let (end, all) = (file.len() - 1, file.len());
                let range = format!("Content-Range: bytes {from}-{end}/{all}");
                write!(socket, "HTTP/1.1 206 Partial Content\r\n{range}\r\n\r\n")?;
                &file[from..]
            }
            false => {
                write!(socket, "HTTP/1.1 200 OK\r\n\r\n")?;
                &file[..]
            }
        };
        counted.fetch_add(body.len(), SeqCst);
        socket.write_all(body)
    };
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let _ = answer(socket.unwrap());
        }
    });
    (format!("{address}/elsewhere"), sent)
}

/// Tells why a copy was not taken, if it was not.
fn fetch_copy(server: &Publisher, state: &Path, copy: &str) -> Option<String> {
    let mut client = server.client(state, Some(copy), 1);
    let why = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&why);
    client.observe(move |event| {
        if let Event::NoCopy { error } = event {
            *heard.lock().unwrap() = Some(error.to_string());
        }
    });
    client.fetch_hint().unwrap();
    check_whole(state);
    let why = why.lock().unwrap();
    why.clone()
}

#[test]
fn a_copy_elsewhere_is_as_good() {
    let server = Publisher::start(Fault::None);
    for ranges in [true, false] {
        let (dir, (url, sent)) = (
            tempfile::tempdir().unwrap(),
            web(OFFER.bytes.clone(), ranges),
        );
        assert_eq!(fetch_copy(&server, dir.path(), &url), None);
        assert_eq!(sent.load(SeqCst), OFFER.bytes.len());
        // Two chunks are there, the rest is fetched.
        let (_, file) = kept(dir.path());
        let part = file.with_extension("part");
        std::fs::rename(&file, &part).unwrap();
        let cut = std::fs::File::options().write(true).open(&part).unwrap();
        cut.set_len(2 * CHUNK_BYTES as u64).unwrap();
        assert_eq!(fetch_copy(&server, dir.path(), &url), None);
        let rest = OFFER.bytes.len() - if ranges { 2 * CHUNK_BYTES } else { 0 };
        assert_eq!(sent.load(SeqCst), OFFER.bytes.len() + rest);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("copy");
    std::fs::write(&file, &OFFER.bytes).unwrap();
    let file = file.display().to_string();
    assert_eq!(fetch_copy(&server, &dir.path().join("a"), &file), None);
    let file = format!("file://{file}");
    assert_eq!(fetch_copy(&server, &dir.path().join("b"), &file), None);
    assert!(server.sent().is_empty());
}

#[test]
fn where_a_copy_is_wrong_the_server_is_asked() {
    let server = Publisher::start(Fault::None);
    let mut lie = OFFER.bytes.clone();
    lie[2 * CHUNK_BYTES] ^= 1;
    let short = OFFER.bytes[..3 * CHUNK_BYTES / 2].to_vec();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (url, from) in [
        (web(lie, true).0, 2),
        (web(short, true).0, 1),
        (format!("http://{closed}/x"), 0),
        ("https://[::1]:0/x".to_owned(), 0),
        ("/there/is/no/file".to_owned(), 0),
        ("http://no address/".to_owned(), 0),
    ] {
        let (dir, before) = (tempfile::tempdir().unwrap(), server.sent().len());
        let why = fetch_copy(&server, dir.path(), &url).expect("it was not taken");
        assert!(why.contains(&url), "{why}");
        assert_eq!(server.sent()[before..], all()[from..], "{why}");
    }
}
