//! Softmax of a row, with one small table used twice.
//!
//! Scores arrive in units of log 2 (the factor `log2(e)/√d_head` is folded into the query
//! weights), so the exponential is a power of two: the integer part of the argument is a shift and
//! only the fraction needs a table. For a row `s`:
//!
//! ```text
//! z_j = max(s) - s_j                          >= 0
//! e_j = 2^-z_j                                table of the fraction, shifted by the integer part
//! L   = log2(1 + Σ e_j)                       leading one, and a table of the bits after it
//! p_j = 2^-(z_j + L)                          the same table and shift once more
//! ```
//!
//! The second exponential replaces a division: adding a logarithm costs one AND gate per bit, while
//! a product per element would cost ten times that.
//!
//! Padding is private. The key mask enters linearly before this function: a padded key's score has
//! [`Softmax::mask`] subtracted, chosen so large that its probability is zero. [`Softmax::offset`]
//! is added to every score and centres the whole interval in the ring; it cancels in differences.

use super::{FunctionError, Table};
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};

/// Bits of `2^-z` below one; also the output's fractional bits.
const EXP_BITS: u32 = 12;
/// Integer bits of `z` that matter: from `2^4 = 16` on, `2^-z` is zero in `EXP_BITS` bits.
const SHIFT_BITS: u32 = 4;
/// Bits of the sum that the logarithm looks at, after the leading one.
const LOG_BITS: u32 = 6;
/// The longest row.
const MAX_ROW: usize = 512;

/// Softmax over rows of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softmax {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of a score.
    pub fraction: u32,
    /// Subtracted from the scores of padded keys, in units of the ring.
    pub mask: i64,
    /// Added to every score, in units of the ring.
    pub offset: i64,
    /// `2^-x` for a fraction `x`, [`Softmax::output_fraction`] bits.
    pub exp: Table,
    /// `log2(1 + x)` for the bits `x` after a leading one, `fraction` bits.
    pub log: Table,
}

/// Reusable room for one row.
#[derive(Default)]
pub struct SoftmaxScratch {
    distances: Vec<u64>,
}

impl Softmax {
    /// Makes softmax for a ring, a scale, and the mask and offset in units of the ring.
    ///
    /// # Panics
    /// If the parameters contradict each other.
    pub fn new(ring_bits: u32, fraction: u32, mask: i64, offset: i64) -> Self {
        let unit = 2f64.powi(fraction as i32);
        let one = 2f64.powi(EXP_BITS as i32);
        let exp = Table::tabulate(fraction, EXP_BITS, |i| (-f64::from(i) / unit).exp2() * one);
        let fine = f64::from(1 << LOG_BITS);
        let log = Table::tabulate(LOG_BITS, fraction, |i| {
            (1.0 + (f64::from(i) + 0.5) / fine).log2() * unit
        });
        let softmax = Self {
            ring_bits,
            fraction,
            mask,
            offset,
            exp,
            log,
        };
        softmax
            .validate()
            .expect("a softmax is built from usable parameters");
        softmax
    }

    /// Returns the fractional bits of a probability.
    pub const fn output_fraction(&self) -> i32 {
        self.exp.output_bits() as i32
    }

    /// Returns the number of integer bits of a distance that reach the shift; any higher bit makes
    /// the power zero.
    pub const fn shift_bits(&self) -> u32 {
        SHIFT_BITS
    }

    /// Returns the longest row that the function takes.
    pub const fn max_row(&self) -> usize {
        MAX_ROW
    }

    /// Computes `2^-z` for a distance `z >= 0`.
    #[inline]
    pub fn power(&self, z: u64) -> u64 {
        let whole = z >> self.fraction;
        if whole >> SHIFT_BITS != 0 {
            return 0;
        }
        (self.exp.at(z & ((1 << self.fraction) - 1)) as u64) >> whole
    }

    /// Computes `log2` of one plus a row's sum of powers, relative to a power of exactly one.
    #[inline]
    pub fn log_sum(&self, sum: u64) -> u64 {
        // The maximum's own power is 2^EXP_BITS - 1, so the leading one is at EXP_BITS or above.
        let s = sum + 1;
        let e = s.ilog2();
        let index = (s >> (e - self.log.input_bits())) & ((1 << self.log.input_bits()) - 1);
        (u64::from(e - self.exp.output_bits()) << self.fraction) + self.log.at(index) as u64
    }

