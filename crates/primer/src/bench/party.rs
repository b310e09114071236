//! One party of a measurement, as a process of its own.
//!
//! The server waits for one client on a port of loopback and prints where, the client connects; both run the same
//! number of inferences and print what they measured, as JSON on standard output. [`super::measure`] starts them.

use super::{Entrant, fhe, gc, pinned};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use primer_model::quantise::IntModel;
use primer_model::text::Input;
use primer_net::tls::{Fingerprint, Identity, TlsClient, TlsServer, Trust};
use primer_net::{Channel, Link, Options, Report};
use primer_plan::graph::PaperStep;
use primer_protocol::client;
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::times::Times;
use primer_protocol::{Program, Reveal, Scheme};
use primer_ring::prg::Prg;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Seek, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A party may compute for a long time before it says something.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Which party this process is.
#[derive(Clone, Copy, ValueEnum)]
pub enum Role {
    /// Has the weights.
    Server,
    /// Has the text.
    Client,
}

/// Arguments of one party.
#[derive(Args)]
pub struct PartyArgs {
    /// Which party
    #[arg(value_enum)]
    role: Role,
    /// A prepared model (server)
    #[arg(long)]
    prepared: Option<PathBuf>,
    /// Where the server is, and the fingerprint of its certificate (client)
    #[arg(long, num_args = 2)]
    connect: Vec<String>,
    /// What is measured
    #[arg(long)]
    scheme: Entrant,
    /// Tokens of the input
    #[arg(long)]
    tokens: usize,
    /// How many inferences
    #[arg(long)]
    pub(super) runs: usize,
    /// The link in between
    #[arg(long, value_parser = super::link)]
    link: Link,
}

/// Where a server waits.
#[derive(Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) address: SocketAddr,
    pub(super) fingerprint: String,
}

/// Seconds of one step.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct StepSeconds {
    pub(super) step: PaperStep,
    pub(super) in_layers: f64,
    pub(super) outside: f64,
}

impl StepSeconds {
    fn total(&self) -> f64 {
        self.in_layers + self.outside
    }
}

fn by_step(times: &Times) -> Vec<StepSeconds> {
    let one = |step| StepSeconds {
        step,
        in_layers: times.in_layers(step),
        outside: times.outside_layers(step),
    };
    PaperStep::ALL.into_iter().map(one).collect()
}

/// One inference as the client saw it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) offline: Vec<StepSeconds>,
    pub(super) online: Vec<StepSeconds>,
    pub(super) offline_up: u64,
    pub(super) offline_down: u64,
    pub(super) online_up: u64,
    pub(super) online_down: u64,
    pub(super) rounds_online: u64,
}

impl Measured {
    /// From the seconds of both phases and what the channel counted of them.
    pub(super) fn new(offline: &Times, online: &Times, traffic: &Report) -> Self {
        let (prepared, run) = (traffic.under("offline"), traffic.under("online"));
        Self {
            offline: by_step(offline),
            online: by_step(online),
            offline_up: prepared.bytes_sent,
            offline_down: prepared.bytes_received,
            online_up: run.bytes_sent,
            online_down: run.bytes_received,
            rounds_online: run.rounds,
        }
    }

    /// Seconds of both phases.
    pub(super) fn total_s(&self) -> f64 {
        self.offline_s() + self.online_s()
    }

    /// Seconds offline.
    pub(super) fn offline_s(&self) -> f64 {
        self.offline.iter().map(StepSeconds::total).sum()
    }

    /// Seconds online.
    pub(super) fn online_s(&self) -> f64 {
        self.online.iter().map(StepSeconds::total).sum()
    }
}

/// What a party says at the end.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// As the client saw them; of `fhe`, where the server does everything, as the server did.
    pub(super) runs: Vec<Measured>,
    pub(super) setup_bytes: u64,
    /// The client's, from greeting the server until keys and base transfers are done.
    pub(super) setup_s: Option<f64>,
    /// The server's, until it has read and encoded its model.
    pub(super) model_s: Option<f64>,
    /// The outputs of the last inference.
    pub(super) outputs: Vec<Vec<f64>>,
    pub(super) peak_rss: u64,
    pub(super) pinned: bool,
}

/// Runs a phase whose seconds by step are `times` of its result; they must be those that pass on the clock, but for a
/// thirtieth of them and what a process may lose to others on a busy machine.
pub(super) fn covered<T>(
    phase: &str,
    run: impl FnOnce() -> Result<T>,
    times: impl FnOnce(&T) -> &Times,
) -> Result<T> {
    let started = Instant::now();
    let result = run()?;
    let (wall, steps) = (started.elapsed().as_secs_f64(), times(&result).total());
    ensure!(
        complete(wall, steps),
        "{phase} took {wall:.3} s, and its steps only {steps:.3} s of it"
    );
    Ok(result)
}

fn complete(wall: f64, steps: f64) -> bool {
    const SLACK: f64 = 0.02;
    steps >= 0.97 * wall - SLACK
}

/// The input that is measured: arbitrary tokens, as many as there is room for.
pub(super) fn input(tokens: usize, vocab: usize) -> Input {
    Input {
        ids: (0..tokens).map(|t| (t * 977 % vocab) as u32).collect(),
        types: vec![0; tokens],
        length: tokens,
        removed: 0,
        second: vec![None; tokens],
    }
}

