//! What left its range.

use super::FixedWalk;
use primer_plan::function::Reciprocal;
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
        let (tokens, length) = (self.graph().tokens, self.input.length);
        let keys = match function {
            // The powers of padded keys do not count.
            StopFunction::Power => length,
            _ => x.cols(),
        };
        let (mut count, mut worst) = (0, 0i64);
        for r in (0..x.rows()).filter(|r| r % tokens < length) {
            for v in &x.row(r)[..keys] {
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

    /// Reports sums of rows that have run dry, except in rows that are padding.
    pub(super) fn check_dry(&mut self, id: ValueId, reciprocal: &Reciprocal, x: &Matrix<i64>) {
        let (tokens, length) = (self.graph().tokens, self.input.length);
        let rows = (0..x.rows()).filter(|r| r % tokens < length);
        let dry: Vec<i64> = rows
            .map(|r| x.get(r, 0))
            .filter(|v| reciprocal.is_dry(*v))
            .collect();
        let Some(least) = dry.iter().min() else {
            return;
        };
        let unit = exp2(-self.fraction(id));
        self.out_of_range.push(OutOfRange {
            value: format!("{} from below", self.graph().value(id).name),
            count: dry.len(),
            worst: *least as f64 * unit,
            limit: exp2(reciprocal.dry_bits as i32) * unit,
        });
    }
}
