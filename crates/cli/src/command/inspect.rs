//! `primer inspect`: the plan of a model.

use super::ModelArgs;
use crate::output;
use crate::progress::Stages;
use anyhow::{Context, Result};
use clap::Args;
use primer::source::Model;
use primer::{Reveal, Scheme};
use primer_he::params::{Params, SECURITY_TABLE};
use primer_hint::multipliers::file_bytes;
use primer_hint::params::PACKING_BITS;
use primer_lab::note;
use primer_model::quantise::IntModel;
use primer_plan::function::{Class, Function, HeadClass};
use primer_plan::graph::{Graph, Op, PaperStep, Step, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::scales::{Scale, WEIGHT_BITS, WeightScale};
use primer_plan::shape::{Head, Pooling, Problem, Shape};
use primer_protocol::Program;
use primer_protocol::cost::{self, Part, StoredBytes};
use primer_protocol::hints::contents_of;
use primer_ring::modulus::{C_BITS, K, P};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `primer inspect`.
#[derive(Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the padded input that the plan is made for
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..))]
    tokens: u64,
    /// Show every layer, not only the first
    #[arg(long)]
    all_layers: bool,
    /// Write the scales and integer weights to a file for `--prepared`
    #[arg(long, value_name = "FILE")]
    save_prepared: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InspectArgs) -> Result<()> {
    let model = Model::load(args.model.model.as_deref())?;
    let stages = Stages::default();
    let prepared = model.prepare(
        args.model.prepared.as_deref(),
        args.model.calibration.as_deref(),
        args.model.scheme.recipe().form,
        |done, total| stages.tell("calibrating", done, total),
    )?;
    let tokens = (args.tokens as usize).min(model.max_tokens());
    let plan = prepared.plan(tokens)?;
    if let Some(path) = &args.save_prepared {
        prepared.save(path).context("writing the prepared model")?;
        note!("primer: prepared model written to {}", path.display());
    }
    let expected = Expected::of(&prepared, &plan, args.model.scheme)?;
    if args.json {
        output::line(to_json(&model.name, &plan, &expected))
    } else {
        output::text(to_text(&model.name, &plan, &expected, args.all_layers))
    }
}

/// What one inference takes on the way and in the stores.
struct Expected {
    scheme: Scheme,
    total: Part,
    stored: StoredBytes,
    encryption: String,
    /// Bytes of the hint, and of what the server multiplies it with; none by schemes without one.
    hint: Option<(u64, u64)>,
    /// Of one client, that together stay within the statistical distance; any number by schemes
    /// whose client is sent nothing that depends on the weights.
    inferences: f64,
    /// A bound of the probability that an inference has a wrong share.
    odds: f64,
    /// Bits that an answer can carry, and one that has labels alone, if the head has labels.
    answer_bits: (u64, Option<u64>),
}

impl Expected {
    fn of(model: &IntModel, plan: &Plan, scheme: Scheme) -> Result<Self> {
        let hint = match scheme.needs_hint() {
            true => {
                let contents = contents_of(model)?;
                Some((contents.bytes(), file_bytes(&contents)))
            }
            false => None,
        };
        let program = Program::received(plan.clone(), scheme, Reveal::Outputs)?;
        let sets = program.key_needs().sets().iter();
        let mut sets: Vec<String> = sets.map(|set| encryption(set.params())).collect();
        if scheme.needs_hint() {
            let (limit, degree) = (SECURITY_TABLE[0].1, SECURITY_TABLE[0].0);
            sets.push(format!(
                "hints, degree {degree}, moduli 49 and {PACKING_BITS} bits of at most {limit}"
            ));
        }
        Ok(Self {
            scheme,
            total: cost::parts(&program).total(),
            stored: cost::stored(&program),
            encryption: sets.join("; "),
            hint,
            inferences: program.inferences(),
            odds: program.odds(),
            answer_bits: {
                let labels = Program::received(plan.clone(), scheme, Reveal::Label).ok();
                let labels = labels.map(|program| program.answer_bits());
                (program.answer_bits(), labels)
            },
        })
    }
}

