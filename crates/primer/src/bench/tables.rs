//! The paper's tables, measured: whole private inferences between two processes.

use super::party::{self, Measured, Outcome, Ready, StepSeconds};
use super::shapes;
use crate::source::Model;
use anyhow::{Context, Result, bail, ensure};
use primer_model::calibrate::calibrate;
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_model::text::TextEncoder;
use primer_net::Link;
use primer_plan::graph::{Graph, PaperStep};
use primer_protocol::cost::{self, Parts};
use primer_protocol::scheme::Prepared;
use primer_protocol::{Program, Reveal, Scheme};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What is measured.
pub struct Request {
    /// A shape's name or a model directory.
    pub model: String,
    /// How many layers are run; the rest is extrapolated.
    pub layers: Option<usize>,
    /// Tokens of the input.
    pub tokens: usize,
    /// The schemes, in this order.
    pub schemes: Vec<Scheme>,
    /// The link between the parties.
    pub link: Link,
    /// Runs of which the median is taken.
    pub runs: usize,
}

/// What `--json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    /// The model.
    pub model: String,
    /// Its layers.
    pub layers: usize,
    /// The layers that were run.
    pub layers_measured: usize,
    /// Tokens of the input.
    pub tokens: usize,
    /// The link.
    pub link: Link,
    /// Threads that compute for each party.
    pub threads_per_party: usize,
    /// Whether each party had a core of its own.
    pub pinned: bool,
    /// One entry for each scheme.
    pub results: Vec<Row>,
}

/// One scheme.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub scheme: String,
    /// Whether layers were left out and their cost taken from the others.
    pub extrapolated: bool,
    /// Seconds of the offline phase.
    pub offline_s: f64,
    /// Seconds of the online phase.
    pub online_s: f64,
    /// Seconds of the float reference on one thread.
    pub plaintext_s: f64,
    /// Bytes of one inference.
    pub bytes: Bytes,
    /// Bytes of the handshake and the keys, once for a session.
    pub setup_bytes: u64,
    /// Round trips online.
    pub rounds_online: u64,
    /// The most memory that the client held.
    pub peak_rss_client: u64,
    /// The most memory that the server held.
    pub peak_rss_server: u64,
    /// AND gates.
    pub and_gates: u64,
    /// Against the float reference, of the layers that were run.
    pub max_abs_logit_error: f64,
    /// Seconds by the paper's steps.
    pub steps: Vec<StepRow>,
}

/// Bytes of one inference by phase and direction.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Bytes {
    /// From the client, before there is a text.
    pub offline_up: u64,
    /// To the client, before there is a text.
    pub offline_down: u64,
    /// From the client.
    pub online_up: u64,
    /// To the client.
    pub online_down: u64,
}

/// One step of the paper's table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepRow {
    /// Its name.
    pub step: PaperStep,
    /// Seconds offline.
    pub offline_s: f64,
    /// Seconds online.
    pub online_s: f64,
}

/// A link by its name.
///
/// # Errors
/// If there is no such link.
pub fn link(name: &str) -> Result<Link, String> {
    let found = Link::ALL.into_iter().find(|link| link.name() == name);
    found.ok_or_else(|| format!("there is no link `{name}`; the links are loopback, paper, wan"))
}

/// A model and how many layers the whole of it has.
struct Subject {
    name: String,
    weights: FloatWeights,
    text: TextEncoder,
    calibration: String,
    layers: usize,
}

/// Words enough to calibrate random weights.
const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nthe\nof\nand\nfilm\nstory\ngood\nbad";
const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";

impl Subject {
    fn new(request: &Request) -> Result<Self> {
        let dir = Path::new(&request.model);
        if !dir.is_dir() {
            let shape = shapes::shape(&request.model, request.layers)?;
            return Ok(Self {
                name: request.model.clone(),
                weights: FloatWeights::fold(&shape, &synthetic::checkpoint(&shape, &[3; 16])),
                text: TextEncoder::from_vocabulary(WORDS.as_bytes(), None)?,
                calibration: TEXT.to_owned(),
                layers: shapes::layers(&request.model).unwrap_or(shape.layers),
            });
        }
        ensure!(
            request.layers.is_none(),
            "--layers is for the shapes with random weights; {} is measured whole",
            request.model
        );
        let model = Model::load(Some(dir))?;
        Ok(Self {
            name: model.name,
            layers: model.shape.layers,
            weights: model.weights,
            text: model.text,
            calibration: crate::source::CALIBRATION.to_owned(),
        })
    }
}

