//! Scales of weights: as fine as they fit, and no finer than the accumulator of their products.
//!
//! In the looked-up form the columns of matrices are bounded as well ([`COLUMN_LENGTH`]), and a
//! diagonal's gains and means have one scale: they are multiplied as one matrix.

use super::WeightRange;
use crate::graph::{Form, Graph, Op, Term, ValueId, WeightKind};
use crate::scales::{
    COLUMN_LENGTH, LEAST_ONE_HOT_BITS, OUTPUT_COLUMN_LENGTH, Scale, TABLE_COLUMN_LENGTH,
    TABLE_NORM, WEIGHT_BITS, WeightScale,
};
use primer_ring::fixed::Format;

/// Columns of integers are longer than what they were rounded from by this factor, at most.
const ROUNDING: f64 = 1.05;

pub(super) fn scales(graph: &Graph, ranges: &[WeightRange], values: &[Scale]) -> Vec<WeightScale> {
    let mut scales: Vec<WeightScale> = graph.weights.iter().map(|_| WeightScale::Bias).collect();
    let assigner = Assigner {
        graph,
        ranges,
        values,
    };
    for step in &graph.steps {
        match &step.op {
            Op::Embed { table, output, .. } => {
                let range = ranges[table.index()];
                let mut fraction = assigner.finest(range.max_abs, 0, *output);
                if graph.form == Form::LookedUp {
                    let one_hot = values[output.index()].fraction() - LEAST_ONE_HOT_BITS as i32;
                    fraction = fraction.min(within(TABLE_COLUMN_LENGTH as f64, range.column));
                    fraction = fraction.min(within(TABLE_NORM, range.norm));
                    fraction = fraction.min(one_hot);
                }
                scales[table.index()] = WeightScale::Dense { fraction };
            }
            Op::Linear { terms, output, .. } => {
                for term in terms {
                    scales[term.weight.index()] = assigner.term(term, *output);
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
                let fraction = assigner.finest(ranges[weight.index()].max_abs, doubled, *output);
                scales[weight.index()] = WeightScale::Dense { fraction };
            }
            _ => {}
        }
    }
    scales
}

/// Returns the fractional bits of a weight that a hint multiplies, if its accumulator has room for
/// `room` of them.
pub(super) fn hinted_fraction(range: &WeightRange, room: i32, revealed: bool) -> i32 {
    let columns = match revealed {
        true => OUTPUT_COLUMN_LENGTH,
        false => COLUMN_LENGTH,
    };
    let finest = Format::fitting(WEIGHT_BITS, range.max_abs)
        .fraction
        .min(room);
    finest.min(within(columns as f64, range.column))
}

/// Returns the fractional bits with which columns of length `column`, in real numbers, have at most
/// the length `limit` in integers.
fn within(limit: f64, column: f64) -> i32 {
    let column = (ROUNDING * column).max(f64::MIN_POSITIVE);
    // Zero columns may be arbitrarily fine.
    (limit / column).log2().floor().min(64.0) as i32
}

struct Assigner<'a> {
    graph: &'a Graph,
    ranges: &'a [WeightRange],
    values: &'a [Scale],
}

impl Assigner<'_> {
    /// Returns the most fractional bits of weights up to `max_abs`, for an input with `input` of
    /// them.
    fn finest(&self, max_abs: f64, input: i32, output: ValueId) -> i32 {
        let room = self.values[output.index()].fraction() - input;
        Format::fitting(WEIGHT_BITS, max_abs).fraction.min(room)
    }

    fn is_diagonal(&self, term: &Term) -> bool {
        self.graph.weight(term.weight).kind == WeightKind::Diagonal
    }

    /// Returns the scale of a term's weight.
    fn term(&self, term: &Term, output: ValueId) -> WeightScale {
        let range = self.ranges[term.weight.index()];
        let input = self.values[term.input.index()].fraction();
        let looked_up = self.graph.form == Form::LookedUp;
        let room = self.values[output.index()].fraction() - input;
        let fraction = match looked_up {
            true => hinted_fraction(&range, room, self.graph.is_revealed(output)),
            false => self.finest(range.max_abs, input, output),
        };
        match (self.is_diagonal(term), looked_up) {
            (false, _) => WeightScale::Dense { fraction },
            (true, true) => WeightScale::Diagonal {
                gain: fraction,
                mean: fraction,
            },
            (true, false) => WeightScale::Diagonal {
                gain: fraction,
                mean: self.finest(range.mean_max_abs, input, output),
            },
        }
    }
}
