//! `primer eval`: how accurate a model is, and how often fixed point agrees with float.

use super::ModelArgs;
use crate::progress::Progress;
use crate::source::Model;
use crate::task::{self, Example, Gold, Task};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use primer_model::fixed::{self, OutOfRange};
use primer_model::float::{self, NoObserver};
use primer_model::quantise::IntModel;
use primer_model::text::{Input, TextError, Truncate};
use primer_plan::graph::Graph;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    out_of_range: Vec<OutOfRange>,
    input: Input,
}

pub(super) fn run(args: &EvalArgs) -> Result<()> {
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
        Engine::Float => None,
        Engine::Fixed => Some(model.prepare(
            args.model.prepared.as_deref(),
            args.model.calibration.as_ref(),
            args.model.scheme.attention(),
        )?),
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
    let started = Instant::now();
    let evaluation = Evaluation {
        args,
        model: &model,
        prepared: prepared.as_ref(),
        limit,
    };
    let answers = evaluation.all(&examples)?;
    let seconds = started.elapsed().as_secs_f64();
    let report = Report::new(args.task, &model, &examples, &answers);
    if let Some(mut out) = predictions {
        report
            .write_predictions(&examples, &answers, &mut out)
            .context("writing predictions")?;
    }
    report.print(args, seconds, &answers)
}

struct Evaluation<'a> {
    args: &'a EvalArgs,
    model: &'a Model,
    prepared: Option<&'a IntModel>,
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
        let rows = |m: &primer_ring::matrix::Matrix<f64>| -> Vec<Vec<f64>> {
            (0..m.rows()).map(|r| m.row(r).to_vec()).collect()
        };
        let float = rows(&float[0].map(|v| f64::from(*v)));
        let (logits, out_of_range) = match self.prepared {
            None => (float.clone(), Vec::new()),
            Some(prepared) => {
                let plan = prepared.plan(input.tokens())?;
                let mut rng = Prg::from_os();
                let mut shares = |_, _| modulus::random(&mut rng);
                let mut truncate = match self.args.truncation {
                    Truncation::Exact => fixed::Truncate::Exact,
                    Truncation::Shares => fixed::Truncate::Shares(&mut shares),
                };
                let outcome = fixed::run(&plan, prepared, &input, &mut truncate, workspace);
                (rows(&outcome.reals[0]), outcome.out_of_range)
            }
        };
        Ok(Answer {
            logits,
            float,
            out_of_range,
            input,
        })
    }
}

fn argmax(values: &[f64]) -> usize {
    let better = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, better)
}

/// The text that start and end scores point at.
fn answer_text(logits: &[Vec<f64>], input: &Input, example: &Example) -> String {
    let pairs: Vec<(f64, f64)> = logits.iter().map(|row| (row[0], row[1])).collect();
    let context = example.second.as_deref().unwrap_or_default();
    task::best_span(&pairs, &input.second)
        .map(|span| task::characters(context, span).to_owned())
        .unwrap_or_default()
}

enum Report {
    Labels {
        predicted: Vec<usize>,
        agreement: f64,
        scores: task::Scores,
    },
    Texts {
        predicted: Vec<String>,
        agreement: f64,
        score: task::SquadScore,
    },
}

impl Report {
    fn new(task: Task, model: &Model, examples: &[Example], answers: &[Answer]) -> Self {
        let n = examples.len() as f64;
        if task == Task::Squad {
            let texts = |logits: fn(&Answer) -> &[Vec<f64>]| -> Vec<String> {
                let pairs = answers.iter().zip(examples);
                pairs
                    .map(|(a, e)| answer_text(logits(a), &a.input, e))
                    .collect()
            };
            let predicted = texts(|a| &a.logits);
            let float = texts(|a| &a.float);
            let same = predicted.iter().zip(&float).filter(|(p, f)| p == f).count();
            let mut score = task::SquadScore {
                exact: 0.0,
                f1: 0.0,
            };
            for (text, example) in predicted.iter().zip(examples) {
                let Gold::Answers { texts, .. } = &example.gold else {
                    continue;
                };
                score.exact += task::exact_match(text, texts) / n;
                score.f1 += task::f1(text, texts) / n;
            }
            return Self::Texts {
                predicted,
                agreement: same as f64 / n,
                score,
            };
        }
        let predicted: Vec<usize> = answers.iter().map(|a| argmax(&a.logits[0])).collect();
        let same = answers
            .iter()
            .filter(|a| argmax(&a.logits[0]) == argmax(&a.float[0]))
            .count();
        let gold: Vec<usize> = examples
            .iter()
            .map(|e| match e.gold {
                Gold::Label(label) => label,
                Gold::Answers { .. } => unreachable!("only SQuAD has answers"),
            })
            .collect();
        let labels = match &model.shape.head {
            primer_plan::shape::Head::Classify { labels } => labels,
            _ => unreachable!("reading the task checked the head"),
        };
        let scores = task::accuracy_and_f1(
            &predicted,
            &gold,
            labels.len(),
            task::positive_label(task, labels),
        );
        Self::Labels {
            predicted,
            agreement: same as f64 / n,
            scores,
        }
    }

