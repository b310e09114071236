//! `eval`: how accurate a model is, and how often fixed point agrees with float.

use super::{ModelArgs, choice, writable};
use crate::choice::Choice;
use crate::console::output;
use crate::console::progress::Stages;
use crate::eval::{Engine, Evaluation, Request, Truncation, evaluate};
use crate::scheme::Scheme;
use crate::task::Task;
use crate::{note, warning};
use anyhow::{Context, Result};
use clap::Args;
use std::io::BufWriter;
use std::path::PathBuf;

/// Arguments of `eval`, but for scheme and engine.
#[derive(Args)]
#[group(skip)]
pub struct EvalArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Which data set the file belongs to
    #[arg(long, value_parser = choice::<Task>())]
    task: Task,
    /// The data: GLUE's TSV with a header line, or SQuAD's JSON
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// How fixed point drops low bits: rounded, or as two parties with random shares do
    #[arg(long, default_value = "shares", value_parser = choice::<Truncation>())]
    truncation: Truncation,
    /// Only the first N examples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// At most N tokens per input, longer ones are truncated (the model's own limit if not given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..))]
    tokens: Option<u64>,
    /// Pad every input to at least N tokens, as a bundle for longer ones does
    #[arg(long, value_name = "N", default_value_t = 0)]
    pad: usize,
    /// With SQuAD: tokens that neighbouring windows of a long context share
    #[arg(long, value_name = "N", default_value_t = 64)]
    stride: usize,
    /// With SQuAD 2.0: say that there is no answer if that scores higher by more than this
    #[arg(
        long,
        value_name = "SCORE",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    null_threshold: f64,
    /// Examples computed side by side, each on one thread
    #[arg(long, value_name = "N", default_value_t = default_threads(),
          value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// With `--engine secure`: keep every answer in a file as it comes, and go on from it when
    /// started again
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

impl EvalArgs {
    fn request(&self, scheme: &'static dyn Scheme, engine: Engine) -> Request {
        Request {
            model: self.model.model.clone(),
            calibration: self.model.calibration.clone(),
            prepared: self.model.prepared.clone(),
            scheme,
            task: self.task,
            data: self.data.clone(),
            engine,
            truncation: self.truncation,
            limit: self.limit.map(|n| n as usize),
            tokens: self.tokens.map(|n| n as usize),
            pad: self.pad,
            stride: self.stride,
            null_threshold: self.null_threshold,
            threads: self.threads as usize,
            journal: self.journal.clone(),
        }
    }
}

/// Evaluates, and prints what was found.
///
/// # Errors
/// If the evaluation fails, or what is found cannot be written.
pub fn run(args: &EvalArgs, scheme: &'static dyn Scheme, engine: Engine) -> Result<()> {
    // Before the work, so that a bad path does not cost the results.
    if let Some(path) = &args.predictions {
        writable(path)?;
    }
    let stages = Stages::default();
    let found = evaluate(args.request(scheme, engine), &|what, done, total| {
        stages.tell(what, done, total);
    })?;
    if found.kept > 0 {
        let kept = found.kept;
        note!("primer: {kept} answers came from the journal and are not in the time");
    }
    if let Some(path) = &args.predictions {
        let file = std::fs::File::create(path);
        let file = file.with_context(|| format!("creating {}", path.display()))?;
        let written = found.write_predictions(&mut BufWriter::new(file));
        written.context("writing predictions")?;
    }
    warn(&found);
    if args.json {
        output::line(found.to_json()?)
    } else {
        output::text(text(&found))
    }
}

fn warn(found: &Evaluation) {
    for (value, seen) in &found.out_of_range() {
        warning!(
            "primer: {value} left its range in {} elements (reached {:.4}, limit {:.4}); \
             calibrate with text closer to the data (--calibration)",
            seen.count,
            seen.worst,
            seen.limit
        );
    }
    if let Some(flagged @ 1..) = found.flagged() {
        warning!(
            "primer: in {flagged} answers a value came near the end of its range, so they may be \
             wrong, and the client is told; calibrate with text closer to the data (--calibration)"
        );
    }
    let (shortened, n) = (found.truncated(), found.answers.len());
    if shortened > 0 {
        warning!("primer: {shortened} of {n} inputs were longer than the limit and truncated");
    }
}

fn text(found: &Evaluation) -> String {
    let (request, scores) = (&found.request, &found.scores);
    let percent = |part: f64| format!("{:.2} %", 100.0 * part);
    let engine = match request.engine {
        Engine::Float => "float".to_owned(),
        Engine::Fixed => format!("fixed ({} truncation)", request.truncation.name()),
        Engine::Comparator(comparator) => {
            let settings = comparator.settings();
            let settings = settings.iter().map(|(name, value)| match value.as_str() {
                Some(value) => format!("{name} {value}"),
                None => format!("{name} {value}"),
            });
            let settings: Vec<String> = settings.collect();
            format!(
                "{}, comparator ({})",
                comparator.name(),
                settings.join(", ")
            )
        }
        Engine::Secure => format!("secure (scheme {})", request.scheme.name()),
    };
    let right = match request.task {
        Task::Squad | Task::Squad2 => "exact match",
        _ => "accuracy",
    };
    let mut out = format!(
        "task        {} ({} examples)\n\
         engine      {engine}\n\
         {right:<11} {} (float: {})\n\
         F1          {}\n\
         agreement   {} with float\n",
        request.task.name(),
        found.examples.len(),
        percent(scores.accuracy),
        percent(scores.accuracy_of_float),
        percent(scores.f1),
        percent(scores.with_float),
    );
    if let Some(with_fixed) = scores.with_fixed {
        let with_fixed = percent(with_fixed);
        out += &format!("            {with_fixed} with fixed point in the clear\n");
    }
    if let Some(told) = found.told() {
        out += &format!(
            "told        {} right, {} right but flagged, {} wrong and flagged, {} wrong and not \
             flagged\n",
            told.right, told.right_flagged, told.wrong_flagged, told.wrong_unflagged
        );
    }
    if let Some(error) = found
        .logit_error()
        .filter(|_| !matches!(request.engine, Engine::Float))
    {
        out += &format!(
            "logits      off by {:.4} in the mean, 99 % by less than {:.3}, at most {:.3}\n",
            error.mean, error.p99, error.largest
        );
    }
    out += &format!("time        {:.1} s\n", found.seconds);
    out
}
