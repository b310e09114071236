//! Peers that do not play along: silent, slow, lying, and disks that are full. Near, and with 100
//! ms between.

use crate::far::Link;
use crate::process::{Server, TEXTS, client, eventually, fails, json, stderr};
use primer::service::BundleId;
use primer::service::message::{Greeting, Reception, Refusal, Reply, Request};
use primer::service::{ServiceError, VERSION};
use primer_net::tls::{TlsClient, Trust};
use primer_wire::kind::{service, trial};
use primer_wire::{Channel, Options};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A connection that speaks TLS and then whatever the test wants.
fn channel(server: &Server) -> Channel {
    let socket = TcpStream::connect(&server.address).unwrap();
    let pin = server.fingerprint.parse().unwrap();
    let tls = TlsClient::new(Trust::Pinned(pin)).unwrap();
    let options = Options {
        timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    };
    primer_net::tls_connect(socket, &tls, &options).unwrap()
}

/// A connection that has said its greeting, and what the server said to it.
pub(crate) fn greet(
    server: &Server,
    version: u16,
    pseudonym: u8,
) -> (Channel, Result<(), ServiceError>) {
    let mut channel = channel(server);
    let greeting = Greeting {
        version,
        pseudonym: [pseudonym; 32],
        token: None,
    };
    greeting.send(&mut channel).unwrap();
    let card = Reception::receive(&mut channel).map(|_| ());
    (channel, card)
}

