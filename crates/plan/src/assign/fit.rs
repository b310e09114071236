//! Removal of fractional bits from factors that are finer than their product can hold.

use super::{Assigner, SCORE_FRACTION};
use crate::graph::{Op, ValueId, WeightId};
use crate::scales::{Scale, WEIGHT_BITS};
use primer_ring::fixed::Format;

/// Fractional bits that the input of merged scores keeps in any case.
const MERGED_INPUT_FRACTION: i32 = 8;

impl Assigner<'_> {
    /// Gives up fractional bits of the queries where `query · key` would be finer than the scores.
    ///
    /// This happens in models whose queries and keys are both tiny. Nothing is lost: the scores do
    /// not keep those bits.
    pub(super) fn fit_factors(&mut self, scores: ValueId) {
        let (query, key) = match self.graph.maker(scores).op {
            Op::Scores { query, key, .. } => (query, key),
            Op::MergedScores { input, weight, .. } => {
                return self.fit_merged(input, weight, scores);
            }
            _ => unreachable!("scores are made from queries and keys"),
        };
        let excess = self.fraction(query) + self.fraction(key) - self.fraction(scores);
        self.coarsen(query, excess);
    }

    /// Gives up fractional bits of a merged input where its matrix would be left with too few.
    ///
    /// The input is a factor twice, so one bit of it is worth two of the matrix. It gives up bits
    /// until the rounding of the matrix, about 0.29 units for an element and so `0.29·d` units for
    /// a row of length `√d` on either side, is half a unit of the scores.
    fn fit_merged(&mut self, input: ValueId, weight: WeightId, scores: ValueId) {
        let width = self.graph.value(input).cols as f64;
        let half_unit = f64::from(2 << SCORE_FRACTION);
        let enough = (0.29 * width * half_unit).log2().ceil() as i32;
        let finest = Format::fitting(WEIGHT_BITS, self.weights[weight.index()].max_abs).fraction;
        let room = self.fraction(scores) - 2 * self.fraction(input);
        let missing = (finest.min(enough) - room + 1) / 2;
        let sum = self.graph.accumulator_of(input);
        let spare = (self.fraction(input) - MERGED_INPUT_FRACTION).min(self.slack(sum));
        self.coarsen(input, missing.min(spare));
    }

    /// Returns the number of fractional bits by which the products of `sum`, which is what a
    /// LayerNorm leaves or projected embeddings, stay below its accumulator.
    fn slack(&self, sum: ValueId) -> i32 {
        self.fraction(sum) - self.finest_product(sum)
    }

    /// Takes fractional bits from a requantised value and its accumulator, if there are any to
    /// take.
    fn coarsen(&mut self, value: ValueId, bits: i32) {
        if bits <= 0 {
            return;
        }
        for id in [self.graph.accumulator_of(value), value] {
            let coarser = match self.values[id.index()].expect("steps come in order") {
                Scale::Accumulator {
                    fraction,
                    ring_bits,
                } => Scale::Accumulator {
                    fraction: fraction - bits,
                    ring_bits,
                },
                small @ Scale::Small { .. } => small,
                Scale::Fixed {
                    bits: width,
                    fraction,
                } => Scale::Fixed {
                    bits: width,
                    fraction: fraction - bits,
                },
            };
            self.values[id.index()] = Some(coarser);
        }
    }
}
