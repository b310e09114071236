//! What left its range.

use super::FixedWalk;
use primer_plan::graph::{StopFunction, ValueId};
use primer_ring::fixed::exp2;
use primer_ring::matrix::Matrix;
use primer_ring::truncate::Truncation;

/// A value that was too large for its ring.
#[derive(Debug, Clone, PartialEq)]
pub struct OutOfRange {
    /// Its name in the plan.
    pub value: String,
    /// Elements that were too large.
    pub count: usize,
    /// The largest of them, as a real number.
    pub worst: f64,
    /// The largest that fits.
    pub limit: f64,
}

impl FixedWalk<'_> {
    /// Reports elements that truncation would wrap around, except in rows that are padding: those
    /// reach no result.
    pub(super) fn check_range(
        &mut self,
        function: StopFunction,
        id: ValueId,
        by: Truncation,
        x: &Matrix<i64>,
    ) {
        // A requantised value leaves the ring's top bit free, and squares are not negative.
        let ring_half = 1i64 << (by.ring_bits() - 1);
        let units = match function {
            StopFunction::Requantise => ring_half / 2 - 2,
            _ => ring_half - 2,
        };
        let limit = units << by.shift();
        let tokens = self.graph().tokens;
        let (mut count, mut worst) = (0, 0i64);
        for r in (0..x.rows()).filter(|r| r % tokens < self.input.length) {
            for v in x.row(r) {
                if v.abs() > limit {
                    count += 1;
                    worst = worst.max(v.abs());
                }
            }
        }
        if count > 0 {
            let unit = exp2(-self.fraction(id));
            self.out_of_range.push(OutOfRange {
                value: self.graph().value(id).name.clone(),
                count,
                worst: worst as f64 * unit,
                limit: limit as f64 * unit,
            });
        }
    }
}
