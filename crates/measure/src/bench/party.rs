//! One party of a measurement, as a process of its own.
//!
//! The server waits for one client on a port of loopback and prints where, the client connects;
//! both run the same number of inferences and print what they measured, as JSON on standard output.
//! [`super::measure`] starts them.

use super::entrant::Find;
use super::pinned;
use anyhow::{Context, Result, ensure};
use primer_net::Link;
use primer_net::tls::{Identity, TlsClient, TlsServer, Trust};
use primer_plan::graph::PaperStep;
use primer_plan::times::Times;
use primer_text::Input;
use primer_wire::peer::Fingerprint;
use primer_wire::record::Span;
use primer_wire::{Channel, Options, Report};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A party may compute for a long time before it says something.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Which party this process is.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Role {
    /// Has the weights: a prepared model, unless the entrant makes its own.
    Server { prepared: Option<PathBuf> },
    /// Has the text, and knows where the server is.
    Client { server: Ready },
}

/// What a party is to do.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    pub(super) role: Role,
    /// What is measured, by name.
    pub(super) entrant: String,
    /// Tokens of the input.
    pub tokens: usize,
    /// How many inferences.
    pub runs: usize,
    /// How many bundles are prepared together, one of which is used.
    pub bundles: usize,
    /// How many threads it may have.
    pub threads: usize,
    /// Whether it takes down what it does online from moment to moment.
    pub record: bool,
    /// The link in between.
    pub(super) link: Link,
}

/// Where a server waits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ready {
    pub(super) address: SocketAddr,
    pub(super) fingerprint: String,
    /// The model's hint, if the scheme needs one: its name, and where it is.
    pub hint: Option<([u8; 32], PathBuf)>,
}

/// Seconds of one step.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct StepSeconds {
    /// Which step.
    pub step: PaperStep,
    /// Those of all layers.
    pub in_layers: f64,
    /// Those of embedding and head.
    pub outside: f64,
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
pub struct Measured {
    /// Seconds offline.
    pub offline: Vec<StepSeconds>,
    /// Seconds online.
    pub online: Vec<StepSeconds>,
    /// Bytes that the client sent offline.
    pub offline_up: u64,
    /// Bytes that it received offline.
    pub offline_down: u64,
    /// Bytes that it sent online.
    pub online_up: u64,
    /// Bytes that it received online.
    pub online_down: u64,
    /// Round trips online.
    pub rounds_online: u64,
}

impl Measured {
    /// Joins the seconds of both phases and what the channel counted of them.
    pub fn new(offline: &Times, online: &Times, traffic: &Report) -> Self {
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

    /// Returns the seconds of both phases.
    pub fn total_s(&self) -> f64 {
        self.offline_s() + self.online_s()
    }

    /// Returns the seconds offline.
    pub fn offline_s(&self) -> f64 {
        self.offline.iter().map(StepSeconds::total).sum()
    }

    /// Returns the seconds online.
    pub fn online_s(&self) -> f64 {
        self.online.iter().map(StepSeconds::total).sum()
    }
}

/// What a party says at the end.
#[derive(Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The inferences, as this party saw them.
    pub runs: Vec<Measured>,
    /// Bytes of the handshake and the keys.
    pub setup_bytes: u64,
    /// The client's, from greeting the server until keys and base transfers are done.
    pub setup_s: Option<f64>,
    /// The server's, until it has read and encoded its model.
    pub model_s: Option<f64>,
    /// The server's, while it made the model's hint.
    pub hint_build_s: Option<f64>,
    /// The outputs of the last inference.
    pub outputs: Vec<Vec<f64>>,
    /// Whether the client was told of each inference that values stayed in their ranges.
    pub in_range: Option<bool>,
    /// What this party did online from moment to moment, for each run, if that was asked for.
    pub spans: Vec<Vec<Span>>,
    /// The most memory that it held.
    pub peak_rss: u64,
    /// Whether it had a core of its own.
    pub pinned: bool,
}

/// Runs a phase whose seconds by step are `times` of its result; they must be those that pass on
/// the clock, but for a thirtieth of them and what a process may lose to others on a busy machine.
///
/// # Errors
/// If the phase fails, or its steps do not cover it.
pub fn covered<T>(
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

/// Makes the input that is measured: arbitrary tokens, as many as there is room for.
pub fn input(tokens: usize, vocab: usize) -> Input {
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
/// If there is no such entrant, the other party is gone or something is missing.
pub fn run(job: &str, find: Find) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("reading the job of a party")?;
    let entrant = find(&job.entrant);
    let entrant = entrant.with_context(|| format!("there is no entrant {}", job.entrant))?;
    let pin = |core| job.threads == 1 && pinned::pin(core);
    let (pinned, outcome) = match &job.role {
        Role::Server { prepared } => {
            let pinned = pin(0);
            let mut accept = |hint| accept(&job, hint);
            (
                pinned,
                entrant.serve(&job, prepared.as_deref(), &mut accept)?,
            )
        }
        Role::Client { server } => {
            let pinned = pin(1);
            let mut channel = connect(&job, server)?;
            (pinned, entrant.ask(&job, server, &mut channel)?)
        }
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
    out.flush().context("reporting to the measuring process")
}

fn options(job: &Job) -> Options {
    Options {
        timeout: Some(PATIENCE),
        shape: job.link.shape(),
        ..Options::default()
    }
}

/// Says where the server waits and which hint the client is to read, and waits for the client.
pub type Accept<'a> = &'a mut dyn FnMut(Option<([u8; 32], PathBuf)>) -> Result<Channel>;

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
    Ok(primer_net::tls_accept(
        socket,
        &TlsServer::new(&identity)?,
        &options(job),
    )?)
}

fn connect(job: &Job, server: &Ready) -> Result<Channel> {
    let fingerprint: Fingerprint = server.fingerprint.parse().map_err(anyhow::Error::msg)?;
    let trust = Trust::Pinned(fingerprint);
    let address = server.address;
    let socket = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    Ok(primer_net::tls_connect(
        socket,
        &TlsClient::new(trust)?,
        &options(job),
    )?)
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
