//! A plan as a person reads it.

use super::{Inspected, head_name, hex, operation};
use crate::scheme::Terms;
use primer_plan::function::{Class, Function, HeadClass};
use primer_plan::graph::{Graph, Op, PaperStep, Step, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::scales::{Scale, WEIGHT_BITS, WeightScale};
use primer_ring::modulus::{C_BITS, K, P};

impl Inspected {
    /// Returns it as a table for people, of the first layer or of all.
    pub fn text(&self, all_layers: bool) -> String {
        let (plan, cost, terms) = (&self.plan, &self.cost, &self.terms);
        let graph: &Graph = plan.graph();
        let shape = &graph.shape;
        let mut out = format!(
            "model        {}\n\
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
            self.name,
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
            terms.encryption,
            privacy(terms),
            answer(terms),
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
            self.scheme, cost.and_gates
        );
        let bytes = &cost.bytes;
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
            mega(cost.client_stored),
            mega(cost.server_stored),
        );
        if let Some((hint, multipliers)) = cost.hint.zip(terms.multipliers) {
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
}

/// Says what a client's answers tell about the weights, in a sentence.
fn privacy(terms: &Terms) -> String {
    match terms.inferences.is_finite() {
        true => format!(
            "2^-40 of statistical distance for {:.2e} inferences of one client",
            terms.inferences
        ),
        false => format!(
            "offline nothing depends on the weights; a share is wrong in 2^{:.0} inferences",
            terms.odds.log2()
        ),
    }
}

/// Says how many bits an answer can carry, in a sentence.
fn answer(terms: &Terms) -> String {
    let bits = terms.answer_bits;
    let labels = terms
        .label_bits
        .map(|labels| format!("; labels alone (serve --reveal label): {labels}"));
    format!(
        "carries at most {bits} bits, with any client{}",
        labels.unwrap_or_default()
    )
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

/// Describes the classes of a sorted activation, columns, entries and range of each; or those of
/// heads.
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
