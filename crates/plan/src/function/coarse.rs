//! A coarse maximum of a row: the part of softmax that is left for a garbled circuit.
//!
//! Softmax takes powers of two of scores relative to the row's maximum. Any number near the maximum
//! can take its place, because the division by the row's sum cancels it; all that matters is that
//! no power leaves the range of its table. So the circuit sees scores `s_j` only in steps of
//! several units of log 2, in a ring of a few bits (`assign/lookups.rs` chooses both). From the
//! coarse scores `c_j` of a row:
//!
//! ```text
//! M   = max c_j
//! d_j = M - c_j
//! o_j = c_j + d_j = M         if d_j < 2^near_bits
//!       c_j + far             otherwise
//! ```
//!
//! and `v_j = s_j - step·o_j`, a linear step on fine shares, is the index of the power:
//!
//! * near the maximum it is `s_j - step·M`, exactly;
//! * elsewhere it is `(s_j - step·c_j) - step·far`, however far away the score is. Truncation puts
//!   `c_j` within `-1..2` steps of `s_j`, so `v_j` lies within `-(far + 1)..-(far - 2)` steps: it
//!   does not wrap, and the table of powers is zero there.
//!
//! Every `v_j` lies between `-(far + 1)` and `2` steps, and below `1` except for one element in
//! 2^17, for which truncation is within two steps and not one. The index of the power has room for
//! one step more than the range from `-(far + 1)` to `1`.
//!
//! Padding is private as in [`super::Softmax`]: [`CoarseMaximum::mask`] is subtracted linearly from
//! the scores of padded keys before this function, and moves them further from any maximum than
//! `2^near_bits` steps.

use super::FunctionError;
use serde::{Deserialize, Serialize};

/// The longest row.
const MAX_ROW: usize = 512;

/// The coarse maximum over rows of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoarseMaximum {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of a coarse score: not positive, as a step is several units.
    pub fraction: i32,
    /// Distances below `2^near_bits` steps are kept.
    pub near_bits: u32,
    /// What all other distances count as, in steps.
    pub far: u32,
    /// Subtracted from the scores of padded keys, in steps.
    pub mask: i64,
    /// Added to every score, in steps.
    pub offset: i64,
}

impl CoarseMaximum {
    /// Returns the bits of a result with its sign: it is a coarse score plus a distance.
    pub const fn output_bits(&self) -> u32 {
        self.ring_bits + 1
    }

    /// Returns how far below zero the middle of the range of `v_j` lies, in half steps: the range
    /// reaches from `-(far + 1)` to `1`, with the same room on both sides.
    pub const fn middle(&self) -> i64 {
        self.far as i64
    }

    /// Computes the results of one row of signed ring values.
    ///
    /// # Panics
    /// If the row is empty, longer than 512, or of another length than `out`.
    pub fn apply(&self, row: &[i64], out: &mut [i64]) {
        assert!(!row.is_empty() && row.len() <= MAX_ROW && row.len() == out.len());
        let max = row.iter().copied().fold(i64::MIN, i64::max);
        for (out, &c) in out.iter_mut().zip(row) {
            let distance = max - c;
            let near = distance >> self.near_bits == 0;
            *out = c + if near { distance } else { i64::from(self.far) };
        }
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, "coarse maximum", reason);
        let (m, near) = (self.ring_bits, self.near_bits);
        check((3..=10).contains(&m), format!("ring of {m} bits"))?;
        check(
            (-8..=0).contains(&self.fraction),
            format!("{} fractional bits", self.fraction),
        )?;
        check(
            (1..m).contains(&near),
            format!("distances of {near} bits in a ring of {m}"),
        )?;
        check(
            (1 << near..=1 << (m - 1)).contains(&self.far),
            format!("{} steps for distances of more than {near} bits", self.far),
        )?;
        let ring = 1i64 << m;
        check(
            (0..ring).contains(&self.mask),
            format!("mask of {} steps", self.mask),
        )?;
        check(
            (-ring..ring).contains(&self.offset),
            format!("offset of {} steps", self.offset),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::modulus;
    use primer_ring::prg::Prg;
    use primer_ring::truncate::Truncation;
    use proptest::prelude::*;

    fn typical() -> CoarseMaximum {
        CoarseMaximum {
            ring_bits: 7,
            fraction: -2,
            near_bits: 2,
            far: 5,
            mask: 0,
            offset: 0,
        }
    }

    proptest! {
        /// Goes from scores through random shares and truncation: what is near is exact, what is
        /// far stays far, and nothing leaves the range of the table of powers.
        #[test]
        fn fine_rests_stay_in_range(
            row in proptest::collection::vec(-50.0f64..50.0, 1..40),
            seed in any::<[u8; 16]>(),
        ) {
            let coarse = typical();
            let by = Truncation::to_ring(coarse.ring_bits).unwrap();
            let step = 2f64.powi(-coarse.fraction);
            let unit = 2f64.powi(by.shift() as i32);
            let mut prg = Prg::new(&seed);
            let scores: Vec<i64> = row.iter().map(|s| (s / step * unit) as i64).collect();
            let truncated: Vec<i64> =
                scores.iter().map(|&s| by.shared(s, modulus::random(&mut prg))).collect();
            let mut out = vec![0; row.len()];
            coarse.apply(&truncated, &mut out);
            let max = truncated.iter().max().unwrap();
            for ((s, c), o) in row.iter().zip(&truncated).zip(&out) {
                let rest = s - step * *o as f64;
                prop_assert!((-24.0..8.0).contains(&rest), "{s} {c} {o}");
                if max - c < 4 {
                    prop_assert_eq!(o, max);
                } else {
                    // Truncation is off by two units for one element in 2^17, so -16 is the usual
                    // end.
                    prop_assert!(rest < -12.0, "{s} {c} {o}");
                }
            }
        }
    }

    #[test]
    fn distances_are_kept_or_far() {
        let mut out = [0; 6];
        typical().apply(&[-64, 59, 60, 61, 63, -3], &mut out);
        assert_eq!(out, [-59, 64, 63, 63, 63, 2]);
        let mut out = [0];
        typical().apply(&[-64], &mut out);
        assert_eq!(out, [-64]);
    }

    #[test]
    fn impossible_parameters_are_refused() {
        typical().validate().unwrap();
        let refused = |change: &dyn Fn(&mut CoarseMaximum)| {
            let mut coarse = typical();
            change(&mut coarse);
            assert!(coarse.validate().is_err(), "{coarse:?}");
        };
        for bits in [0, 2, 11, u32::MAX] {
            refused(&|c| c.ring_bits = bits);
        }
        for bits in [0, 3, 7, u32::MAX] {
            refused(&|c| c.near_bits = bits);
        }
        for far in [0, 3, 65, u32::MAX] {
            refused(&|c| c.far = far);
        }
        refused(&|c| c.fraction = 1);
        refused(&|c| c.mask = -1);
        refused(&|c| c.mask = 128);
        refused(&|c| c.offset = i64::MIN);
    }
}
