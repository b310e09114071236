//! Both parties played once from fixed seeds, with a record of what each said.

mod lean;
mod paper;

use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_paper::Scheme;
use primer_paper_plan::Form;
use primer_plan::design::{Design, LookedUp};
use primer_text::Input;
use primer_wire::Channel;
use std::error::Error;
use std::io::{self, Cursor, PipeWriter, Write, pipe, sink};
use std::sync::{Arc, Mutex};

const TOKENS: usize = 2;

/// What a party comes to.
pub type Result = std::result::Result<(), Box<dyn Error + Send + Sync>>;

/// Both parties of a small model by one protocol, with fixed seeds.
pub trait Case: Send + Sync {
    /// Opens a session, as a client.
    fn open(&self, channel: &mut Channel) -> Result;

    /// Accepts one, as a server.
    fn accept(&self, channel: &mut Channel) -> Result;

    /// Plays the client until it fails or has its answer; `prepared` is called between the phases,
    /// with the bundle.
    fn client(&self, channel: &mut Channel, prepared: &mut dyn FnMut(&[u8])) -> Result;

    /// Plays the server likewise.
    fn server(&self, channel: &mut Channel, prepared: &mut dyn FnMut(&[u8])) -> Result;

    /// Plays the client's online phase.
    fn client_online(&self, channel: &mut Channel, bundle: &[u8]) -> Result;

    /// Plays the server's online phase.
    fn server_online(&self, channel: &mut Channel, bundle: &[u8]) -> Result;
}

/// Makes a case for each design of a plan, with a small prepared model that is among the seeds:
/// the paper's, with queries and keys apart and merged, and the product's.
fn cases() -> [Box<dyn Case>; 3] {
    let separate = include_bytes!("../corpus/prepared/classify");
    let separate = seed(Form::Separate.design(), separate);
    let merged = seed(
        Form::Merged.design(),
        include_bytes!("../corpus/prepared/span"),
    );
    let looked_up = seed(&LookedUp, include_bytes!("../corpus/prepared/tokens"));
    [
        Box::new(paper::Case::new(separate, Scheme::Fp, Reveal::Label)),
        Box::new(paper::Case::new(merged, Scheme::Fpc, Reveal::Outputs)),
        Box::new(lean::Case::new(looked_up, Reveal::Outputs)),
    ]
}

/// Makes a text of padding alone.
fn input() -> Input {
    Input {
        ids: vec![0; TOKENS],
        types: vec![0; TOKENS],
        length: TOKENS,
        removed: 0,
        second: vec![None; TOKENS],
    }
}

/// One inference up to the answer, kept from the online phase on.
pub struct Session {
    case: Box<dyn Case>,
    pub from_client: Said,
    pub from_server: Said,
    pub client_bundle: Vec<u8>,
    pub server_bundle: Vec<u8>,
}

/// What one party said online.
pub struct Said {
    pub bytes: Vec<u8>,
    /// Where frames begin.
    pub frames: Vec<usize>,
}

impl Said {
    /// Takes what follows the offline phase in everything that was said.
    fn after(offline: usize, said: &Mutex<Vec<u8>>) -> Self {
        let bytes = said.lock().unwrap().split_off(offline);
        let frames = crate::frames(&bytes);
        Self { bytes, frames }
    }
}

/// Records what goes through.
struct Tap(PipeWriter, Arc<Mutex<Vec<u8>>>);

impl Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.lock().unwrap().extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Everything that went through a [`Tap`].
type Log = Arc<Mutex<Vec<u8>>>;

/// Makes a line between a client and a server: the client's end and what it says, then the
/// server's.
fn line() -> ((Channel, Log), (Channel, Log)) {
    let (at_server, to_server) = pipe().expect("a pipe");
    let (at_client, to_client) = pipe().expect("a pipe");
    let (up, down) = (Log::default(), Log::default());
    let client = Channel::over(Tap(to_server, Arc::clone(&up)), at_client);
    let server = Channel::over(Tap(to_client, Arc::clone(&down)), at_server);
    ((client, up), (server, down))
}