/// What a client's answers tell about the weights, in a sentence.
fn privacy(expected: &Expected) -> String {
    match expected.inferences.is_finite() {
        true => format!(
            "2^-40 of statistical distance for {:.2e} inferences of one client",
            expected.inferences
        ),
        false => format!(
            "offline nothing depends on the weights; a share is wrong in 2^{:.0} inferences",
            expected.odds.log2()
        ),
    }
}

/// How many bits an answer can carry, in a sentence.
fn answer((bits, labels): (u64, Option<u64>)) -> String {
    let labels = labels.map(|labels| format!("; labels alone (serve --reveal label): {labels}"));
    format!(
        "carries at most {bits} bits, whatever a client does{}",
        labels.unwrap_or_default()
    )
}

/// A set of homomorphic parameters in a sentence: degree, modulus and the bound of the security
/// table.
fn encryption(params: &Params) -> String {
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
        Op::Rest { .. } => "score - reference",
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

fn scale_text(scale: Scale) -> String {
    match scale {
        Scale::Accumulator {
            fraction,
            ring_bits,
        } => {
            format!("{K} bits, {fraction} fractional -> ring of {ring_bits}")
        }
        Scale::Small {
            fraction,
            ring_bits,
        } => format!("{ring_bits} bits, {fraction} fractional, whole"),
        Scale::Fixed { bits, fraction } => format!("{bits} bits, {fraction} fractional"),
    }
}

/// The classes of a sorted activation, columns, entries and range of each; or those of heads.
fn classes_text(plan: &Plan, index: usize) -> String {
    let classes: Vec<String> = match plan.function(index) {
        Some(Function::Sorted(sorted)) => {
            let one = |class: &Class| {
                let (bits, fraction) = (class.lookup.index_bits, class.lookup.fraction);
                let range = f64::from(bits as i32 - 1 - fraction).exp2();
                format!("{}x{} of ±{range}", class.columns, 1 << bits)
            };
            sorted.classes.iter().map(one).collect()
        }
        Some(Function::Powers(powers)) => {
            let one = |class: &HeadClass| {
                let heads = class.heads.len();
                match class.measured {
                    true => format!("{heads} heads measured"),
                    false => format!("{heads} heads in 1/{}", 1 << class.lookup.fraction),
                }
            };
            powers.classes.iter().map(one).collect()
        }
        _ => Vec::new(),
    };
    classes.join(", ")
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

fn weight_text(plan: &Plan, step: &Step) -> String {
    let fractions = |id| match plan.weight_scale(id) {
        WeightScale::Dense { fraction } => format!("w.{fraction}"),
        WeightScale::Diagonal { gain, mean } => format!("g.{gain} h.{mean}"),
        WeightScale::Bias => String::new(),
    };
    match &step.op {
        Op::Embed { table, .. } => fractions(*table),
        Op::MergedScores { weight, .. } => fractions(*weight),
        Op::Linear { terms, .. } => terms
            .iter()
            .map(|t| fractions(t.weight))
            .collect::<Vec<_>>()
            .join(" "),
        _ => String::new(),
    }
}

fn to_text(name: &str, plan: &Plan, expected: &Expected, all_layers: bool) -> String {
    let graph: &Graph = plan.graph();
    let shape = &graph.shape;
    let mut out = format!(
        "model        {name}\n\
         family       {} ({})\n\
         shape        {} layers, hidden {}, {} heads, ffn {}, vocabulary {}, positions {}\n\
         head         {}\n\
         tokens       {}\n\
         modulus      p = 2^{K} - 2^{C_BITS} + 1 = {P}\n\
         weights      {WEIGHT_BITS} bits with sign\n\
         encryption   {}\n\
         privacy      {}\n\
         an answer    {}\n\
         fingerprint  {}\n\n",
        shape.family.name(),
        shape.architecture(),
        shape.layers,
        shape.hidden,
        shape.heads,
        shape.ffn,
        shape.vocab,
        shape.positions,
        head_name(shape),
        graph.tokens,
        expected.encryption,
        privacy(expected),
        answer(expected.answer_bits),
        hex(&plan.fingerprint()),
    );
    out += &format!(
        "{:<16} {:<34} {:<20} {:>12}  {:<36} {}\n",
        "step", "value", "operation", "shape", "scale", "weights"
    );
    for (index, step) in graph.steps.iter().enumerate() {
        if !all_layers && step.layer.is_some_and(|l| l > 0) {
            continue;
        }
        let value = graph.value(step.output());
        let size = format!("{}x{}", value.rows, value.cols);
        let line = format!(
            "{:<16} {:<34} {:<20} {:>12}  {:<36} {}",
            step.paper.name(),
            value.name,
            operation(step),
            size,
            scale_text(plan.scale(step.output())),
            weight_text(plan, step) + &classes_text(plan, index),
        );
        out += line.trim_end();
        out.push('\n');
    }
    if !all_layers && shape.layers > 1 {
        out += &format!(
            "(layers 1 to {} have the same steps at their own scales: --all-layers)\n",
            shape.layers - 1
        );
    }
    out += &format!(
        "\n{:<16} {:>16} {:>16} {:>7} {:>12} {:>10} {:>12} {:>8} {:>6}\n",
        "counts",
        "weight products",
        "secret products",
        "stops",
        "requantise",
        "softmax",
        "activation",
        "roots",
        "tanh"
    );
    let by_step = graph.counts_by_step();
    let rows = PaperStep::ALL
        .iter()
        .filter_map(|s| by_step.get(s).map(|c| (s.name(), c.clone())))
        .chain([("total", graph.counts())]);
    for (name, counts) in rows {
        let elements = |f| counts.stop_elements.get(&f).copied().unwrap_or(0);
        out += &format!(
            "{:<16} {:>16} {:>16} {:>7} {:>12} {:>10} {:>12} {:>8} {:>6}\n",
            name,
            counts.weight_products,
            counts.secret_products,
            counts.stops,
            elements(StopFunction::Requantise),
            elements(StopFunction::Softmax),
            elements(StopFunction::Activation) + elements(StopFunction::Summary),
            elements(StopFunction::InverseRoot),
            elements(StopFunction::Tanh),
        );
    }
    out += &format!(
        "\none inference with scheme {}: {} AND gates",
        expected.scheme.name(),
        expected.total.and_gates
    );
    let bytes = &expected.total.bytes;
    let mega = |bytes: u64| bytes as f64 / 1e6;
    out += &format!(
        "; offline {:.1} MB up, {:.1} MB down; online {:.2} MB up, {:.2} MB down",
        mega(bytes.offline_up),
        mega(bytes.offline_down),
        mega(bytes.online_up),
        mega(bytes.online_down),
    );
    out += &format!(
        "\nprepared ahead: {:.1} MB at the client, {:.2} MB at the server",
        mega(expected.stored.client),
        mega(expected.stored.server),
    );
    if let Some((hint, multipliers)) = expected.hint {
        out += &format!(
            "\nonce for the model: a hint of {:.1} MB, which clients fetch; {:.1} MB of \
             multipliers at the server",
            mega(hint),
            mega(multipliers),
        );
    }
    out.push('\n');
    out
}

fn to_json(name: &str, plan: &Plan, expected: &Expected) -> Value {
    let graph = plan.graph();
    let shape = &graph.shape;
    let bytes = &expected.total.bytes;
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
        "model": name,
        "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads, "ffn": shape.ffn,
        "vocab": shape.vocab, "positions": shape.positions, "head": head_name(shape),
        "family": shape.family.name(), "architecture": shape.architecture(),
        "tokens": graph.tokens, "modulus": P, "modulus_bits": K, "weight_bits": WEIGHT_BITS,
        "encryption": expected.encryption, "security_bits": 123,
        "inferences_within_40_bits": expected.inferences.floor(),
        "wrong_share_odds": expected.odds, "scheme": expected.scheme.name(),
        "bits_per_answer": expected.answer_bits.0,
        "bits_per_answer_of_labels": expected.answer_bits.1,
        "fingerprint": hex(&plan.fingerprint()),
        "and_gates": expected.total.and_gates,
        "bytes": {
            "offline_up": bytes.offline_up, "offline_down": bytes.offline_down,
            "online_up": bytes.online_up, "online_down": bytes.online_down,
        },
        "stored": {"client": expected.stored.client, "server": expected.stored.server},
        "hint_bytes": expected.hint.map(|hint| hint.0),
        "multiplier_bytes": expected.hint.map(|hint| hint.1),
        "steps": steps, "counts": graph.counts(), "counts_by_step": by_step,
    })
}
