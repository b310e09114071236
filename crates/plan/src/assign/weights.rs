//! Scales of weights: as fine as they fit, and no finer than the accumulator that they lead to.
//!
//! In the looked-up form the columns of a step's matrices are bounded besides ([`COLUMN_LENGTH`]),
//! and the terms of a step have products of one scale: they share an answer, so no shift may come
//! between them. A diagonal's gains and means are no finer than that scale.

use super::WeightRange;
use crate::graph::{Form, Graph, Op, Term, ValueId, WeightKind};
use crate::scales::{COLUMN_LENGTH, Scale, TABLE_COLUMN_LENGTH, WEIGHT_BITS, WeightScale};
use primer_ring::fixed::Format;

/// Integers are this much longer than what they were rounded from, at most.
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
                    fraction = fraction.min(within(TABLE_COLUMN_LENGTH, range.column));
                }
                scales[table.index()] = WeightScale::Dense { fraction };
            }
            Op::Linear { terms, output, .. } => {
                let limit = match graph.form {
                    Form::LookedUp => assigner.common(terms, *output),
                    Form::Separate | Form::Merged => i32::MAX,
                };
                for term in terms {
                    scales[term.weight.index()] = assigner.term(term, *output, limit);
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

/// Fractional bits with which columns of some length, in real numbers, have at most another in
/// integers.
fn within(limit: u64, column: f64) -> i32 {
    let column = (ROUNDING * column).max(f64::MIN_POSITIVE);
    // Zero columns may be as fine as they like.
    (limit as f64 / column).log2().floor().min(64.0) as i32
}

struct Assigner<'a> {
    graph: &'a Graph,
    ranges: &'a [WeightRange],
    values: &'a [Scale],
}

impl Assigner<'_> {
    /// The most fractional bits of weights up to `max_abs`, for an input with `input` of them.
    fn finest(&self, max_abs: f64, input: i32, output: ValueId) -> i32 {
        let room = self.values[output.index()].fraction() - input;
        Format::fitting(WEIGHT_BITS, max_abs).fraction.min(room)
    }

    /// The fractional bits that all products of a step's terms may have.
    fn common(&self, terms: &[Term], output: ValueId) -> i32 {
        let input = |term: &Term| self.values[term.input.index()].fraction();
        let squares = terms.iter().map(|term| {
            let column = self.ranges[term.weight.index()].column;
            (column * (-f64::from(input(term))).exp2()).powi(2)
        });
        let columns = within(COLUMN_LENGTH, squares.sum::<f64>().sqrt());
        // A dense matrix is multiplied as it is, so its own limit is that of all.
        let dense = terms.iter().filter(|term| !self.is_diagonal(term));
        let dense = dense.map(|term| {
            let range = self.ranges[term.weight.index()];
            input(term) + self.finest(range.max_abs, input(term), output)
        });
        dense.fold(columns, i32::min)
    }

    fn is_diagonal(&self, term: &Term) -> bool {
        self.graph.weight(term.weight).kind == WeightKind::Diagonal
    }

    /// A term's scale; its product has at most `limit` fractional bits.
    fn term(&self, term: &Term, output: ValueId, limit: i32) -> WeightScale {
        let range = self.ranges[term.weight.index()];
        let input = self.values[term.input.index()].fraction();
        let finest = |max_abs| {
            self.finest(max_abs, input, output)
                .min(limit.saturating_sub(input))
        };
        let gain = finest(range.max_abs);
        if self.is_diagonal(term) {
            let mean = finest(range.mean_max_abs);
            WeightScale::Diagonal { gain, mean }
        } else {
            WeightScale::Dense { fraction: gain }
        }
    }
}
