//! `primer eval`: how accurate a model is, and how often fixed point agrees with float.
//!
//! Three engines: single precision, the protocol's integers in the clear, and the protocol itself, with both parties in
//! this process. A fourth is a comparator: what polynomials in place of the non-linear functions do to the answers.

mod journal;
mod report;

use self::journal::Journal;
use self::report::Report;
use super::ModelArgs;
use crate::progress::Progress;
use crate::provenance::Provenance;
use crate::secure;
use crate::source::Model;
use crate::task::{self, Example, Task};
use crate::usage::ensure_usage;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use primer_comparator_fhe::fit::fit;
use primer_comparator_fhe::polynomials::{Degrees as PolynomialDegrees, Polynomials};
use primer_comparator_fhe::watch::{Outside, Watch};
use primer_model::fixed::{self, OutOfRange};
use primer_model::float::{self, NoObserver};
use primer_model::quantise::IntModel;
use primer_model::text::{Input, TextError, Truncate};
use primer_plan::graph::Graph;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Arguments of `primer eval`.
#[derive(Args)]
pub(super) struct EvalArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Which data set the file belongs to
    #[arg(long)]
    task: Task,
    /// The data: GLUE's TSV with a header line, or SQuAD's JSON
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// What computes
    #[arg(long, default_value = "fixed")]
    engine: Engine,
    /// How fixed point drops low bits: rounded, or as two parties with random shares do
    #[arg(long, default_value = "shares")]
    truncation: Truncation,
    /// With `--engine fhe`: the degrees of its polynomials
    #[arg(long, default_value = "middle")]
    degrees: Degrees,
    /// Only the first N examples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// At most N tokens per input, longer ones are truncated (the model's own limit if not given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..))]
    tokens: Option<u64>,
    /// Examples computed side by side, each on one thread
    #[arg(long, value_name = "N", default_value_t = default_threads(),
          value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// With `--engine secure`: keep every answer in a file as it comes, and go on from it when started again
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Write every prediction to a file, one JSON object a line
    #[arg(long, value_name = "OUT.jsonl")]
    predictions: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

fn default_threads() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// What computes the answers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Single precision
    Float,
    /// The protocol's integers, in the clear
    Fixed,
    /// The private protocol itself, both parties in this process
    Secure,
    /// Comparator: polynomials in place of the non-linear functions, computed in the clear
    Fhe,
}

/// How good the comparator's polynomials are, and so how deep.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Degrees {
    /// What a shallow circuit allows
    Low,
    /// The comparator's default
    Middle,
    /// Twice the degrees of the default
    High,
}

impl Degrees {
    const fn polynomials(self) -> PolynomialDegrees {
        match self {
            Self::Low => PolynomialDegrees::LOW,
            Self::Middle => PolynomialDegrees::MIDDLE,
            Self::High => PolynomialDegrees::HIGH,
        }
    }
}

/// How fixed point truncates.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Truncation {
    /// Rounded to nearest
    Exact,
    /// The sum of two truncated random shares, as in the protocol
    Shares,
}

/// One example's answer.
struct Answer {
    logits: Vec<Vec<f64>>,
    float: Vec<Vec<f64>>,
    /// The protocol's integers in the clear, if they are not what is evaluated.
    fixed: Option<Vec<Vec<f64>>>,
    out_of_range: Vec<OutOfRange>,
    input: Input,
    /// The commit of the program that gave a private answer.
    commit: Option<String>,
}

