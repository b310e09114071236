//! Removal of fractional bits from factors that are finer than their product can hold.

use super::Assigner;
use crate::graph::{Op, ValueId};
use crate::scales::Scale;

impl Assigner<'_> {
    /// Gives up fractional bits of the queries where `query · key` would be finer than the scores.
    ///
    /// This happens in models whose queries and keys are both tiny. Nothing is lost: the scores do
    /// not keep those bits.
    ///
    /// # Panics
    /// If the scores are not made from queries and keys.
    pub fn fit_factors(&mut self, scores: ValueId) {
        let Op::Scores { query, key, .. } = self.graph.maker(scores).op else {
            unreachable!("scores are made from queries and keys");
        };
        let excess = self.fraction(query) + self.fraction(key) - self.fraction(scores);
        self.coarsen(query, excess);
    }

    /// Takes fractional bits from a requantised value and its accumulator, if there are any to
    /// take.
    ///
    /// # Panics
    /// If the value has no scale yet.
    pub fn coarsen(&mut self, value: ValueId, bits: i32) {
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