fn refusal(channel: &mut Channel, request: Request) -> Refusal {
    request.send(channel).unwrap();
    match Reply::receive(channel) {
        Err(ServiceError::Refused(refusal)) => refusal,
        Err(error) => panic!("{error}"),
        Ok(reply) => panic!("{reply:?}"),
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name() {
    requests_that_make_no_sense(Link::Near);
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name_from_far() {
    requests_that_make_no_sense(Link::Far);
}

fn requests_that_make_no_sense(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let (server, _) = link.start(&dir.path().join("server"), &["--max-tokens", "32"]);
    let (_, card) = greet(&server, VERSION + 1, 1);
    assert!(matches!(card, Err(ServiceError::Refused(Refusal::Version(v))) if v == VERSION));
    let (mut channel, card) = greet(&server, VERSION, 1);
    card.unwrap();
    let id = BundleId::from_bytes([7; 16]);
    let infer = |fingerprint| Request::Infer { id, fingerprint };
    assert_eq!(refusal(&mut channel, infer([0; 32])), Refusal::Unknown(id));
    for tokens in [0, 9, 33, u32::MAX] {
        let asked = refusal(
            &mut channel,
            Request::Prepare {
                id,
                tokens,
                bundles: 1,
                session: Some([1; 32]),
            },
        );
        assert_eq!(
            asked,
            Refusal::Tokens {
                asked: tokens,
                limit: 32
            }
        );
    }
    for (first, count) in [
        (0, 0),
        (0, 65),
        (4, 1),
        (3, 2),
        (u32::MAX, 1),
        (1, u32::MAX),
    ] {
        let asked = refusal(&mut channel, Request::HintChunks { first, count });
        assert_eq!(asked, Refusal::Hint, "{first} {count}");
    }
    Request::Forget(id).send(&mut channel).unwrap();
    assert_eq!(Reply::receive(&mut channel).unwrap(), Reply::Done);
    Request::List.send(&mut channel).unwrap();
    assert_eq!(
        Reply::receive(&mut channel).unwrap(),
        Reply::Listing(Vec::new())
    );
    // Garbage ends the connection and nothing else.
    for (kind, bytes) in [
        (service::REQUEST, vec![0xff; 64]),
        (service::REQUEST, vec![0; 4096]),
        (trial::FIRST, vec![1]),
    ] {
        let (mut channel, card) = greet(&server, VERSION, 2);
        card.unwrap();
        channel.send(kind, &bytes).unwrap();
        channel.flush().unwrap();
        assert!(Reply::receive(&mut channel).is_err());
    }
    assert!(server.log().contains("failed"));
    // Nor is there a session that a first preparation could go on in.
    let (mut channel, card) = greet(&server, VERSION, 2);
    card.unwrap();
    let request = Request::Prepare {
        id,
        tokens: 8,
        bundles: 1,
        session: None,
    };
    request.send(&mut channel).unwrap();
    assert!(Reply::receive(&mut channel).is_err());
    eventually("the log", || {
        server.log().contains("a session that there is not")
    });
    let found = json(client("classify", &server, &dir.path().join("client")).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
}

#[test]
fn a_bundle_serves_its_client_and_its_plan_only() {
    a_bundle_of_another(Link::Near);
}

#[test]
fn a_bundle_serves_its_client_and_its_plan_only_from_far() {
    a_bundle_of_another(Link::Far);
}

fn a_bundle_of_another(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let (server, _) = link.start(&server_state, &[]);
    let address = server.address.clone();
    let made = json(client("prepare", &server, &state).args(["--tokens", "16"]));
    let id: BundleId = made["ids"][0].as_str().unwrap().parse().unwrap();
    // Another client does not even learn that it exists.
    let (mut channel, card) = greet(&server, VERSION, 9);
    card.unwrap();
    let fingerprint = [3; 32];
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::Unknown(id));
    // The owner with another plan.
    let pseudonym = pseudonym_of(&state, &address);
    let mut channel = welcomed(&server, pseudonym);
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::OtherProgram(id));
    let tokens = 16;
    let asked = refusal(
        &mut channel,
        Request::Prepare {
            id,
            tokens,
            bundles: 1,
            session: Some([1; 32]),
        },
    );
    assert_eq!(asked, Refusal::Taken(id));
    drop(channel);
    // Nothing was spent by all that.
    let found = json(client("classify", &server, &state).arg(TEXTS[1].0));
    assert_eq!(
        (&found["label"], &found["prepared_ahead"]),
        (&TEXTS[1].1.into(), &true.into())
    );
    let mut channel = welcomed(&server, pseudonym);
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::Spent(id));
}

fn pseudonym_of(state: &Path, address: &str) -> [u8; 32] {
    let name = address.replace(':', "_");
    let bytes = std::fs::read(state.join("client/pseudonyms").join(name)).unwrap();
    bytes.try_into().unwrap()
}

fn welcomed(server: &Server, pseudonym: [u8; 32]) -> Channel {
    let mut channel = channel(server);
    let greeting = Greeting {
        version: VERSION,
        pseudonym,
        token: None,
    };
    greeting.send(&mut channel).unwrap();
    Reception::receive(&mut channel).unwrap();
    channel
}

#[test]
fn a_thousand_silent_connections_do_not_keep_others_out() {
    a_thousand_silent_connections(Link::Near);
}

#[test]
fn a_thousand_silent_connections_do_not_keep_others_out_from_far() {
    a_thousand_silent_connections(Link::Far);
}

fn a_thousand_silent_connections(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let (server, direct) = link.start(&dir.path().join("server"), &["--metrics", "127.0.0.1:0"]);
    let found = json(client("classify", &server, &dir.path().join("client")).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    let before = server.peak_memory();
    let silent: Vec<TcpStream> = (0..1000)
        .map(|_| TcpStream::connect(&direct).unwrap())
        .collect();
    eventually("the thousandth connection", || {
        server.metric("primer_connections_total") >= 1001.0
    });
    let found = json(client("classify", &server, &dir.path().join("client")).arg(TEXTS[1].0));
    assert_eq!(found["label"], TEXTS[1].1);
    let grown = server.peak_memory() - before;
    println!("1,000 silent connections: {} kB more", grown / 1000);
    assert!(grown < 64 << 20, "{grown} bytes");
    drop(silent);
}

/// The client's handshake takes longer than it takes the flood to fill all places for arrivals.
#[test]
fn a_flood_of_silent_connections_does_not_keep_out_who_is_far_away() {
    let dir = tempfile::tempdir().unwrap();
    let (server, direct) = Link::Far.start(&dir.path().join("server"), &[]);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let flood = std::thread::spawn(move || {
        let mut silent = std::collections::VecDeque::new();
        let mut count = 0;
        // 600 a second, for as long as it takes and a minute at most.
        while count < 36_000 && stopped.try_recv().is_err() {
            silent.extend(TcpStream::connect(&direct));
            if silent.len() > 256 {
                silent.pop_front();
            }
            count += 1;
            std::thread::sleep(Duration::from_micros(1600));
        }
        count
    });
    std::thread::sleep(Duration::from_millis(300));
    for (text, label) in &TEXTS[..2] {
        let mut asking = client("classify", &server, &dir.path().join("client"));
        let found = json(asking.args(["--attempts", "1", "--wait", "0", text]));
        assert_eq!(found["label"], *label);
    }
    stop.send(()).unwrap();
    let count = flood.join().unwrap();
    println!("{count} silent connections");
    assert!(server.log().contains("Evicted"), "the flood was felt");
}

#[test]
fn sessions_that_only_ask_for_lists_do_not_hold_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _) = Link::Far.start(&dir.path().join("server"), &["--max-sessions", "2"]);
    let idlers: Vec<_> = (1..=2)
        .map(|number| {
            let (mut channel, card) = greet(&server, VERSION, number);
            card.unwrap();
            std::thread::spawn(move || {
                let started = Instant::now();
                while Request::List.send(&mut channel).is_ok()
                    && Reply::receive(&mut channel).is_ok()
                    && started.elapsed() < Duration::from_secs(60)
                {
                    std::thread::sleep(Duration::from_millis(200));
                }
                started.elapsed()
            })
        })
        .collect();
    let state = dir.path().join("client");
    let asking = || client("classify", &server, &state);
    let mut hasty = asking();
    fails(
        hasty.args(["--wait", "0", "x"]),
        1,
        &["all 2 places are taken"],
    );
    // By default it comes again, and one of the others has rested long enough by then.
    let found = json(asking().arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    assert!(server.log().contains("Displaced"), "{}", server.log());
    drop(server);
    let stayed: Vec<Duration> = idlers.into_iter().map(|i| i.join().unwrap()).collect();
    assert!(stayed.iter().all(|time| *time < Duration::from_secs(59)));
}

/// A server is stopped while a client prepares far more bundles than it can by then.
#[test]
fn a_client_in_the_middle_of_its_bundles_notices_that_the_server_stops() {
    std::thread::scope(|scope| {
        for signal in ["TERM", "STOP"] {
            scope.spawn(move || in_the_middle_of_its_bundles(signal));
        }
    });
}

fn in_the_middle_of_its_bundles(signal: &str) {
    let dir = tempfile::tempdir().unwrap();
    let drain = ["--drain-timeout", "2"];
    let server = Server::start(&dir.path().join("server"), &drain);
    let mut prepare = client("prepare", &server, &dir.path().join("client"));
    prepare.args(["--count", "500", "--tokens", "64", "--attempts", "1"]);
    prepare.args(["--timeout", "5"]);
    let asking = prepare
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("a session", || server.log().contains("session begins"));
    server.signal(signal);
    let started = Instant::now();
    let output = asking.wait_with_output().unwrap();
    let took = started.elapsed();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(took < Duration::from_secs(15), "{took:?} after {signal}");
}

/// A server that listens and says nothing yet, as while it calibrates, then one that is not there,
/// then one that answers.
#[test]
fn a_server_that_starts_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let mut first = Server::start(&state, &[]);
    let address = first.address.clone();
    let mut asking = client("classify", &first, &dir.path().join("client"));
    first.kill();
    let silent = std::net::TcpListener::bind(&address).unwrap();
    asking.args(["--wait", "60", "--timeout", "20", "--json", TEXTS[2].0]);
    let asking = asking
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It knocks and is not answered.
    let knocked = silent.accept().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop((silent, knocked));
    std::thread::sleep(Duration::from_millis(700));
    let _server = Server::start_on(&address, &state, &[]);
    let output = asking.wait_with_output().unwrap();
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("trying again in"), "{message}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["label"], TEXTS[2].1);
}

