//! Scales of weights: as fine as they fit, and no finer than the accumulator that they lead to.

use super::WeightRange;
use crate::graph::{Graph, Op, ValueId, WeightKind};
use crate::scales::{Scale, WEIGHT_BITS, WeightScale};
use primer_ring::fixed::Format;

pub(super) fn scales(graph: &Graph, ranges: &[WeightRange], values: &[Scale]) -> Vec<WeightScale> {
    let mut scales: Vec<WeightScale> = graph.weights.iter().map(|_| WeightScale::Bias).collect();
    let finest = |max_abs: f64, input: i32, output: ValueId| {
        let room = values[output.index()].fraction() - input;
        Format::fitting(WEIGHT_BITS, max_abs).fraction.min(room)
    };
    for step in &graph.steps {
        match &step.op {
            Op::Embed { table, output, .. } => {
                let fraction = finest(ranges[table.index()].max_abs, 0, *output);
                scales[table.index()] = WeightScale::Dense { fraction };
            }
            Op::Linear { terms, output, .. } => {
                for term in terms {
                    let range = ranges[term.weight.index()];
                    let input = values[term.input.index()].fraction();
                    let gain = finest(range.max_abs, input, *output);
                    scales[term.weight.index()] = match graph.weight(term.weight).kind {
                        WeightKind::Diagonal => WeightScale::Diagonal {
                            gain,
                            mean: finest(range.mean_max_abs, input, *output),
                        },
                        WeightKind::Dense | WeightKind::Bias => {
                            WeightScale::Dense { fraction: gain }
                        }
                    };
                }
            }
            Op::MergedScores {
                input,
                weight,
                output,
                ..
            } => {
                // The input is a factor twice.
                let doubled = 2 * values[input.index()].fraction();
                let fraction = finest(ranges[weight.index()].max_abs, doubled, *output);
                scales[weight.index()] = WeightScale::Dense { fraction };
            }
            _ => {}
        }
    }
    scales
}