    fn write_predictions(
        &self,
        examples: &[Example],
        answers: &[Answer],
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        for (index, (example, answer)) in examples.iter().zip(answers).enumerate() {
            let line = match (self, &example.gold) {
                (Self::Texts { predicted, .. }, Gold::Answers { id, .. }) => {
                    json!({"id": id, "answer": predicted[index]})
                }
                (Self::Labels { predicted, .. }, _) => {
                    json!({"index": index, "label": predicted[index], "logits": answer.logits[0]})
                }
                (Self::Texts { .. }, Gold::Label(_)) => continue,
            };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    fn print(&self, args: &EvalArgs, seconds: f64, answers: &[Answer]) -> Result<()> {
        let (accuracy, f1, agreement) = match self {
            Self::Labels {
                agreement, scores, ..
            } => (scores.accuracy, scores.f1, *agreement),
            Self::Texts {
                agreement, score, ..
            } => (score.exact, score.f1, *agreement),
        };
        let n = answers.len();
        let shortened = answers.iter().filter(|a| a.input.removed > 0).count();
        let out_of_range = worst_by_value(answers);
        let engine = args
            .engine
            .to_possible_value()
            .expect("every engine has a name");
        let truncation = args
            .truncation
            .to_possible_value()
            .expect("every form has a name");
        for (value, seen) in &out_of_range {
            eprintln!(
                "primer: {value} left its range in {} elements (reached {:.4}, limit {:.4}); \
                 calibrate with text closer to the data (--calibration)",
                seen.count, seen.worst, seen.limit
            );
        }
        if shortened > 0 {
            eprintln!("primer: {shortened} of {n} inputs were longer than the limit and truncated");
        }
        if args.json {
            let mut object = json!({
                "task": args.task.name(), "engine": engine.get_name(), "n": n,
                "accuracy": accuracy, "f1": f1, "agreement_with_float": agreement,
                "seconds": seconds, "truncated_inputs": shortened,
                "out_of_range": out_of_range.iter().map(|(value, seen)| json!({
                    "value": value, "elements": seen.count, "worst": seen.worst, "limit": seen.limit,
                })).collect::<Vec<_>>(),
            });
            if args.engine == Engine::Fixed {
                object["truncation"] = json!(truncation.get_name());
            }
            println!("{object}");
            return Ok(());
        }
        let name = if args.task == Task::Squad {
            "exact match"
        } else {
            "accuracy"
        };
        println!("task        {} ({n} examples)", args.task.name());
        match args.engine {
            Engine::Float => println!("engine      float"),
            Engine::Fixed => println!("engine      fixed ({} truncation)", truncation.get_name()),
        }
        println!("{name:<11} {:.2} %", 100.0 * accuracy);
        println!("F1          {:.2} %", 100.0 * f1);
        println!("agreement   {:.2} % with float", 100.0 * agreement);
        println!("time        {seconds:.1} s");
        Ok(())
    }
}

fn worst_by_value(answers: &[Answer]) -> BTreeMap<String, OutOfRange> {
    let mut worst: BTreeMap<String, OutOfRange> = BTreeMap::new();
    for seen in answers.iter().flat_map(|a| &a.out_of_range) {
        worst
            .entry(seen.value.clone())
            .and_modify(|w| {
                w.count += seen.count;
                w.worst = w.worst.max(seen.worst);
            })
            .or_insert_with(|| seen.clone());
    }
    worst
}
