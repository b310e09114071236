//! Scales of weights: as fine as they fit, and no finer than the accumulator of their products.
//!
//! The columns of matrices that hints multiply are bounded as well ([`COLUMN_LENGTH`]), and a
//! diagonal's gains and means have one scale: they are multiplied as one matrix.

use super::WeightRange;
use crate::graph::{Graph, Op, Term, ValueId, WeightKind};
use crate::scales::{
    COLUMN_LENGTH, LEAST_ONE_HOT_BITS, OUTPUT_COLUMN_LENGTH, Scale, TABLE_COLUMN_LENGTH,
    TABLE_NORM, WEIGHT_BITS, WeightScale,
};
use primer_ring::fixed::Format;

/// Columns of integers are longer than what they were rounded from by this factor, at most.
const ROUNDING: f64 = 1.05;

/// What the scales of weights are chosen from.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// How large each weight is.
    pub ranges: &'a [WeightRange],
    /// The scales of the values.
    pub values: &'a [Scale],
}

impl Weights<'_> {
    /// Returns the scales of weights that hints multiply.
    pub(crate) fn hinted(&self) -> Vec<WeightScale> {
        let biases = self.graph.weights.iter().map(|_| WeightScale::Bias);
        let mut scales: Vec<WeightScale> = biases.collect();
        for step in &self.graph.steps {
            match &step.op {
                Op::Embed { table, output, .. } => {
                    let range = self.ranges[table.index()];
                    let one_hot = self.values[output.index()].fraction();
                    let limits = [
                        self.finest(range.max_abs, 0, *output),
                        within(TABLE_COLUMN_LENGTH as f64, range.column),
                        within(TABLE_NORM, range.norm),
                        one_hot - LEAST_ONE_HOT_BITS as i32,
                    ];
                    let fraction = limits.into_iter().min().expect("there are limits");
                    scales[table.index()] = WeightScale::Dense { fraction };
                }
                Op::Linear { terms, output, .. } => {
                    for term in terms {
                        scales[term.weight.index()] = self.term(term, *output);
                    }
                }
                _ => {}
            }
        }
        scales
    }

    /// Returns the most fractional bits of weights up to `max_abs`, for an input with `input` of
    /// them.
    pub fn finest(&self, max_abs: f64, input: i32, output: ValueId) -> i32 {
        let room = self.values[output.index()].fraction() - input;
        Format::fitting(WEIGHT_BITS, max_abs).fraction.min(room)
    }

    /// Returns the scale of a term's weight.
    fn term(&self, term: &Term, output: ValueId) -> WeightScale {
        let range = self.ranges[term.weight.index()];
        let input = self.values[term.input.index()].fraction();
        let room = self.values[output.index()].fraction() - input;
        let fraction = hinted_fraction(&range, room, self.graph.is_revealed(output));
        match self.graph.weight(term.weight).kind {
            WeightKind::Diagonal => WeightScale::Diagonal {
                gain: fraction,
                mean: fraction,
            },
            WeightKind::Dense | WeightKind::Bias => WeightScale::Dense { fraction },
        }
    }
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
