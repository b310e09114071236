//! Both parties played once from fixed seeds, with a record of what each said.

use primer_hint::multipliers::Multipliers;
use primer_hint::published::Published;
use primer_hint::server::HintSecret;
use primer_model::quantise::IntModel;
use primer_text::Input;
use primer_net::Channel;
use primer_protocol::client;
use primer_protocol::hints::Build;
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, Result, Reveal, Scheme};
use primer_ring::prg::Prg;
use std::io::{self, Cursor, PipeWriter, Write, pipe, sink};
use std::sync::{Arc, Mutex};

const TOKENS: usize = 2;

/// A scheme for each form of a plan, with a small prepared model that is among the seeds: queries
/// and keys apart, merged, and apart with functions looked up.
const CASES: [(Scheme, Reveal, &[u8]); 3] = [
    (
        Scheme::Fp,
        Reveal::Label,
        include_bytes!("../corpus/prepared/classify"),
    ),
    (
        Scheme::Fpc,
        Reveal::Outputs,
        include_bytes!("../corpus/prepared/span"),
    ),
    (
        Scheme::Lean,
        Reveal::Outputs,
        include_bytes!("../corpus/prepared/tokens"),
    ),
];

/// A hint, and what the server multiplies with.
type Hinted = (Arc<Published>, Arc<Multipliers>);

/// Makes the program of a model, bound to its hint if the scheme needs one.
fn program(model: &IntModel, scheme: Scheme, reveal: Reveal) -> (Program, Option<Hinted>) {
    let plan = model.plan(TOKENS).expect("the seed has a plan");
    let program = Program::received(plan, scheme, reveal).expect("a small plan");
    let hinted = scheme.needs_hint().then(|| {
        let secret = HintSecret::new([6; 32]);
        let build = Build::new(model, &secret).expect("the seed has weights");
        let (hint, multipliers) = build.in_memory(|_, _| ()).expect("they may have a hint");
        (Arc::new(hint), Arc::new(multipliers))
    });
    let identity = hinted.as_ref().map(|(hint, _)| *hint.identity());
    let program = program.with_hint(identity.as_ref());
    (program.expect("the hint is the model's"), hinted)
}

/// One inference up to the answer, kept from the online phase on.
pub struct Session {
    pub model: ServerModel,
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
    pub program: Program,
    pub hint: Option<Arc<Published>>,
    pub hello: Vec<u8>,
    pub welcome: Vec<u8>,
}

impl Greeting {
    /// Records one greeting for each form of a plan.
    pub fn each() -> [Self; 3] {
        CASES.map(|(scheme, reveal, prepared)| Self::record(scheme, reveal, prepared))
    }

    fn record(scheme: Scheme, reveal: Reveal, prepared: &[u8]) -> Self {
        let (program, hinted) = program(&seed(prepared), scheme, reveal);
        let hint = hinted.map(|(hint, _)| hint);
        let said = |heard: Vec<u8>, play: &dyn Fn(&mut Channel)| {
            let heard_from_us = Arc::new(Mutex::new(Vec::new()));
            let mut channel = Channel::over(Kept(Arc::clone(&heard_from_us)), Cursor::new(heard));
            play(&mut channel);
            let _ = channel.flush();
            drop(channel);
            std::mem::take(&mut *heard_from_us.lock().unwrap())
        };
        let hello = said(Vec::new(), &|channel| {
            drop(ClientSession::open(
                channel,
                scheme,
                TOKENS,
                hint.clone(),
                Prg::new(&[1; 16]),
            ));
        });
        let welcome = said(hello.clone(), &|channel| {
            let offer = |_, _| Ok(program.clone());
            drop(ServerSession::accept(channel, offer, Prg::new(&[2; 16])));
        });
        assert!(hello.len() > 8 && welcome.len() > hello.len());
        Self {
            program,
            hint,
            hello,
            welcome,
        }
    }
}