pub(super) fn run(args: &EvalArgs) -> Result<()> {
    ensure_usage!(
        args.journal.is_none() || args.engine == Engine::Secure,
        "--journal is for --engine secure; the others are done before they could be interrupted"
    );
    let model = Model::load(args.model.model.as_deref())?;
    let mut examples =
        task::read(args.task, &args.data, &model.shape.head).context("reading the data")?;
    if let Some(limit) = args.limit {
        examples.truncate(limit as usize);
    }
    let limit = args
        .tokens
        .map_or(usize::MAX, |n| n as usize)
        .min(model.max_tokens());
    let prepared = match args.engine {
        Engine::Float | Engine::Fhe => None,
        Engine::Fixed | Engine::Secure => Some(model.prepare(
            args.model.prepared.as_deref(),
            args.model.calibration.as_ref(),
            args.model.scheme.attention(),
        )?),
    };
    let prepared = prepared.map(Arc::new);
    let polynomials = match args.engine {
        Engine::Fhe => {
            let inputs = model.calibration_inputs(args.model.calibration.as_ref())?;
            let degrees = args.degrees.polynomials();
            let bar = OnceCell::new();
            let polynomials = fit(&model.weights, &inputs, &degrees, |done, total| {
                let bar = bar.get_or_init(|| Progress::start("fitting polynomials", total));
                if done > 0 {
                    bar.tick();
                }
            });
            if let Some(bar) = bar.into_inner() {
                bar.finish();
            }
            Some(polynomials)
        }
        _ => None,
    };
    // Opened before the work, so that a bad path does not cost the results.
    let predictions = match &args.predictions {
        Some(path) => Some(
            std::fs::File::create(path)
                .with_context(|| format!("creating {}", path.display()))
                .map(std::io::BufWriter::new)?,
        ),
        None => None,
    };
    let commit = Provenance::here().commit;
    let mut journal = match (&args.journal, &prepared) {
        (Some(path), Some(prepared)) => {
            let identity = identity(args, &model, prepared, limit)?;
            Journal::open(path, &identity, &commit)?
        }
        _ => Journal::none(&commit),
    };
    let started = Instant::now();
    let evaluation = Evaluation {
        args,
        model: &model,
        prepared: prepared.as_ref(),
        polynomials: polynomials.as_ref(),
        limit,
    };
    let mut answers = evaluation.all(&examples)?;
    if args.engine == Engine::Secure {
        let kept = journal.done.len();
        evaluation.privately(&mut answers, &mut journal)?;
        if kept > 0 {
            eprintln!("primer: {kept} answers are those of the journal, and not in the time");
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let report = Report::new(args.task, &model, &examples, &answers);
    if let Some(mut out) = predictions {
        report
            .write_predictions(&examples, &answers, &mut out)
            .context("writing predictions")?;
    }
    report.print(args, &model.short_name(), seconds, &answers)
}

/// What is evaluated, in one hash: model, its integers and their scales, scheme, protocol, data and lengths.
fn identity(args: &EvalArgs, model: &Model, prepared: &IntModel, limit: usize) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&model.weights.digest());
    // Scales do not depend on the length.
    hasher.update(&prepared.plan(model.max_tokens())?.fingerprint());
    hasher.update(&primer_protocol::VERSION.to_le_bytes());
    hasher.update(args.model.scheme.name().as_bytes());
    hasher.update(args.task.name().as_bytes());
    hasher.update(&limit.to_le_bytes());
    let data = std::fs::read(&args.data);
    hasher.update(&data.with_context(|| format!("reading {}", args.data.display()))?);
    Ok(hasher.finalize().to_hex().to_string())
}

struct Evaluation<'a> {
    args: &'a EvalArgs,
    model: &'a Model,
    prepared: Option<&'a Arc<IntModel>>,
    polynomials: Option<&'a Polynomials>,
    limit: usize,
}