/// Runs one party.
///
/// # Errors
/// If the other party is gone or something is missing.
pub fn run(args: &PartyArgs) -> Result<()> {
    let (pinned, outcome) = match args.role {
        Role::Server => (pinned::pin(0), server(args)?),
        Role::Client => (pinned::pin(1), client(args)?),
    };
    let outcome = Outcome {
        pinned,
        peak_rss: pinned::peak_rss(),
        ..outcome
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

fn options(args: &PartyArgs) -> Options {
    Options {
        timeout: Some(PATIENCE),
        shape: args.link.shape(),
        ..Options::default()
    }
}

fn server(args: &PartyArgs) -> Result<Outcome> {
    match args.scheme {
        Entrant::Scheme(scheme) => {
            let path = args.prepared.as_ref().context("a server needs a model")?;
            let started = Instant::now();
            let model =
                IntModel::open(path).with_context(|| format!("loading {}", path.display()))?;
            let program = Program::new(model.plan(args.tokens)?, scheme, Reveal::Outputs)?;
            let model = ServerModel::new(Arc::new(model), &program)?;
            let model_s = started.elapsed().as_secs_f64();
            serve(args, &program, &model, &mut accept(args)?)?;
            Ok(Outcome {
                model_s: Some(model_s),
                ..Outcome::default()
            })
        }
        Entrant::Gc => gc::serve(args, || accept(args)),
        Entrant::Fhe => fhe::serve(args, || accept(args)),
    }
}

/// Says where the server waits, and waits for its client.
fn accept(args: &PartyArgs) -> Result<Channel> {
    let identity = Identity::self_signed(&["localhost".into()])?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("opening a port")?;
    let ready = Ready {
        address: listener.local_addr()?,
        fingerprint: identity.fingerprint().to_string(),
    };
    println!("{}", serde_json::to_string(&ready)?);
    std::io::stdout().flush()?;
    let (socket, _) = listener.accept().context("waiting for the client")?;
    Ok(Channel::tls_accept(
        socket,
        &TlsServer::new(&identity)?,
        &options(args),
    )?)
}

fn serve(
    args: &PartyArgs,
    program: &Program,
    model: &ServerModel,
    channel: &mut Channel,
) -> Result<()> {
    let offer = |_, _| Ok(program.clone());
    let mut session = ServerSession::accept(channel, offer, Prg::from_os())?;
    for _ in 0..args.runs {
        let mut file = tempfile::tempfile().context("making room for a bundle")?;
        session.prepare(channel, model, &mut file)?;
        file.rewind()?;
        let bundle = server::Bundle::new(BufReader::with_capacity(1 << 20, file));
        session.infer(channel, model, bundle)?;
    }
    Ok(())
}

fn client(args: &PartyArgs) -> Result<Outcome> {
    let [address, fingerprint] = args.connect.as_slice() else {
        anyhow::bail!("a client needs a server");
    };
    let trust = Trust::Pinned(
        fingerprint
            .parse::<Fingerprint>()
            .map_err(anyhow::Error::msg)?,
    );
    let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    let mut channel = Channel::tls_connect(socket, &TlsClient::new(trust)?, &options(args))?;
    match args.scheme {
        Entrant::Scheme(scheme) => ask(args, scheme, &mut channel),
        Entrant::Gc => gc::ask(args, &mut channel),
        Entrant::Fhe => fhe::ask(args, &mut channel),
    }
}

fn ask(args: &PartyArgs, scheme: Scheme, channel: &mut Channel) -> Result<Outcome> {
    let rng = Prg::from_os();
    let started = Instant::now();
    let mut session = ClientSession::open(channel, scheme, args.tokens, rng)?;
    let setup_s = started.elapsed().as_secs_f64();
    let vocab = session.program().plan().graph().shape.vocab;
    let input = input(args.tokens, vocab);
    let mut outcome = Outcome {
        setup_bytes: channel.meter().report().under("setup").bytes(),
        setup_s: Some(setup_s),
        ..Outcome::default()
    };
    for run in 1..=args.runs {
        let started = Instant::now();
        let before = channel.meter().report();
        let mut file = tempfile::tempfile().context("making room for a bundle")?;
        let prepare = || Ok(session.prepare(channel, &mut file)?);
        let offline = covered("preparing", prepare, |times| times)?;
        let say = |phase: &str, since: Instant| {
            let seconds = since.elapsed().as_secs_f64();
            eprintln!("primer: run {run} of {}: {phase} {seconds:.1} s", args.runs);
        };
        say("offline", started);
        file.rewind()?;
        let started = Instant::now();
        let bundle = client::Bundle::new(BufReader::with_capacity(1 << 20, file));
        let infer = || Ok(session.infer(channel, bundle, &input)?);
        let answer = covered("inferring", infer, |answer| &answer.times)?;
        say("online", started);
        let traffic = channel.meter().report().since(&before);
        outcome
            .runs
            .push(Measured::new(&offline, &answer.times, &traffic));
        let reals = answer.reals.iter();
        outcome.outputs = reals.map(|m| m.data().to_vec()).collect();
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_must_cover_their_phase() {
        assert!(complete(10.0, 9.9) && complete(0.01, 0.0));
        assert!(!complete(10.0, 9.6) && !complete(0.5, 0.4));
        let step = Times::default;
        let slow = || {
            std::thread::sleep(Duration::from_millis(40));
            Ok(step())
        };
        let error = covered("preparing", slow, |times| times).unwrap_err();
        assert!(error.to_string().contains("preparing took 0.0"), "{error}");
        assert!(covered("preparing", || Ok(step()), |times| times).is_ok());
    }
}
