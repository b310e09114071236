//! The reciprocal of a row's sum, one per row: the division of softmax.
//!
//! A sum `v > 0` is normalised to `v = u·2^h` with `u` in `[1, 2)`; then `1/v = 2^-h / u`, a table
//! of the bits after `u`'s leading one, shifted by `h`:
//!
//! ```text
//! h     = position of the leading one of v
//! index = the TABLE_BITS bits after it
//! out   = table[index] << (H - h) >> dropped     H = the largest h of the ring
//! ```
//!
//! The sum of powers is never negative, so all of the ring is used: `v` is the unsigned ring
//! element. A wide ring has numbers of very different sizes: the reciprocals of the largest lose
//! their last bits (`dropped`), and as a value has 32 bits at most, the output is cut to 31, so the
//! smallest have no reciprocal ([`Reciprocal::smallest`]).
//!
//! Zero has no reciprocal either, and a circuit that finds the leading one by halving moves it by
//! all its distances. The function here gives the same result, cut to the output's bits. It does
//! not matter: every power of such a row is zero, and so are the products.
//!
//! A row whose sum is that small has *run dry*: all its scores lie below the window of its head
//! ([`super::powers`]), and what is left of them has too few bits. [`Reciprocal::is_dry`] is the
//! second result of the function, one bit, a range flag.
//!
//! The relative error is at most half a cell of `u`, 2^-8, and half a unit of the smallest entry,
//! 2^-9.

use super::{FunctionError, Table};
use crate::scales::MAX_VALUE_BITS;
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};

const NAME: &str = "reciprocal";
const TABLE_BITS: u32 = 7;
const OUTPUT_BITS: u32 = 10;
/// Bits of the result, at most: with a sign it has as many as a value may have.
const LONGEST: u32 = MAX_VALUE_BITS - 1;

/// Reciprocal on a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reciprocal {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of the output.
    pub output_fraction: i32,
    /// `1/u` with the constants folded in.
    pub table: Table,
    /// Low bits that the output does not have.
    pub dropped: u32,
    /// Numbers below `2^dry_bits` raise the range flag.
    pub dry_bits: u32,
}

impl Reciprocal {
    /// Makes the function `v ↦ scale / v` on unsigned integers `v` of the ring.
    ///
    /// The output's fractional bits are chosen so that the table uses all its output bits,
    /// `dropped` of which are lost for the largest numbers. Numbers below `2^dry_bits` are flagged.
    ///
    /// # Panics
    /// If the ring is not usable or the scale is not positive and finite.
    pub fn new(ring_bits: u32, scale: f64, dropped: u32, dry_bits: u32) -> Self {
        assert!(
            scale > 0.0 && scale.is_finite(),
            "the scale of a reciprocal is positive"
        );
        let steps = ring_bits as i32 - 1;
        let whole = OUTPUT_BITS as i32 + steps - scale.log2().ceil() as i32;
        let output_fraction = whole - dropped as i32;
        let top = scale * 2f64.powi(whole - steps);
        let cells = f64::from(1 << TABLE_BITS);
        let table = Table::tabulate(TABLE_BITS, OUTPUT_BITS, |i| {
            top / (1.0 + (f64::from(i) + 0.5) / cells)
        });
        let reciprocal = Self {
            ring_bits,
            output_fraction,
            table,
            dropped,
            dry_bits,
        };
        reciprocal
            .validate()
            .expect("a reciprocal is built from usable parameters");
        reciprocal
    }

    /// Returns the largest normalising exponent, `H`.
    pub const fn steps(&self) -> u32 {
        self.ring_bits - 1
    }

    /// Returns the largest of the distances, powers of two, by which a number is moved to the top
    /// of its bits: together they reach at least `H`.
    pub const fn first_distance(&self) -> u32 {
        1 << self.steps().ilog2()
    }

    /// Returns the bits of the table's entries, shifted by up to `H`.
    const fn all_bits(&self) -> u32 {
        self.table.output_bits() + self.steps()
    }

    /// Returns the bits of the output: those of the shifted table, but no more than a value can
    /// have.
    pub const fn output_bits(&self) -> u32 {
        let kept = self.all_bits() - self.dropped;
        if kept < LONGEST { kept } else { LONGEST }
    }

    /// Returns the smallest number that has a reciprocal: those of smaller ones are cut.
    pub const fn smallest(&self) -> i64 {
        1 << (self.all_bits() - self.dropped - self.output_bits())
    }

    /// Tells whether a ring value, signed or not, is too small.
    #[inline]
    pub const fn is_dry(&self, v: i64) -> bool {
        (v as u64 & ((1 << self.ring_bits) - 1)) >> self.dry_bits == 0
    }

