//! How right the answers of an evaluation are, and what is told of it.

use super::{Engine, EvalAnswer, Evaluation, FlagTable, LogitError, Request};
use crate::choice::Choice;
use crate::provenance::Provenance;
use crate::task::{self, Example, Gold, Task};
use anyhow::Result;
use primer::client::argmax;
use primer::client::span::{ContextAnswer, characters};
use primer_model::fixed::OutOfRange;
use primer_plan::shape::Head;
use primer_text::Input;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// The outputs of one input of an example.
type Outputs<'a> = (&'a [Vec<f64>], &'a Input);

/// Returns the text that start and end scores of all windows point at; none if that is better by
/// more than a threshold.
fn answer_text(windows: &[Outputs<'_>], example: &Example, threshold: f64) -> String {
    let pairs = |rows: &[Vec<f64>]| rows.iter().map(|row| (row[0], row[1])).collect();
    let scores: Vec<Vec<(f64, f64)>> = windows.iter().map(|(rows, _)| pairs(rows)).collect();
    let places = windows.iter().map(|(_, input)| &input.second[..]);
    let found = ContextAnswer::over(scores.iter().map(Vec::as_slice).zip(places));
    let context = example.second.as_deref().unwrap_or_default();
    found
        .and_then(|found| found.answer(threshold))
        .map(|span| characters(context, (span.start, span.end)).to_owned())
        .unwrap_or_default()
}

/// What was answered, and how right it is.
pub struct Scores {
    predicted: Predicted,
    /// The part that is right; of answers in a text, that is exactly right.
    pub accuracy: f64,
    /// The F1 score.
    pub f1: f64,
    /// Of single precision, on the same examples: a sample is easier or harder than the whole.
    pub accuracy_of_float: f64,
    /// The part whose answer is that of single precision.
    pub with_float: f64,
    /// The part whose answer is that of the protocol's integers in the clear.
    pub with_fixed: Option<f64>,
    /// Which examples have another answer than single precision gives.
    wrong: Vec<bool>,
}

enum Predicted {
    Labels(Vec<usize>),
    Texts(Vec<String>),
}

/// Returns the part of answers that two ways to compute have in common.
fn agreement<T: PartialEq>(ours: &[T], theirs: &[T]) -> f64 {
    let equal = ours.iter().zip(theirs).filter(|(a, b)| a == b);
    equal.count() as f64 / ours.len() as f64
}

impl Scores {
    pub(super) fn new(
        request: &Request,
        head: &Head,
        examples: &[Example],
        answers: &[EvalAnswer],
    ) -> Self {
        let task = request.task;
        let gold = examples.iter().map(|e| match e.gold {
            Gold::Label(label) => Some(label),
            Gold::Answers { .. } => None,
        });
        match (gold.collect::<Option<Vec<usize>>>(), head) {
            (Some(gold), Head::Classify { labels, .. }) => {
                let positive = task::positive_label(task, labels);
                let of = |inputs: &[Outputs<'_>], _: &Example| argmax(&inputs[0].0[0]);
                let score = |predicted: &[usize]| {
                    task::accuracy_and_f1(predicted, &gold, labels.len(), positive)
                };
                Self::of(examples, answers, of, score, Predicted::Labels)
            }
            _ => {
                let threshold = match task {
                    Task::Squad2 => request.null_threshold,
                    _ => f64::INFINITY,
                };
                let of = |windows: &[Outputs<'_>], example: &Example| {
                    answer_text(windows, example, threshold)
                };
                let score = |predicted: &[String]| task::exact_and_f1(predicted, examples);
                Self::of(examples, answers, of, score, Predicted::Texts)
            }
        }
    }

    /// Compares every way to compute the same answers: `of` reads an answer out of the logits of
    /// all inputs that an example has, `score` compares all with the data.
    fn of<T: PartialEq>(
        examples: &[Example],
        answers: &[EvalAnswer],
        of: impl Fn(&[Outputs<'_>], &Example) -> T,
        score: impl Fn(&[T]) -> task::Scores,
        predicted: impl Fn(Vec<T>) -> Predicted,
    ) -> Self {
        let all = |logits: fn(&EvalAnswer) -> Option<&Vec<Vec<f64>>>| -> Option<Vec<T>> {
            let mut inputs: Vec<Vec<Outputs<'_>>> = vec![Vec::new(); examples.len()];
            for answer in answers {
                inputs[answer.example].push((logits(answer)?, &answer.input));
            }
            let pairs = inputs.iter().zip(examples);
            Some(pairs.map(|(inputs, example)| of(inputs, example)).collect())
        };
        let ours = all(|a| Some(&a.logits)).unwrap_or_default();
        let float = all(|a| Some(&a.float)).unwrap_or_default();
        let fixed = all(|a| a.fixed.as_ref());
        let scores = score(&ours);
        Self {
            accuracy: scores.accuracy,
            f1: scores.f1,
            accuracy_of_float: score(&float).accuracy,
            with_float: agreement(&ours, &float),
            wrong: ours.iter().zip(&float).map(|(a, b)| a != b).collect(),
            with_fixed: fixed.map(|fixed| agreement(&ours, &fixed)),
            predicted: predicted(ours),
        }
    }
}

impl Evaluation {
    /// Counts the inputs that were cut because they were too long.
    pub fn truncated(&self) -> usize {
        self.answers.iter().filter(|a| a.input.removed > 0).count()
    }

    /// Lists the values that left their range anywhere, with how often and how far.
    pub fn out_of_range(&self) -> BTreeMap<String, OutOfRange> {
        worst_by_value(&self.answers)
    }

    /// Answers whose client was told that a value came near the end of its range, or would be told;
    /// `None` if clients are not told.
    pub fn flagged(&self) -> Option<usize> {
        flagged(&self.answers)
    }

    /// Counts examples by whether they are right and whether the client is told; `None` if no
    /// client is.
    pub fn told(&self) -> Option<FlagTable> {
        FlagTable::count(&self.scores.wrong, &self.answers)
    }

    /// Tells by how much logits differ from those of single precision.
    pub fn logit_error(&self) -> Option<LogitError> {
        LogitError::of(&self.answers)
    }

    /// Returns the part of private answers whose client was told what the integers in the clear
    /// would tell.
    fn flags_as_fixed(&self) -> Option<f64> {
        let pairs = self
            .answers
            .iter()
            .map(|a| a.in_range.zip(a.fixed_in_range));
        let pairs: Vec<(bool, bool)> = pairs.collect::<Option<_>>()?;
        let equal = pairs.iter().filter(|(ours, fixed)| ours == fixed).count();
        Some(equal as f64 / pairs.len() as f64)
    }

    /// Returns it as `primer eval --json` prints it.
    ///
    /// # Errors
    /// If a figure has no form in JSON.
    pub fn to_json(&self) -> Result<Value> {
        let (request, scores) = (&self.request, &self.scores);
        let out_of_range = self.out_of_range();
        let outside = out_of_range.iter().map(|(value, seen)| {
            json!({
                "value": value, "elements": seen.count, "worst": seen.worst, "limit": seen.limit,
            })
        });
        let mut object = json!({
            "task": request.task.name(), "engine": request.engine.name(), "n": self.examples.len(),
            "accuracy": scores.accuracy, "f1": scores.f1,
            "accuracy_of_float": scores.accuracy_of_float,
            "agreement_with_float": scores.with_float,
            "seconds": self.seconds, "truncated_inputs": self.truncated(),
            "out_of_range": outside.collect::<Vec<_>>(),
        });
        if request.task.is_extractive() {
            object["windows"] = json!(self.answers.len());
            object["stride"] = json!(request.stride);
        }
        if request.task == Task::Squad2 {
            object["null_threshold"] = json!(request.null_threshold);
        }
        match request.engine {
            Engine::Float => {}
            Engine::Fixed => {
                object["scheme"] = json!(request.scheme.name());
                object["truncation"] = json!(request.truncation.name());
            }
            Engine::Comparator(comparator) => {
                for (name, value) in comparator.settings() {
                    object[name] = value;
                }
            }
            Engine::Secure => {
                object["scheme"] = json!(request.scheme.name());
                object["agreement_with_fixed"] = json!(scores.with_fixed);
                object["flags_as_fixed"] = json!(self.flags_as_fixed());
            }
        }
        if request.engine.is_of_integers() {
            object["answers_out_of_range"] = json!(self.flagged());
            object["told"] = json!(self.told());
        }
        if !matches!(request.engine, Engine::Float) {
            object["logit_error"] = json!(self.logit_error());
        }
        let provenance = serde_json::to_value(Provenance::here())?;
        object["model"] = json!(self.model);
        for (name, value) in provenance.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        // Answers out of a journal are those of the programs that gave them.
        let commits = self.answers.iter().flat_map(|a| a.commit.as_deref());
        let commits: BTreeSet<&str> = commits.collect();
        if !commits.is_empty() {
            object["commit"] = json!(Vec::from_iter(commits).join(", "));
        }
        Ok(object)
    }

    /// Writes every prediction, one JSON object a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_predictions(&self, out: &mut impl Write) -> std::io::Result<()> {
        for (index, example) in self.examples.iter().enumerate() {
            let line = match (&self.scores.predicted, &example.gold) {
                (Predicted::Texts(texts), Gold::Answers { id, .. }) => {
                    json!({"id": id, "answer": texts[index]})
                }
                (Predicted::Labels(labels), _) => {
                    // An example with a label is one input.
                    let logits = &self.answers[index].logits[0];
                    json!({"index": index, "label": labels[index], "logits": logits})
                }
                (Predicted::Texts(_), Gold::Label(_)) => continue,
            };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

fn flagged(answers: &[EvalAnswer]) -> Option<usize> {
    let told: Option<Vec<bool>> = answers.iter().map(|a| a.in_range).collect();
    told.map(|told| told.iter().filter(|in_range| !**in_range).count())
}

fn worst_by_value(answers: &[EvalAnswer]) -> BTreeMap<String, OutOfRange> {
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

#[cfg(test)]
mod tests;
