//! What an evaluation found, measured and printed.

use super::{Answer, Engine, EvalArgs};
use crate::provenance::Provenance;
use crate::source::Model;
use crate::task::{self, Example, Gold, Task};
use anyhow::Result;
use clap::ValueEnum;
use primer_model::fixed::OutOfRange;
use primer_model::text::Input;
use primer_plan::shape::Head;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

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

/// What was answered, and how right it is.
pub(super) struct Report {
    predicted: Predicted,
    accuracy: f64,
    f1: f64,
    /// Of single precision, on the same examples: a sample is easier or harder than the whole.
    accuracy_of_float: f64,
    /// The part whose answer is that of single precision.
    with_float: f64,
    /// The part whose answer is that of the protocol's integers in the clear.
    with_fixed: Option<f64>,
}

enum Predicted {
    Labels(Vec<usize>),
    Texts(Vec<String>),
}

/// The part of answers that two ways to compute have in common.
fn agreement<T: PartialEq>(ours: &[T], theirs: &[T]) -> f64 {
    let equal = ours.iter().zip(theirs).filter(|(a, b)| a == b);
    equal.count() as f64 / ours.len() as f64
}

impl Report {
    pub(super) fn new(task: Task, model: &Model, examples: &[Example], answers: &[Answer]) -> Self {
        let gold = examples.iter().map(|e| match e.gold {
            Gold::Label(label) => Some(label),
            Gold::Answers { .. } => None,
        });
        match (gold.collect::<Option<Vec<usize>>>(), &model.shape.head) {
            (Some(gold), Head::Classify { labels }) => {
                let positive = task::positive_label(task, labels);
                let of = |logits: &[Vec<f64>], _: &Answer, _: &Example| argmax(&logits[0]);
                let score = |predicted: &[usize]| {
                    task::accuracy_and_f1(predicted, &gold, labels.len(), positive)
                };
                Self::of(examples, answers, of, score, Predicted::Labels)
            }
            _ => {
                let of = |logits: &[Vec<f64>], answer: &Answer, example: &Example| {
                    answer_text(logits, &answer.input, example)
                };
                let score = |predicted: &[String]| task::exact_and_f1(predicted, examples);
                Self::of(examples, answers, of, score, Predicted::Texts)
            }
        }
    }

    /// Compares every way to compute the same answers: `of` reads an answer out of logits, `score` compares all with the data.
    fn of<T: PartialEq>(
        examples: &[Example],
        answers: &[Answer],
        of: impl Fn(&[Vec<f64>], &Answer, &Example) -> T,
        score: impl Fn(&[T]) -> task::Scores,
        predicted: impl Fn(Vec<T>) -> Predicted,
    ) -> Self {
        let all = |logits: fn(&Answer) -> Option<&Vec<Vec<f64>>>| -> Option<Vec<T>> {
            let pairs = answers.iter().zip(examples);
            pairs.map(|(a, e)| Some(of(logits(a)?, a, e))).collect()
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
            with_fixed: fixed.map(|fixed| agreement(&ours, &fixed)),
            predicted: predicted(ours),
        }
    }

