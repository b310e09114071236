//! How accurate a model is, and how often fixed point agrees with float.
//!
//! Three [engines](Engine): single precision, the protocol's integers in the clear, and the
//! protocol itself, with both parties in this process. Others can be compared with them
//! ([`Comparator`]).
//!
//! `answers` computes them, `journal` keeps private ones as they come, [`scores`] compares them
//! with the data and with each other, `told` with the range flags that go with them.

mod answers;
mod comparator;
mod engine;
mod flag_table;
mod journal;
pub mod scores;

pub use answers::{EvalAnswer, reals};
pub use comparator::{Comparator, Fitted};
pub use engine::{Engine, Truncation};
pub use flag_table::{FlagTable, LogitError};
pub use scores::Scores;

use self::answers::EvalRun;
use self::journal::Journal;
use crate::Progress;
use crate::choice::Choice;
use crate::ensure_usage;
use crate::provenance::Provenance;
use crate::scheme::Scheme;
use crate::task::{self, Example, Task};
use anyhow::{Context, Result};
use primer::source::Model;
use primer_model::quantise::IntModel;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What is evaluated.
#[derive(Clone)]
pub struct Request {
    /// A model directory; the embedded model if there is none.
    pub model: Option<PathBuf>,
    /// Text whose activation ranges set the scales; a built-in one if there is none.
    pub calibration: Option<PathBuf>,
    /// Scales and integer weights that were prepared before.
    pub prepared: Option<PathBuf>,
    /// The scheme, which says what the integers are.
    pub scheme: &'static dyn Scheme,
    /// The data set.
    pub task: Task,
    /// Its file.
    pub data: PathBuf,
    /// What computes.
    pub engine: Engine,
    /// How fixed point drops low bits.
    pub truncation: Truncation,
    /// How many examples are taken, the first ones; all if it is not given.
    pub limit: Option<usize>,
    /// The most tokens of an input.
    pub tokens: Option<usize>,
    /// The least tokens of padding and input together.
    pub pad: usize,
    /// Tokens that neighbouring windows of a long context share.
    pub stride: usize,
    /// Of SQuAD 2.0: there is no answer if the score of there being none is higher by more.
    pub null_threshold: f64,
    /// Examples that are computed side by side in the clear.
    pub threads: usize,
    /// Where private answers are kept as they come.
    pub journal: Option<PathBuf>,
}

/// What an evaluation found.
pub struct Evaluation {
    /// What was asked for.
    pub request: Request,
    /// The model's name.
    pub model: String,
    /// The examples.
    pub examples: Vec<Example>,
    /// An answer for each of them; for each window, if a context takes several.
    pub answers: Vec<EvalAnswer>,
    /// How right they are.
    pub scores: Scores,
    /// Seconds that the answers took.
    pub seconds: f64,
    /// Answers that the journal had before, and that are not in the seconds.
    pub kept: usize,
}

/// Answers every example, and compares.
///
/// # Errors
/// If the model or the data is not usable, the options do not go together, or the protocol fails.
pub fn evaluate(request: Request, progress: Progress<'_>) -> Result<Evaluation> {
    ensure_usage!(
        request.journal.is_none() || request.engine.is_private(),
        "--journal is for --engine secure; the others are done before they could be interrupted"
    );
    let model = Model::load(request.model.as_deref())?;
    let limit = request.tokens.unwrap_or(usize::MAX).min(model.max_tokens());
    ensure_usage!(
        request.pad <= limit,
        "inputs of at most {limit} tokens cannot be padded to {}",
        request.pad
    );
    let mut examples =
        task::read(request.task, &request.data, &model.shape.head).context("reading the data")?;
    examples.truncate(request.limit.unwrap_or(usize::MAX));
    let prepared = match request.engine {
        Engine::Float | Engine::Comparator(_) => None,
        Engine::Fixed | Engine::Secure => Some(Arc::new(model.prepare_as(
            &request.scheme.weights(&model.weights),
            request.prepared.as_deref(),
            request.calibration.as_deref(),
            |done, total| progress("calibrating", done, total),
        )?)),
    };
    let fitted = match request.engine {
        Engine::Comparator(comparator) => {
            let inputs = model.calibration_inputs(request.calibration.as_deref())?;
            Some(comparator.fit(&model, &inputs, progress)?)
        }
        _ => None,
    };
    let commit = Provenance::here().commit;
    let mut journal = match (&request.journal, &prepared) {
        (Some(path), Some(prepared)) => {
            let identity = identity(&request, &model, prepared, limit)?;
            Journal::open(path, &identity, &commit)?
        }
        _ => Journal::none(&commit),
    };
    let started = Instant::now();
    let work = EvalRun {
        request: &request,
        model: &model,
        prepared: prepared.as_ref(),
        fitted: fitted.as_deref(),
        limit,
        progress,
    };
    let mut answers = work.in_the_clear(&examples)?;
    let kept = journal.done.len();
    if request.engine.is_private() {
        work.privately(&mut answers, &mut journal)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Evaluation {
        scores: Scores::new(&request, &model.shape.head, &examples, &answers),
        model: model.short_name(),
        request,
        examples,
        answers,
        seconds,
        kept,
    })
}

/// Hashes what is evaluated: model, its integers and their scales, scheme, protocol, data and
/// lengths.
fn identity(request: &Request, model: &Model, prepared: &IntModel, limit: usize) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&model.weights.digest());
    // Scales do not depend on the length.
    hasher.update(&prepared.plan(model.max_tokens())?.fingerprint());
    hasher.update(&request.scheme.version().to_le_bytes());
    hasher.update(request.scheme.name().as_bytes());
    hasher.update(request.task.name().as_bytes());
    hasher.update(&limit.to_le_bytes());
    hasher.update(&request.pad.to_le_bytes());
    if request.task.is_extractive() {
        hasher.update(&request.stride.to_le_bytes());
    }
    let data = std::fs::read(&request.data);
    hasher.update(&data.with_context(|| format!("reading {}", request.data.display()))?);
    Ok(hasher.finalize().to_hex().to_string())
}
