//! Reports of values that left their range.

use super::FixedWalk;
use primer_plan::function::{Powers, Reciprocal, Sorted};
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
    /// The largest that fits; if the value has classes, in the narrowest class that was exceeded.
    pub limit: f64,
}

impl FixedWalk<'_> {
    /// Reports elements that truncation would wrap around, except in rows that are padding, which
    /// no result depends on.
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
        // The powers of padded keys do not count.
        let keys = match function {
            StopFunction::Power => self.input.length,
            _ => x.cols(),
        };
        let limit = |c| {
            if c < keys {
                units << by.shift()
            } else {
                i64::MAX
            }
        };
        self.report(id, limit, x);
    }

    /// Reports such elements of columns that are looked up by classes, each with a limit of its
    /// own.
    pub(super) fn check_classes(&mut self, id: ValueId, sorted: &Sorted) {
        let fraction = self.fraction(id);
        let mut limits = Vec::with_capacity(self.graph().value(id).cols);
        for ((columns, by), class) in sorted.indices().zip(&sorted.classes) {
            let by = by.truncation();
            let units = (1i64 << (by.ring_bits() - 1)) - 2;
            let limit = units << (fraction - class.lookup.fraction);
            limits.extend(columns.map(|_| limit));
        }
        let x = self.get(id).clone();
        self.report(id, |c| limits[c], &x);
    }

    /// Reports elements that are beyond the limits of their columns.
    fn report(&mut self, id: ValueId, limit: impl Fn(usize) -> i64, x: &Matrix<i64>) {
        let tokens = self.graph().tokens;
        let (mut count, mut worst, mut least) = (0, 0i64, i64::MAX);
        for r in (0..x.rows()).filter(|r| r % tokens < self.input.length) {
            for (c, v) in x.row(r).iter().enumerate() {
                if v.abs() > limit(c) {
                    count += 1;
                    worst = worst.max(v.abs());
                    least = least.min(limit(c));
                }
            }
        }
        if count > 0 {
            let unit = exp2(-self.fraction(id));
            self.out_of_range.push(OutOfRange {
                value: self.graph().value(id).name.clone(),
                count,
                worst: worst as f64 * unit,
                limit: least as f64 * unit,
            });
        }
    }

    /// Counts the range flags of elements that went into a function, if it has any.
    pub(super) fn flag(&mut self, is_flagged: bool, x: &[i64], flag: impl Fn(i64) -> bool) {
        if is_flagged {
            let set = x.iter().filter(|v| flag(**v)).count();
            *self.flags.get_or_insert_default() += set;
        }
    }

    /// Counts the range flags of the scores of heads, including those of padded keys and queries.
    pub(super) fn flag_powers(&mut self, powers: &Powers, x: &Matrix<i64>) {
        let head = self.graph().tokens * x.cols();
        for (head, scores) in x.data().chunks(head).enumerate() {
            let lookup = &powers.class(head).0.lookup;
            self.flag(lookup.is_flagged(), scores, |v| lookup.flag(v));
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