    pub(super) fn write_predictions(
        &self,
        examples: &[Example],
        answers: &[Answer],
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        for (index, (example, answer)) in examples.iter().zip(answers).enumerate() {
            let line = match (&self.predicted, &example.gold) {
                (Predicted::Texts(texts), Gold::Answers { id, .. }) => {
                    json!({"id": id, "answer": texts[index]})
                }
                (Predicted::Labels(labels), _) => {
                    json!({"index": index, "label": labels[index], "logits": answer.logits[0]})
                }
                (Predicted::Texts(_), Gold::Label(_)) => continue,
            };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    pub(super) fn print(
        &self,
        args: &EvalArgs,
        model: &str,
        seconds: f64,
        answers: &[Answer],
    ) -> Result<()> {
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
        let degrees = args
            .degrees
            .to_possible_value()
            .expect("every choice has a name");
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
                "accuracy": self.accuracy, "f1": self.f1,
                "accuracy_of_float": self.accuracy_of_float, "agreement_with_float": self.with_float,
                "seconds": seconds, "truncated_inputs": shortened,
                "out_of_range": out_of_range.iter().map(|(value, seen)| json!({
                    "value": value, "elements": seen.count, "worst": seen.worst, "limit": seen.limit,
                })).collect::<Vec<_>>(),
            });
            match args.engine {
                Engine::Float => {}
                Engine::Fixed => object["truncation"] = json!(truncation.get_name()),
                Engine::Fhe => object["degrees"] = json!(degrees.get_name()),
                Engine::Secure => {
                    object["scheme"] = json!(args.model.scheme.name());
                    object["agreement_with_fixed"] = json!(self.with_fixed);
                }
            }
            let provenance = serde_json::to_value(Provenance::here())?;
            object["model"] = json!(model);
            for (name, value) in provenance.as_object().into_iter().flatten() {
                object[name] = value.clone();
            }
            // Answers out of a journal are those of the programs that gave them.
            let commits: BTreeSet<&str> =
                answers.iter().flat_map(|a| a.commit.as_deref()).collect();
            if !commits.is_empty() {
                object["commit"] = json!(Vec::from_iter(commits).join(", "));
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
            Engine::Fhe => println!(
                "engine      fhe, comparator: polynomials in the clear ({} degrees)",
                degrees.get_name()
            ),
            Engine::Secure => println!("engine      secure (scheme {})", args.model.scheme.name()),
        }
        println!(
            "{name:<11} {:.2} % (float: {:.2} %)",
            100.0 * self.accuracy,
            100.0 * self.accuracy_of_float
        );
        println!("F1          {:.2} %", 100.0 * self.f1);
        println!("agreement   {:.2} % with float", 100.0 * self.with_float);
        if let Some(with_fixed) = self.with_fixed {
            println!(
                "            {:.2} % with fixed point in the clear",
                100.0 * with_fixed
            );
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_compute_is_compared_on_the_same_examples() {
        let logits = |label: usize| vec![(0..3).map(|i| f64::from(u8::from(i == label))).collect()];
        // Right, what was answered, float, integers.
        let cases = [(0, 0, 0, 0), (1, 2, 1, 2), (2, 2, 2, 2), (0, 1, 1, 1)];
        let example = |&(gold, ..): &(usize, usize, usize, usize)| Example {
            first: String::new(),
            second: None,
            gold: Gold::Label(gold),
        };
        let answer = |&(_, ours, float, fixed): &(usize, usize, usize, usize)| Answer {
            logits: logits(ours),
            float: logits(float),
            fixed: Some(logits(fixed)),
            out_of_range: Vec::new(),
            input: Input {
                ids: Vec::new(),
                types: Vec::new(),
                length: 0,
                removed: 0,
                second: Vec::new(),
            },
            commit: None,
        };
        let examples: Vec<Example> = cases.iter().map(example).collect();
        let mut answers: Vec<Answer> = cases.iter().map(answer).collect();
        let gold = [0, 1, 2, 0];
        let report = |answers: &[Answer]| {
            let of = |logits: &[Vec<f64>], _: &Answer, _: &Example| argmax(&logits[0]);
            let score = |predicted: &[usize]| task::accuracy_and_f1(predicted, &gold, 3, 1);
            Report::of(&examples, answers, of, score, Predicted::Labels)
        };
        let all = report(&answers);
        assert_eq!((all.accuracy, all.accuracy_of_float), (0.5, 0.75));
        assert_eq!((all.with_float, all.with_fixed), (0.75, Some(1.0)));
        assert!(matches!(all.predicted, Predicted::Labels(labels) if labels == [0, 2, 2, 1]));
        answers[3].fixed = None;
        assert_eq!(report(&answers).with_fixed, None, "not of a part only");
    }
}