#[test]
fn slow_peers_are_cut() {
    slow_peers(Link::Near);
}

#[test]
fn slow_peers_are_cut_from_far() {
    slow_peers(Link::Far);
}

fn slow_peers(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let limits = [
        "--handshake-timeout",
        "2",
        "--idle-timeout",
        "3",
        "--session-timeout",
        "6",
    ];
    let (server, _) = link.start(&dir.path().join("server"), &limits);
    // All at once: what takes time here is waiting.
    std::thread::scope(|scope| {
        scope.spawn(|| never_silent_never_done(&server));
        scope.spawn(|| welcomed_then_silent(&server));
        scope.spawn(|| always_asking_for_lists(&server));
    });
    let cut = || server.log().matches("Late").count();
    eventually("a word about each of them in the log", || cut() >= 3);
    assert_eq!(cut(), 3, "{}", server.log());
}

/// One byte of a TLS record now and then.
fn never_silent_never_done(server: &Server) {
    let mut loris = TcpStream::connect(&server.address).unwrap();
    let started = Instant::now();
    loris.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    while loris.write_all(&[1]).is_ok() && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(10),
        "{took:?}"
    );
    assert!(matches!(loris.read(&mut [0; 1]), Ok(0) | Err(_)));
}

fn welcomed_then_silent(server: &Server) {
    let (mut channel, card) = greet(server, VERSION, 1);
    card.unwrap();
    let started = Instant::now();
    assert!(Reply::receive(&mut channel).is_err());
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// That is no work.
fn always_asking_for_lists(server: &Server) {
    let (mut channel, card) = greet(server, VERSION, 1);
    card.unwrap();
    let started = Instant::now();
    while Request::List.send(&mut channel).is_ok() && Reply::receive(&mut channel).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(20), "never cut");
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = started.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
}

