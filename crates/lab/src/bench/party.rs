//! One party of a measurement, as a process of its own.
//!
//! The server waits for one client on a port of loopback and prints where, the client connects;
//! both run the same number of inferences and print what they measured, as JSON on standard output.
//! [`super::measure`] starts them.

use super::timeline::{self, Lane};
use super::{Entrant, fhe, gc, pinned};
use crate::hinted::{self, Hinted};
use anyhow::{Context, Result, ensure};
use primer_model::quantise::IntModel;
use primer_net::tls::{Fingerprint, Identity, TlsClient, TlsServer, Trust};
use primer_net::{Channel, Link, Options, Report};
use primer_plan::graph::PaperStep;
use primer_protocol::client;
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::times::Times;
use primer_protocol::{Program, Reveal, Scheme};
use primer_ring::prg::Prg;
use primer_text::Input;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Seek, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A party may compute for a long time before it says something.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Which party this process is.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Role {
    /// Has the weights: a prepared model, unless the comparator makes its own.
    Server { prepared: Option<PathBuf> },
    /// Has the text, and knows where the server is.
    Client { server: Ready },
}

/// What a party is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) role: Role,
    /// What is measured, by name.
    pub(super) entrant: String,
    /// Tokens of the input.
    pub(super) tokens: usize,
    /// How many inferences.
    pub(super) runs: usize,
    /// How many bundles are prepared together, one of which is used.
    pub(super) bundles: usize,
    /// How many threads it may have.
    pub(super) threads: usize,
    /// Whether it takes down what it does online from moment to moment.
    pub(super) timeline: bool,
    /// The link in between.
    pub(super) link: Link,
}

/// Where a server waits.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) address: SocketAddr,
    pub(super) fingerprint: String,
    /// The model's hint, if the scheme needs one: its name, and where it is.
    pub(super) hint: Option<([u8; 32], PathBuf)>,
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
    /// The server's, while it made the model's hint.
    pub(super) hint_build_s: Option<f64>,
    /// The outputs of the last inference.
    pub(super) outputs: Vec<Vec<f64>>,
    /// Whether the client was told of each inference that values stayed in their ranges.
    pub(super) in_range: Option<bool>,
    /// What this party did online, a lane for each run, if it was asked for.
    pub(super) lanes: Vec<Lane>,
    pub(super) peak_rss: u64,
    pub(super) pinned: bool,
}

/// Runs a phase whose seconds by step are `times` of its result; they must be those that pass on
/// the clock, but for a thirtieth of them and what a process may lose to others on a busy machine.
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

/// Runs one party, whose job is the JSON that [`super::measure`] gave to this process.
///
/// # Errors
/// If the other party is gone or something is missing.
pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("reading the job of a party")?;
    let entrant = job.entrant.parse().map_err(anyhow::Error::msg)?;
    let pin = |core| job.threads == 1 && pinned::pin(core);
    let (pinned, outcome) = match &job.role {
        Role::Server { prepared } => (pin(0), server(&job, entrant, prepared.as_deref())?),
        Role::Client { server } => (pin(1), client(&job, entrant, server)?),
    };
    let outcome = Outcome {
        pinned,
        peak_rss: pinned::peak_rss(),
        ..outcome
    };
    tell(&outcome)
}

/// Tells the measuring process something, on a line of its own.
fn tell(what: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(what)?)?;
    out.flush().context("telling the measuring process")
}

fn options(job: &Job) -> Options {
    Options {
        timeout: Some(PATIENCE),
        shape: job.link.shape(),
        ..Options::default()
    }
}

fn server(job: &Job, entrant: Entrant, prepared: Option<&Path>) -> Result<Outcome> {
    match entrant {
        Entrant::Scheme(scheme) => {
            let path = prepared.context("a server needs a model")?;
            let started = Instant::now();
            let model =
                IntModel::open(path).with_context(|| format!("loading {}", path.display()))?;
            let read_s = started.elapsed().as_secs_f64();
            let hinted = Hinted::of(&model, scheme)?;
            let place = path.with_extension("hint");
            let hint = match &hinted {
                None => None,
                Some(hinted) => {
                    hinted.write(&place)?;
                    Some((hinted.hint.identity().name, place))
                }
            };
            let started = Instant::now();
            let program = Program::of(&model, scheme, job.tokens, Reveal::Outputs)?;
            let identity = hinted.as_ref().map(|hinted| *hinted.hint.identity());
            let program = program.with_hint(identity.as_ref())?;
            let hint_build_s = hinted.as_ref().map(|hinted| hinted.seconds);
            let multipliers = hinted.map(|hinted| hinted.multipliers);
            let model = ServerModel::new(Arc::new(model), &program, multipliers)?;
            let model_s = read_s + started.elapsed().as_secs_f64();
            let lanes = serve(job, &program, &model, &mut accept(job, hint)?)?;
            Ok(Outcome {
                lanes,
                model_s: Some(model_s),
                hint_build_s,
                ..Outcome::default()
            })
        }
        Entrant::Gc => gc::serve(job, || accept(job, None)),
        Entrant::Fhe => fhe::serve(job, || accept(job, None)),
    }
}