impl Evaluation<'_> {
    fn all(&self, examples: &[Example]) -> Result<Vec<Answer>> {
        let progress = Progress::start("evaluating", examples.len());
        let next = AtomicUsize::new(0);
        let results = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..self.args.threads.min(examples.len() as u64) {
                scope.spawn(|| {
                    let mut workspace = fixed::Workspace::default();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(example) = examples.get(index) else {
                            return;
                        };
                        let answer = self.one(example, &mut workspace);
                        let failed = answer.is_err();
                        results
                            .lock()
                            .expect("workers do not panic")
                            .insert(index, answer);
                        if failed {
                            // The other workers stop at their next example.
                            next.store(examples.len(), Ordering::Relaxed);
                            return;
                        }
                        progress.tick();
                    }
                });
            }
        });
        progress.finish();
        let results = results.into_inner().expect("workers do not panic");
        results
            .into_iter()
            .map(|(index, answer)| answer.with_context(|| format!("example {}", index + 1)))
            .collect()
    }

    fn encode(&self, example: &Example) -> Result<Input, TextError> {
        let truncate = match self.args.task {
            Task::Squad => Truncate::OnlySecond,
            _ => Truncate::LongestFirst,
        };
        let second = example.second.as_deref();
        let text = &self.model.text;
        let input = text.encode_padded(&example.first, second, self.limit, truncate)?;
        input.fits(&self.model.shape)?;
        Ok(input)
    }

    fn one(&self, example: &Example, workspace: &mut fixed::Workspace) -> Result<Answer> {
        let input = self.encode(example)?;
        let graph = Graph::bert(&self.model.shape, input.tokens());
        let float = float::run(&graph, &self.model.weights, &input, &mut NoObserver);
        let reals = |outputs: &[Matrix<f32>]| rows(&outputs[0].map(|v| f64::from(*v)));
        let float = reals(&float);
        let Some(prepared) = self.prepared else {
            let (logits, out_of_range) = match self.polynomials {
                None => (float.clone(), Vec::new()),
                Some(polynomials) => {
                    let mut watch = Watch::new(polynomials, &input);
                    let weights = &self.model.weights;
                    let outputs = float::run_with(&graph, weights, &input, polynomials, &mut watch);
                    let outside = |(value, outside): (usize, Outside)| OutOfRange {
                        value: graph.values[value].name.clone(),
                        count: outside.count,
                        worst: outside.worst,
                        limit: outside.limit,
                    };
                    let found = watch.found.into_iter().map(outside).collect();
                    (reals(&outputs), found)
                }
            };
            return Ok(Answer {
                logits,
                float,
                fixed: None,
                out_of_range,
                input,
                commit: None,
            });
        };
        let plan = prepared.plan(input.tokens())?;
        let mut rng = Prg::from_os();
        let mut shares = |_, _| modulus::random(&mut rng);
        let mut truncate = match self.args.truncation {
            Truncation::Exact => fixed::Truncate::Exact,
            Truncation::Shares => fixed::Truncate::Shares(&mut shares),
        };
        let outcome = fixed::run(&plan, prepared, &input, &mut truncate, workspace);
        let logits = rows(&outcome.reals[0]);
        Ok(Answer {
            fixed: (self.args.engine == Engine::Secure).then(|| logits.clone()),
            logits,
            float,
            out_of_range: outcome.out_of_range,
            input,
            commit: None,
        })
    }

    /// Replaces the logits by those of the private protocol, length by length.
    fn privately(&self, answers: &mut [Answer], journal: &mut Journal) -> Result<()> {
        let prepared = self.prepared.expect("prepared for this engine");
        let progress = Progress::start("private inference", answers.len());
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, answer) in answers.iter().enumerate() {
            if journal.done.contains_key(&index) {
                progress.tick();
            } else {
                let tokens = answer.input.tokens();
                by_length.entry(tokens).or_default().push(index);
            }
        }
        for indices in by_length.values() {
            let inputs: Vec<&Input> = indices.iter().map(|i| &answers[*i].input).collect();
            secure::run(prepared, self.args.model.scheme, &inputs, |at, reals| {
                journal.record(indices[at], rows(reals))?;
                progress.tick();
                Ok(())
            })?;
        }
        progress.finish();
        for (index, answer) in answers.iter_mut().enumerate() {
            let private = journal.done.remove(&index);
            let private = private.context("an example has no private answer")?;
            answer.logits = private.outputs;
            answer.commit = Some(private.commit);
        }
        Ok(())
    }
}

fn rows(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    (0..matrix.rows()).map(|r| matrix.row(r).to_vec()).collect()
}