/// A command under a limit of the size of files: writing beyond it fails as on a full disk.
fn limited(blocks: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_primer")])
        .args(args);
    command
}

/// Files in a store's directory of bundles.
fn bundles(state: &Path, role: &str) -> usize {
    let dir = state.join(role).join("store/bundles");
    std::fs::read_dir(dir).unwrap().count()
}

/// The client's disk takes all of a bundle but its last bytes. By then the server has its half,
/// which nobody could ever use.
#[test]
fn a_disk_that_fills_at_the_last_byte_leaves_nothing_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    let made = json(client("prepare", &server, &state).args(["--tokens", "8"]));
    let id = made["ids"][0].as_str().unwrap();
    let kept = std::fs::read_dir(state.join("client/store/bundles")).unwrap();
    let sizes: Vec<u64> = kept
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    let blocks = u32::try_from((sizes[0] - 1) / 512).unwrap();
    let path = state.to_str().unwrap();
    let server_of_it = ["--server", &server.address, "--state", path];
    let args = [
        &["prepare", "--tokens", "8", "--count", "2"][..],
        &server_of_it,
    ]
    .concat();
    fails(
        &mut limited(blocks, &args),
        1,
        &["bundles", "File too large"],
    );
    assert!(
        server.log().contains("bundles=2"),
        "it had prepared them: {}",
        server.log()
    );
    let left = (bundles(&state, "client"), bundles(&server_state, "server"));
    assert_eq!(left, (1, 1));
    // What was there before is as good as ever.
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(
        (&found["label"], &found["prepared_ahead"]),
        (&TEXTS[0].1.into(), &true.into())
    );
    assert!(server.log().contains(id));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    // The stores are made before the limit is felt.
    json(client("prepare", &server, &state).args(["--tokens", "8"]));
    let whole = |state: &Path, role: &str| {
        let dir = state.join(role).join("store/bundles");
        let file = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap();
        file.metadata().unwrap().len()
    };
    let (client_half, server_half) = (whole(&state, "client"), whole(&server_state, "server"));
    assert_eq!(
        (bundles(&state, "client"), bundles(&server_state, "server")),
        (1, 1)
    );
    let path = state.to_str().unwrap();
    let args = [
        "prepare",
        "--server",
        &server.address,
        "--tokens",
        "16",
        "--state",
        path,
    ];
    // Room for the index and half a bundle of 16 tokens.
    let blocks = u32::try_from(client_half / 512).unwrap();
    fails(
        &mut limited(blocks, &args),
        1,
        &["bundles", "File too large"],
    );
    eventually("the server's draft to go", || {
        bundles(&server_state, "server") == 1
    });
    assert_eq!(bundles(&state, "client"), 1);
    drop(server);
    // The server's disk is full: the client hears of it, and the server goes on.
    let path = server_state.to_str().unwrap();
    let args = [
        "serve",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--state",
        path,
    ];
    // Room for the index and for the server's half of 8 tokens, not for that of 16.
    let blocks = u32::try_from(server_half * 3 / 2 / 512).unwrap();
    let server = Server::spawn(limited(blocks, &args), &server_state);
    let mut prepare = client("prepare", &server, &state);
    fails(
        prepare.args(["--tokens", "16"]),
        1,
        &["the server refused: its store is full"],
    );
    let found = json(client("classify", &server, &state).arg("good"));
    assert_eq!(found["label"], "positive");
    assert_eq!(
        bundles(&state, "client"),
        1,
        "the one for the other address"
    );
}