/// Runs two parties that talk to each other; returns each one's result, and what it said.
pub fn recorded<A, B: Send>(
    client: impl FnOnce(&mut Channel) -> A,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, Vec<u8>), (B, Vec<u8>)) {
    let ((mut near, up), (mut far, down)) = line();
    let (a, b) = std::thread::scope(|scope| {
        let server = scope.spawn(move || server(&mut far));
        let a = client(&mut near);
        drop(near);
        (a, server.join().expect("an honest party"))
    });
    let taken = |log: Log| std::mem::take(&mut *log.lock().expect("no panic"));
    ((a, taken(up)), (b, taken(down)))
}

/// The first message of each party, of a session that goes no further.
pub struct Greeting {
    pub case: Box<dyn Case>,
    pub hello: Vec<u8>,
    pub welcome: Vec<u8>,
}

impl Greeting {
    /// Makes one for each form of a plan.
    pub fn each() -> [Self; 3] {
        cases().map(Self::record)
    }

    fn record(case: Box<dyn Case>) -> Self {
        let said = |heard: Vec<u8>, play: &dyn Fn(&mut Channel)| {
            let heard_from_us = Arc::new(Mutex::new(Vec::new()));
            let mut channel = Channel::over(Kept(Arc::clone(&heard_from_us)), Cursor::new(heard));
            play(&mut channel);
            let _ = channel.flush();
            drop(channel);
            std::mem::take(&mut *heard_from_us.lock().unwrap())
        };
        let hello = said(Vec::new(), &|channel| {
            drop(case.open(channel));
        });
        let welcome = said(hello.clone(), &|channel| {
            drop(case.accept(channel));
        });
        assert!(hello.len() > 8 && welcome.len() > hello.len());
        Self {
            case,
            hello,
            welcome,
        }
    }
}

/// Reads a small prepared model of the corpus, which is kept without its checksum.
fn seed(design: &'static dyn Design, prepared: &[u8]) -> IntModel {
    let mut bytes = prepared.to_vec();
    bytes.extend_from_slice(blake3::hash(prepared).as_bytes());
    IntModel::from_bytes_by(design, &bytes).expect("the seed is a model")
}

/// Keeps what is written.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a channel whose peer says these bytes and then nothing.
pub fn peer_says(bytes: Vec<u8>) -> Channel {
    Channel::over(sink(), Cursor::new(bytes))
}

impl Session {
    /// Plays a session of each form of a plan.
    pub fn each() -> [Self; 3] {
        cases().map(Self::record)
    }

    /// Plays a session, and checks that what was said online can be played back: a target whose
    /// true session fails would find nothing.
    fn record(case: Box<dyn Case>) -> Self {
        let ((mut near, up), (mut far, down)) = line();
        let length = |log: &Log| log.lock().unwrap().len();
        let (mut client_side, mut server_side) = ((0, Vec::new()), (0, Vec::new()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                case.server(&mut far, &mut |bundle| {
                    server_side = (length(&down), bundle.to_vec());
                })
                .expect("an honest session");
            });
            case.client(&mut near, &mut |bundle| {
                client_side = (length(&up), bundle.to_vec());
            })
            .expect("an honest session");
        });
        let session = Self {
            case,
            from_client: Said::after(client_side.0, &up),
            from_server: Said::after(server_side.0, &down),
            client_bundle: client_side.1,
            server_bundle: server_side.1,
        };
        session
            .play_server(&session.from_client.bytes, &session.server_bundle)
            .expect("the server's part plays back");
        session
            .play_client(&session.from_server.bytes, &session.client_bundle)
            .expect("the client's part plays back");
        session
    }

    /// Plays a client that has a bundle and is told these bytes.
    pub fn play_client(&self, told: &[u8], bundle: &[u8]) -> Result {
        self.case
            .client_online(&mut peer_says(told.to_vec()), bundle)
    }

    /// Plays a server likewise.
    pub fn play_server(&self, told: &[u8], bundle: &[u8]) -> Result {
        self.case
            .server_online(&mut peer_says(told.to_vec()), bundle)
    }
}
