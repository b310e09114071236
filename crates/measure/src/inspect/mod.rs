//! The plan of a model, and what an inference by it will cost: what `inspect` prints.

mod text;

use crate::scheme::{Cost, Scheme, Terms};
use anyhow::Result;
use primer_model::quantise::IntModel;
use primer_plan::function::Function;
use primer_plan::graph::{Op, Step, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::scales::{Scale, WEIGHT_BITS};
use primer_plan::shape::{Head, Pooling, Problem, Shape};
use primer_ring::modulus::{K, P};
use primer_rlwe::params::{Params, SECURITY_TABLE};
use serde_json::{Value, json};

/// A plan, and what one inference by it takes on the way and in the stores.
pub struct Inspected {
    name: String,
    plan: Plan,
    scheme: &'static str,
    cost: Cost,
    terms: Terms,
}

impl Inspected {
    /// Looks at a model in integers, under its name, for inputs of a number of tokens.
    ///
    /// # Errors
    /// If the model has no plan of the scheme.
    pub fn of(name: &str, model: &IntModel, tokens: usize, scheme: &dyn Scheme) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            plan: model.plan(tokens)?,
            scheme: scheme.name(),
            cost: scheme.costs(model, tokens, 1)?.whole,
            terms: scheme.terms(model, tokens)?,
        })
    }
}

impl Inspected {
    /// Returns it as one JSON object.
    pub fn json(&self) -> Value {
        let (plan, cost, terms) = (&self.plan, &self.cost, &self.terms);
        let graph = plan.graph();
        let shape = &graph.shape;
        let bytes = &cost.bytes;
        let steps: Vec<Value> = graph
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| {
                let value = graph.value(step.output());
                let scale = match plan.scale(step.output()) {
                    Scale::Accumulator {
                        fraction,
                        ring_bits,
                    }
                    | Scale::Small {
                        fraction,
                        ring_bits,
                    } => {
                        json!({"bits": K, "fraction": fraction, "ring_bits": ring_bits})
                    }
                    Scale::Fixed { bits, fraction } => json!({"bits": bits, "fraction": fraction}),
                };
                json!({
                    "step": step.paper.name(), "layer": step.layer, "value": value.name,
                    "operation": operation(step), "rows": value.rows, "cols": value.cols,
                    "scale": scale, "classes": classes_json(plan, index),
                })
            })
            .collect();
        let by_step: serde_json::Map<String, Value> = graph
            .counts_by_step()
            .into_iter()
            .map(|(step, counts)| (step.name().to_owned(), json!(counts)))
            .collect();
        json!({
            "model": self.name,
            "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads, "ffn": shape.ffn,
            "vocab": shape.vocab, "positions": shape.positions, "head": head_name(shape),
            "family": shape.family.name(), "architecture": shape.architecture(),
            "tokens": graph.tokens, "modulus": P, "modulus_bits": K, "weight_bits": WEIGHT_BITS,
            "encryption": terms.encryption, "security_bits": 123,
            "inferences_within_40_bits": terms.inferences.floor(),
            "wrong_share_odds": terms.odds, "scheme": self.scheme,
            "bits_per_answer": terms.answer_bits,
            "bits_per_answer_of_labels": terms.label_bits,
            "fingerprint": hex(&plan.fingerprint()),
            "and_gates": cost.and_gates,
            "bytes": {
                "offline_up": bytes.offline_up, "offline_down": bytes.offline_down,
                "online_up": bytes.online_up, "online_down": bytes.online_down,
            },
            "stored": {"client": cost.client_stored, "server": cost.server_stored},
            "hint_bytes": cost.hint,
            "multiplier_bytes": terms.multipliers,
            "steps": steps, "counts": graph.counts(), "counts_by_step": by_step,
        })
    }
}

/// Describes homomorphic parameters in a sentence: degree, modulus and the bound of the security
/// table.
pub fn bfv(params: &Params) -> String {
    let bits = params.modulus_bits(params.all_primes());
    let limit = SECURITY_TABLE
        .iter()
        .find(|(degree, _)| *degree == params.degree());
    let limit = limit.map_or(0, |(_, limit)| *limit);
    format!(
        "BFV, degree {}, modulus {bits:.0} bits of at most {limit} for 128-bit security",
        params.degree()
    )
}

fn head_name(shape: &Shape) -> String {
    match &shape.head {
        Head::Classify {
            labels, problem, ..
        } => {
            let kind = match problem {
                Problem::SingleLabel => "classifier",
                Problem::MultiLabel => "classifier, several labels",
                Problem::Regression => "regression",
            };
            format!("{kind} ({})", labels.join(", "))
        }
        Head::Tokens { labels } => format!("classifier of tokens ({})", labels.join(", ")),
        Head::Sentence {
            pooling,
            normalised,
        } => {
            let pooled = match pooling {
                Pooling::Mean => "sentence embedding, mean of all tokens",
                Pooling::First => "sentence embedding, first token",
            };
            format!("{pooled}{}", if *normalised { ", normalised" } else { "" })
        }
        Head::Span => "span (question answering)".to_owned(),
        Head::Encoder { pooled: true } => "encoder with pooler".to_owned(),
        Head::Encoder { pooled: false } => "encoder".to_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn operation(step: &Step) -> &'static str {
    match step.op {
        Op::Embed { .. } => "one-hot product",
        Op::Linear { .. } => "linear",
        Op::Scores { .. } => "query x key",
        Op::MergedScores { .. } => "input x W x input",
        Op::Mix { .. } => "probability x value",
        Op::SquareSum { .. } => "sum of squares",
        Op::ScaleRows { .. } => "rows x factor",
        Op::Exponents { .. } => "score - reference",
        Op::RowSum { .. } => "sum of a row",
        Op::Kept { .. } => "not padding",
        Op::Pool { .. } => "sum of rows",
        Op::Stop { function, .. } => match function {
            StopFunction::Requantise => "requantise",
            StopFunction::Softmax => "softmax",
            StopFunction::Activation => "activation",
            StopFunction::InverseRoot => "1 / root",
            StopFunction::Tanh => "tanh",
            StopFunction::Summary => "activation",
            StopFunction::CoarseMaximum => "coarse maximum",
            StopFunction::Power => "power of two",
            StopFunction::Reciprocal => "reciprocal",
        },
    }
}

fn classes_json(plan: &Plan, index: usize) -> Value {
    match plan.function(index) {
        Some(Function::Sorted(sorted)) => {
            let classes = sorted.classes.iter().map(|class| {
                let lookup = &class.lookup;
                json!({
                    "columns": class.columns, "entries": 1 << lookup.index_bits,
                    "fraction": lookup.fraction, "slope_eighths": class.slope,
                    "flagged_cells": lookup.edge,
                })
            });
            classes.collect()
        }
        Some(Function::Powers(powers)) => {
            let classes = powers.classes.iter().map(|class| {
                let heads = class.heads.iter().map(|placed| placed.head);
                let lookup = &class.lookup;
                json!({
                    "heads": heads.collect::<Vec<_>>(), "measured": class.measured,
                    "entries": 1 << lookup.index_bits, "fraction": lookup.fraction,
                    "flagged_cells": lookup.edge,
                })
            });
            classes.collect()
        }
        _ => Value::Null,
    }
}