    /// Computes the probabilities of one row of signed ring values.
    ///
    /// # Panics
    /// If the row is empty, longer than [`Softmax::max_row`], or of another length than `out`.
    pub fn apply(&self, row: &[i64], out: &mut [i64], scratch: &mut SoftmaxScratch) {
        assert!(!row.is_empty() && row.len() <= MAX_ROW && row.len() == out.len());
        let max = row.iter().copied().fold(i64::MIN, i64::max);
        let distances = &mut scratch.distances;
        distances.clear();
        distances.extend(row.iter().map(|s| (max - s) as u64));
        let sum = distances.iter().map(|&z| self.power(z)).sum();
        let log = self.log_sum(sum);
        for (p, &z) in out.iter_mut().zip(distances.iter()) {
            *p = self.power(z + log) as i64;
        }
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, "softmax", reason);
        self.exp.validate("softmax")?;
        self.log.validate("softmax")?;
        let (m, f) = (self.ring_bits, self.fraction);
        check((2..=8).contains(&f), format!("{f} fractional bits"))?;
        check(
            (f + SHIFT_BITS..=Truncation::MAX_RING_BITS).contains(&m),
            format!("ring of {m} bits"),
        )?;
        check(
            self.exp.input_bits() == f
                && self.exp.output_bits() == EXP_BITS
                && self.exp.entries()[0] == (1 << EXP_BITS) - 1,
            "its table of powers has another size".into(),
        )?;
        check(
            self.log.input_bits() == LOG_BITS && self.log.output_bits() == f,
            "its table of logarithms has another size".into(),
        )?;
        let ring = 1i64 << m;
        check(
            (0..ring).contains(&self.mask),
            format!("mask of {} units", self.mask),
        )?;
        check(
            (-ring..ring).contains(&self.offset),
            format!("offset of {} units", self.offset),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn real_softmax(row: &[i64], fraction: u32) -> Vec<f64> {
        let unit = 2f64.powi(fraction as i32);
        let max = *row.iter().max().unwrap();
        let e: Vec<f64> = row
            .iter()
            .map(|s| ((s - max) as f64 / unit).exp2())
            .collect();
        let sum: f64 = e.iter().sum();
        e.iter().map(|v| v / sum).collect()
    }

    proptest! {
        #[test]
        fn close_to_the_real_function(
            row in proptest::collection::vec(-2000i64..2000, 1..60),
            fraction in 5u32..=6,
        ) {
            let softmax = Softmax::new(16, fraction, 0, 0);
            let mut out = vec![0; row.len()];
            softmax.apply(&row, &mut out, &mut SoftmaxScratch::default());
            for (p, want) in out.iter().zip(real_softmax(&row, fraction)) {
                let got = *p as f64 / 4096.0;
                // Relative: one unit of the logarithm and the table's; absolute: the floor.
                let unit = 2f64.powi(-(fraction as i32));
                let bound = 1.2 * unit * want + 2.0 / 4096.0;
                prop_assert!((got - want).abs() < bound, "{} {}", got, want);
            }
        }
    }

    #[test]
    fn one_token_and_uniform_rows() {
        let softmax = Softmax::new(15, 5, 0, 0);
        let mut out = [0];
        softmax.apply(&[-77], &mut out, &mut SoftmaxScratch::default());
        assert_eq!(out, [4095]);
        let row = [5i64; 512];
        let mut out = [0; 512];
        softmax.apply(&row, &mut out, &mut SoftmaxScratch::default());
        assert!(out.iter().all(|&p| (7..=8).contains(&p)), "{}", out[0]);
    }

    #[test]
    fn far_values_vanish() {
        let softmax = Softmax::new(15, 5, 0, 0);
        assert_eq!(softmax.power(0), 4095);
        assert_eq!(softmax.power(12 << 5), 0);
        assert_eq!(softmax.power(u64::from(u32::MAX)), 0);
        assert_eq!(softmax.power(1 << 5), 2047);
    }
}
