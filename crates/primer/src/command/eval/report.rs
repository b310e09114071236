//! What an evaluation found, measured and printed.

use super::{Answer, Engine, EvalArgs};
use crate::provenance::Provenance;
use crate::source::Model;
use crate::task::{self, Example, Gold, Task};
use anyhow::Result;
use clap::ValueEnum;
use primer_model::fixed::OutOfRange;
use primer_model::text::Input;
use serde_json::json;
use std::collections::BTreeMap;
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

pub(super) enum Report {
    Labels {
        predicted: Vec<usize>,
        agreement: f64,
        /// With the protocol's integers in the clear.
        with_fixed: Option<f64>,
        scores: task::Scores,
    },
    Texts {
        predicted: Vec<String>,
        agreement: f64,
        with_fixed: Option<f64>,
        score: task::SquadScore,
    },
}

impl Report {
    pub(super) fn new(task: Task, model: &Model, examples: &[Example], answers: &[Answer]) -> Self {
        let n = examples.len() as f64;
        if task == Task::Squad {
            let texts = |logits: fn(&Answer) -> &[Vec<f64>]| -> Vec<String> {
                let pairs = answers.iter().zip(examples);
                pairs
                    .map(|(a, e)| answer_text(logits(a), &a.input, e))
                    .collect()
            };
            let predicted = texts(|a| &a.logits);
            let same = |others: Vec<String>| {
                let equal = predicted.iter().zip(&others).filter(|(p, f)| p == f);
                equal.count() as f64 / n
            };
            let agreement = same(texts(|a| &a.float));
            let with_fixed = (answers.iter().all(|a| a.fixed.is_some()))
                .then(|| same(texts(|a| a.fixed.as_deref().unwrap_or_default())));
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
                agreement,
                with_fixed,
                score,
            };
        }
        let predicted: Vec<usize> = answers.iter().map(|a| argmax(&a.logits[0])).collect();
        let same = |other: fn(&Answer) -> Option<&[f64]>| -> Option<f64> {
            let equal = (answers.iter().zip(&predicted))
                .map(|(answer, label)| Some(argmax(other(answer)?) == *label));
            let equal: Option<Vec<bool>> = equal.collect();
            Some(equal?.into_iter().filter(|same| *same).count() as f64 / n)
        };
        let agreement = same(|a| Some(&a.float[0])).unwrap_or(0.0);
        let with_fixed = same(|a| Some(&a.fixed.as_ref()?[0]));
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
            agreement,
            with_fixed,
            scores,
        }
    }

    pub(super) fn write_predictions(
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

    pub(super) fn print(
        &self,
        args: &EvalArgs,
        model: &str,
        seconds: f64,
        answers: &[Answer],
    ) -> Result<()> {
        let (accuracy, f1, agreement, with_fixed) = match self {
            Self::Labels {
                agreement,
                with_fixed,
                scores,
                ..
            } => (scores.accuracy, scores.f1, *agreement, *with_fixed),
            Self::Texts {
                agreement,
                with_fixed,
                score,
                ..
            } => (score.exact, score.f1, *agreement, *with_fixed),
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
                "accuracy": accuracy, "f1": f1, "agreement_with_float": agreement,
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
                    object["agreement_with_fixed"] = json!(with_fixed);
                }
            }
            let provenance = serde_json::to_value(Provenance::here())?;
            object["model"] = json!(model);
            for (name, value) in provenance.as_object().into_iter().flatten() {
                object[name] = value.clone();
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
        println!("{name:<11} {:.2} %", 100.0 * accuracy);
        println!("F1          {:.2} %", 100.0 * f1);
        println!("agreement   {:.2} % with float", 100.0 * agreement);
        if let Some(with_fixed) = with_fixed {
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