/// Reads a small prepared model of the corpus, which is kept without its checksum.
fn seed(prepared: &[u8]) -> IntModel {
    let mut bytes = prepared.to_vec();
    bytes.extend_from_slice(blake3::hash(prepared).as_bytes());
    IntModel::from_bytes(&bytes).expect("the seed is a model")
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

/// Runs the client until it fails or has its answer; `prepared` is called between the phases, with
/// the bundle.
fn client(
    channel: &mut Channel,
    scheme: Scheme,
    hint: Option<Arc<Published>>,
    prepared: impl FnOnce(&[u8]),
) -> Result<()> {
    let mut session = ClientSession::open(channel, scheme, TOKENS, hint, Prg::new(&[1; 16]))?;
    let mut bundle = Vec::new();
    session.prepare(channel, &mut bundle)?;
    channel.flush()?;
    prepared(&bundle);
    let program = session.program().clone();
    client_online(channel, &program, bundle)
}

/// Runs the client's online phase.
fn client_online(channel: &mut Channel, program: &Program, bundle: Vec<u8>) -> Result<()> {
    let input = Input {
        ids: vec![0; TOKENS],
        types: vec![0; TOKENS],
        length: TOKENS,
        removed: 0,
        second: vec![None; TOKENS],
    };
    client::infer(
        channel,
        program,
        client::Bundle::new(Cursor::new(bundle)),
        &input,
    )
    .map(drop)
}

/// Runs the server until it fails or has answered, likewise.
fn server(channel: &mut Channel, model: &ServerModel, prepared: impl FnOnce(&[u8])) -> Result<()> {
    let offer = |scheme, tokens| {
        let ours = model.program();
        match (scheme, tokens) == (ours.scheme(), TOKENS) {
            true => Ok(ours.clone()),
            false => Err("something else is on offer".to_owned()),
        }
    };
    let mut session = ServerSession::accept(channel, offer, Prg::new(&[2; 16]))?;
    let mut bundle = Vec::new();
    session.prepare(channel, model, &mut bundle)?;
    prepared(&bundle);
    server_online(channel, model, bundle)
}

/// Runs the server's online phase.
fn server_online(channel: &mut Channel, model: &ServerModel, bundle: Vec<u8>) -> Result<()> {
    server::infer(channel, model, server::Bundle::new(Cursor::new(bundle))).map(drop)
}

impl Session {
    /// Records a session of each form of a plan.
    pub fn each() -> [Self; 3] {
        CASES.map(|(scheme, reveal, prepared)| Self::record(scheme, reveal, prepared))
    }

    /// Plays a session, and checks that what was said online can be played back: a target whose
    /// true session fails would find nothing.
    fn record(scheme: Scheme, reveal: Reveal, prepared: &[u8]) -> Self {
        let model = Arc::new(seed(prepared));
        let (program, hinted) = program(&model, scheme, reveal);
        let (hint, multipliers) = hinted.unzip();
        let model = ServerModel::new(model, &program, multipliers).expect("the plan's own model");

        let ((mut near, up), (mut far, down)) = line();
        let length = |log: &Log| log.lock().unwrap().len();
        let (mut client_side, mut server_side) = ((0, Vec::new()), (0, Vec::new()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server(&mut far, &model, |bundle| {
                    server_side = (length(&down), bundle.to_vec());
                })
                .expect("an honest session");
            });
            client(&mut near, scheme, hint, |bundle| {
                client_side = (length(&up), bundle.to_vec());
            })
            .expect("an honest session");
        });
        let session = Self {
            model,
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
    pub fn play_client(&self, told: &[u8], bundle: &[u8]) -> Result<()> {
        let mut channel = peer_says(told.to_vec());
        client_online(&mut channel, self.model.program(), bundle.to_vec())
    }

    /// Plays a server that has a bundle and is told these bytes.
    pub fn play_server(&self, told: &[u8], bundle: &[u8]) -> Result<()> {
        let mut channel = peer_says(told.to_vec());
        server_online(&mut channel, &self.model, bundle.to_vec())
    }
}