/// Says where the server waits, and waits for its client.
fn accept(job: &Job, hint: Option<([u8; 32], PathBuf)>) -> Result<Channel> {
    let identity = Identity::self_signed(&["localhost".into()])?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("opening a port")?;
    let ready = Ready {
        address: listener.local_addr()?,
        fingerprint: identity.fingerprint().to_string(),
        hint,
    };
    tell(&ready)?;
    let (socket, _) = listener.accept().context("waiting for the client")?;
    Ok(Channel::tls_accept(
        socket,
        &TlsServer::new(&identity)?,
        &options(job),
    )?)
}

fn serve(
    job: &Job,
    program: &Program,
    model: &ServerModel,
    channel: &mut Channel,
) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    let offer = |_, _| Ok(program.clone());
    let mut session = ServerSession::accept(channel, offer, Prg::from_os())?;
    session.set_threads(job.threads);
    for _ in 0..job.runs {
        let mut files = files(job.bundles)?;
        session.prepare_together(channel, model, &mut sinks(&mut files))?;
        let mut file = files.swap_remove(0);
        file.rewind()?;
        let bundle = server::Bundle::new(BufReader::with_capacity(1 << 20, file));
        let infer = |channel: &mut Channel| Ok(session.infer(channel, model, bundle)?);
        let (_, lane) = recorded(job, channel, program, infer)?;
        lanes.extend(lane);
    }
    Ok(lanes)
}

/// Runs an online phase, and makes a lane of it if a timeline is asked for.
fn recorded<T>(
    job: &Job,
    channel: &mut Channel,
    program: &Program,
    run: impl FnOnce(&mut Channel) -> Result<T>,
) -> Result<(T, Option<Lane>)> {
    if !job.timeline {
        return Ok((run(channel)?, None));
    }
    let recorder = channel.recorder().clone();
    recorder.start();
    let result = run(channel)?;
    let lane = timeline::lane(&recorder.stop(), program.plan().graph())?;
    Ok((result, Some(lane)))
}

/// Room for some bundles.
fn files(bundles: usize) -> Result<Vec<File>> {
    let files = (0..bundles).map(|_| tempfile::tempfile());
    let files: std::io::Result<_> = files.collect();
    files.context("making room for bundles")
}

fn sinks(files: &mut [File]) -> Vec<&mut (dyn Write + Send)> {
    let sinks = files.iter_mut();
    sinks.map(|file| file as &mut (dyn Write + Send)).collect()
}

fn client(job: &Job, entrant: Entrant, server: &Ready) -> Result<Outcome> {
    let fingerprint: Fingerprint = server.fingerprint.parse().map_err(anyhow::Error::msg)?;
    let trust = Trust::Pinned(fingerprint);
    let address = server.address;
    let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    let mut channel = Channel::tls_connect(socket, &TlsClient::new(trust)?, &options(job))?;
    match entrant {
        Entrant::Scheme(scheme) => ask(job, scheme, server.hint.as_ref(), &mut channel),
        Entrant::Gc => gc::ask(job, &mut channel),
        Entrant::Fhe => fhe::ask(job, &mut channel),
    }
}

fn ask(
    job: &Job,
    scheme: Scheme,
    hint: Option<&([u8; 32], PathBuf)>,
    channel: &mut Channel,
) -> Result<Outcome> {
    let rng = Prg::from_os();
    let hint = hint
        .map(|(name, path)| hinted::read(path, name))
        .transpose()?;
    let started = Instant::now();
    let mut session = ClientSession::open(channel, scheme, job.tokens, hint, rng)?;
    let setup_s = started.elapsed().as_secs_f64();
    session.set_threads(job.threads);
    let vocab = session.program().plan().graph().shape.vocab;
    let input = input(job.tokens, vocab);
    let mut outcome = Outcome {
        setup_bytes: channel.meter().report().under("setup").bytes(),
        setup_s: Some(setup_s),
        ..Outcome::default()
    };
    for run in 1..=job.runs {
        let started = Instant::now();
        let before = channel.meter().report();
        let mut files = files(job.bundles)?;
        let prepare = || Ok(session.prepare_together(channel, &mut sinks(&mut files))?);
        let offline = covered("preparing", prepare, |times| times)?;
        let say = |phase: &str, since: Instant| {
            let seconds = since.elapsed().as_secs_f64();
            crate::note!("primer: run {run} of {}: {phase} {seconds:.1} s", job.runs);
        };
        say("offline", started);
        let mut file = files.swap_remove(0);
        file.rewind()?;
        let started = Instant::now();
        let bundle = client::Bundle::new(BufReader::with_capacity(1 << 20, file));
        let program = session.program().clone();
        let infer = |channel: &mut Channel| {
            let infer = || Ok(session.infer(channel, bundle, &input)?);
            covered("inferring", infer, |answer| &answer.times)
        };
        let (answer, lane) = recorded(job, channel, &program, infer)?;
        outcome.lanes.extend(lane);
        say("online", started);
        let traffic = channel.meter().report().since(&before);
        outcome
            .runs
            .push(Measured::new(&offline, &answer.times, &traffic));
        let before = outcome.in_range;
        outcome.in_range = answer.in_range.map(|now| now && before != Some(false));
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