/// Runs everything that was asked for.
///
/// # Errors
/// If the model, the tokens or a scheme cannot be measured, or a party fails.
pub fn measure(request: &Request) -> Result<Table> {
    ensure!(request.runs > 0, "at least one run is needed");
    let subject = Subject::new(request)?;
    let shape = &subject.weights.shape;
    ensure!(
        (1..=shape.max_tokens()).contains(&request.tokens),
        "{} takes 1 to {} tokens, not {}",
        subject.name,
        shape.max_tokens(),
        request.tokens
    );
    let mut table = Table {
        model: subject.name.clone(),
        layers: subject.layers,
        layers_measured: shape.layers,
        tokens: request.tokens,
        link: request.link,
        threads_per_party: 1,
        pinned: true,
        results: Vec::new(),
    };
    let input = party::input(request.tokens, shape.vocab);
    let graph = Graph::bert(shape, request.tokens);
    let mut seconds = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        outputs = float::run(&graph, &subject.weights, &input, &mut NoObserver);
        seconds.push(started.elapsed().as_secs_f64());
    }
    let times = subject.layers as f64 / shape.layers as f64;
    let plaintext_s = median(seconds) * times;
    let expected: Vec<Vec<f64>> = outputs
        .iter()
        .map(|m| m.data().iter().map(|v| f64::from(*v)).collect())
        .collect();
    for &scheme in &request.schemes {
        let (row, pinned) = one(request, &subject, scheme, plaintext_s, &expected)?;
        table.pinned &= pinned;
        table.results.push(row);
    }
    Ok(table)
}

fn one(
    request: &Request,
    subject: &Subject,
    scheme: Scheme,
    plaintext_s: f64,
    expected: &[Vec<f64>],
) -> Result<(Row, bool)> {
    let name = scheme.name();
    eprintln!(
        "primer: {}, scheme {name}: preparing the model",
        subject.name
    );
    let weights = &subject.weights.with_attention(scheme.attention());
    let scales = calibrate(weights, &subject.text, &subject.calibration, |_, _| ())
        .with_context(|| format!("calibrating {}", subject.name))?;
    let model = IntModel::quantise(weights, scales)?;
    let program = Program::new(model.plan(request.tokens)?, scheme, Reveal::Outputs)?;
    let dir = tempfile::tempdir().context("making room for the prepared model")?;
    let path = dir.path().join("model.prepared");
    model.save(&path)?;
    drop(model);
    let (server, client) = pair(request, scheme, &path)?;
    let parts = cost::parts(&program)?;
    check_counts(&parts, &client.runs)?;
    let more = (subject.layers - weights.shape.layers) as f64 / weights.shape.layers as f64;
    let pinned = server.pinned && client.pinned;
    let row = row(
        scheme,
        plaintext_s,
        expected,
        &parts,
        more,
        (&server, &client),
    );
    Ok((row, pinned))
}

/// What was counted must be what the program foretells; figures that are extrapolated rest on it.
fn check_counts(parts: &Parts, runs: &[Measured]) -> Result<()> {
    let all = parts.total();
    for run in runs {
        let counted = [
            run.offline_up,
            run.offline_down,
            run.online_up,
            run.online_down,
        ];
        let bytes = &all.bytes;
        let foretold = [
            bytes.offline_up,
            bytes.offline_down,
            bytes.online_up,
            bytes.online_down,
        ];
        ensure!(
            counted == foretold,
            "the channel counted {counted:?} bytes, the program foretells {foretold:?}"
        );
    }
    Ok(())
}

/// Round trips online. What is prepared online takes some that the program does not count, so there the measured
/// number is stretched.
fn rounds(scheme: Scheme, client: &Outcome, of_layers: u64, more: f64) -> u64 {
    let measured = client.runs.first().map_or(0, |run| run.rounds_online);
    let left_out = match scheme.prepared() {
        Prepared::Offline => of_layers,
        Prepared::Online => measured,
    };
    measured + (left_out as f64 * more).round() as u64
}