    /// Computes the function on a ring value, signed or not.
    #[inline]
    pub fn apply(&self, v: i64) -> i64 {
        let v = v as u64 & ((1 << self.ring_bits) - 1);
        let kept = (1 << self.output_bits()) - 1;
        if v == 0 {
            let moved = self.table.at(0) << (2 * self.first_distance() - 1);
            return (moved as u64 >> self.dropped) as i64 & kept;
        }
        let h = v.ilog2();
        let fine = self.table.input_bits();
        let index = if fine >= h {
            v << (fine - h)
        } else {
            v >> (h - fine)
        };
        let entry = self.table.at(index & ((1 << fine) - 1)) << (self.steps() - h);
        (entry >> self.dropped) & kept
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        self.table.validate(NAME)?;
        let m = self.ring_bits;
        FunctionError::unless(
            (4..=Truncation::MAX_SMALL_BITS).contains(&m)
                && self.dry_bits < m
                && self.dropped < m
                && self.table.input_bits() == TABLE_BITS
                && self.table.output_bits() == OUTPUT_BITS,
            NAME,
            format!(
                "ring of {m} bits, dry below {}, with a table of {} to {}",
                self.dry_bits,
                self.table.input_bits(),
                self.table.output_bits()
            ),
        )?;
        FunctionError::unless(
            super::in_reach(self.output_fraction),
            NAME,
            format!("{} fractional bits", self.output_fraction),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_error_is_small() {
        for scale in [0.7, 1.0, 27.7, 12_345.0] {
            let reciprocal = Reciprocal::new(20, scale, 0, 0);
            let bound = 2f64.powi(-8) + 2f64.powi(-9);
            for v in 1..1i64 << 20 {
                let want = scale / v as f64;
                let got = reciprocal.apply(v) as f64 * 2f64.powi(-reciprocal.output_fraction);
                assert!((got / want - 1.0).abs() < bound, "{scale} {v}: {got}");
                assert!(reciprocal.apply(v) >> reciprocal.output_bits() == 0);
            }
        }
    }

    /// Checks a ring of 24 bits, which has no bits for the reciprocals of 1 to 3; all others are as
    /// accurate as in shorter rings.
    #[test]
    fn wide_rings_cut_the_smallest_sums() {
        let reciprocal = Reciprocal::new(24, 27.7, 0, 0);
        assert_eq!((reciprocal.output_bits(), reciprocal.smallest()), (31, 4));
        let error = |v: i64| {
            let got = reciprocal.apply(v) as f64 * 2f64.powi(-reciprocal.output_fraction);
            (got * v as f64 / 27.7 - 1.0).abs()
        };
        let bound = 2f64.powi(-8) + 2f64.powi(-9);
        let all = (reciprocal.smallest()..1 << 12).chain((1 << 12..1 << 24).step_by(101));
        assert!(all.into_iter().all(|v| error(v) < bound));
        assert!((1..reciprocal.smallest()).all(|v| error(v) > 0.1));
        assert!((0..4).all(|v| reciprocal.apply(v) >> 31 == 0));
    }

    /// Checks the reciprocal of softmax: 38 bits, where the last 9 bits of a product with a power
    /// are dropped.
    #[test]
    fn large_numbers_have_fewer_bits() {
        let reciprocal = Reciprocal::new(38, 2f64.powi(18), 9, 7);
        assert_eq!(
            (reciprocal.output_bits(), reciprocal.output_fraction),
            (31, 20)
        );
        assert_eq!(reciprocal.smallest(), 128);
        for bits in 7..38 {
            let bound = 2f64.powi(-8) + 2f64.powi(-9) + 2f64.powi(bits - 37);
            for part in 0..100 {
                let v = (1i64 << bits) + (part << bits) / 100;
                let got = reciprocal.apply(v) as f64 * v as f64 * 2f64.powi(-38);
                assert!((got - 1.0).abs() < bound, "{v}: {got}");
            }
        }
        assert!(reciprocal.apply(0) >> 31 == 0);
    }

    #[test]
    fn ring_elements_are_unsigned_and_zero_is_no_fault() {
        let reciprocal = Reciprocal::new(20, 3.0, 0, 3);
        assert_eq!(reciprocal.apply(0), 0);
        assert_eq!(reciprocal.apply(-1), reciprocal.apply((1 << 20) - 1));
        assert!((0..8).all(|v| reciprocal.is_dry(v)));
        assert!(
            [8, 9, (1 << 20) - 1, -1]
                .iter()
                .all(|&v| !reciprocal.is_dry(v))
        );
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let mut reciprocal = Reciprocal::new(20, 3.0, 0, 3);
        for bits in [0, 3, 40, u32::MAX] {
            reciprocal.ring_bits = bits;
            assert!(reciprocal.validate().is_err());
        }
        reciprocal.ring_bits = 20;
        reciprocal.output_fraction = 65;
        assert!(reciprocal.validate().is_err());
        reciprocal.output_fraction = 10;
        reciprocal.dry_bits = 20;
        assert!(reciprocal.validate().is_err());
        reciprocal.dry_bits = 3;
        reciprocal.dropped = 20;
        assert!(reciprocal.validate().is_err());
        reciprocal.dropped = 0;
        reciprocal.table = Table::tabulate(6, OUTPUT_BITS, |_| 1.0);
        assert!(reciprocal.validate().is_err());
    }
}