fn row(
    scheme: Scheme,
    plaintext_s: f64,
    expected: &[Vec<f64>],
    parts: &Parts,
    more: f64,
    (server, client): (&Outcome, &Outcome),
) -> Row {
    let seconds = |phase: fn(&Measured) -> &Vec<StepSeconds>, step: usize| {
        let one = |run: &Measured| {
            let StepSeconds {
                in_layers, outside, ..
            } = phase(run)[step];
            outside + in_layers * (1.0 + more)
        };
        median(client.runs.iter().map(one).collect())
    };
    let steps: Vec<StepRow> = PaperStep::ALL
        .into_iter()
        .enumerate()
        .map(|(at, step)| StepRow {
            step,
            offline_s: seconds(|run| &run.offline, at),
            online_s: seconds(|run| &run.online, at),
        })
        .collect();
    let count = |layers: u64, all: u64| all + (layers as f64 * more).round() as u64;
    let (layers, all) = (&parts.layers, parts.total());
    let errors = client.outputs.iter().flatten();
    let errors = errors.zip(expected.iter().flatten());
    let bytes = |f: fn(&primer_stops::Cost) -> u64| count(f(&layers.bytes), f(&all.bytes));
    Row {
        scheme: scheme.name().to_owned(),
        extrapolated: more > 0.0,
        offline_s: steps.iter().map(|s| s.offline_s).sum(),
        online_s: steps.iter().map(|s| s.online_s).sum(),
        plaintext_s,
        bytes: Bytes {
            offline_up: bytes(|c| c.offline_up),
            offline_down: bytes(|c| c.offline_down),
            online_up: bytes(|c| c.online_up),
            online_down: bytes(|c| c.online_down),
        },
        setup_bytes: client.setup_bytes,
        rounds_online: rounds(scheme, client, layers.rounds_online, more),
        peak_rss_client: client.peak_rss,
        peak_rss_server: server.peak_rss,
        and_gates: count(layers.and_gates, all.and_gates),
        max_abs_logit_error: errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        steps,
    }
}

/// The median; of an even number the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

/// A party that does not outlive the measurement.
struct Party(Child);

impl Drop for Party {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Party {
    fn start(arguments: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let child = Command::new(program)
            .arg("bench-party")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        Ok(Self(child.context("starting a party")?))
    }

    fn output(&mut self) -> Result<BufReader<impl Read + use<>>> {
        let output = self.0.stdout.take();
        Ok(BufReader::new(output.context("a party has an output")?))
    }

    fn end(&mut self, who: &str, output: &str) -> Result<Outcome> {
        let status = self.0.wait()?;
        if !status.success() {
            bail!("the {who} failed: {status}");
        }
        serde_json::from_str(output).with_context(|| format!("reading what the {who} measured"))
    }
}

/// Starts the two parties and waits for what they measured.
fn pair(request: &Request, scheme: Scheme, prepared: &Path) -> Result<(Outcome, Outcome)> {
    let common = [
        "--scheme".into(),
        scheme.name().to_owned(),
        "--tokens".into(),
        request.tokens.to_string(),
        "--runs".into(),
        request.runs.to_string(),
        "--link".into(),
        request.link.name().to_owned(),
    ];
    let with = |role: &str, own: &[String]| {
        let mut all = vec![role.to_owned()];
        all.extend_from_slice(&common);
        all.extend_from_slice(own);
        all
    };
    let prepared = prepared.display().to_string();
    let mut server = Party::start(&with("server", &["--prepared".into(), prepared]))?;
    let mut from_server = server.output()?;
    let mut line = String::new();
    from_server.read_line(&mut line)?;
    let ready: Ready = match serde_json::from_str(&line) {
        Ok(ready) => ready,
        Err(_) => bail!("the server did not start: {}", server.0.wait()?),
    };
    eprintln!("primer: scheme {}: both parties run", scheme.name());
    let connect = [
        "--connect".into(),
        ready.address.to_string(),
        ready.fingerprint,
    ];
    let mut client = Party::start(&with("client", &connect))?;
    let mut found = String::new();
    client.output()?.read_to_string(&mut found)?;
    let client = client.end("client", &found)?;
    found.clear();
    from_server.read_to_string(&mut found)?;
    Ok((server.end("server", &found)?, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn links_by_name() {
        assert_eq!(link("paper"), Ok(Link::Paper));
        assert!(link("moon").unwrap_err().contains("`moon`"));
    }
}
