//! The reciprocal square root of LayerNorm, one per token.
//!
//! A sum of squares `v > 0` is normalised to `v = u·4^h` with `u` in `[1, 4)`; then
//! `1/√v = 2^-h / √u`, a table of `u`'s leading bits shifted by `h`:
//!
//! ```text
//! h     = (position of the leading one of v) / 2, rounded down
//! index = u's two integer bits and TABLE_BITS - 2 bits after them
//! out   = table[index] << (H - h)          H = the largest h of the ring
//! ```
//!
//! All constants (the width of the layer, the scales of `v` and of the output) are folded into the
//! table. A value that is not positive counts as 1: LayerNorm's ε keeps real inputs away from it.

use super::{FunctionError, Table};
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};

const TABLE_BITS: u32 = 9;
const OUTPUT_BITS: u32 = 10;

/// Reciprocal square root on a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InverseRoot {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of the output.
    pub output_fraction: i32,
    /// `1/√u` with the constants folded in.
    pub table: Table,
}

impl InverseRoot {
    /// Makes the function `v ↦ scale / √v` on integers `v` of the ring.
    ///
    /// The output's fractional bits are chosen so that the table uses all its output bits.
    ///
    /// # Panics
    /// If the ring is too short for the table or the scale is not positive and finite.
    pub fn new(ring_bits: u32, scale: f64) -> Self {
        assert!(
            scale > 0.0 && scale.is_finite(),
            "the scale of a root is positive"
        );
        let fine = f64::from(1 << (TABLE_BITS - 2));
        // At u = 1 the table must not exceed its bits: scale·2^(fraction - H) just below 2^OUTPUT.
        let steps = Self::steps_of(ring_bits) as i32;
        let output_fraction = OUTPUT_BITS as i32 + steps - scale.log2().ceil() as i32;
        let top = scale * 2f64.powi(output_fraction - steps);
        let table = Table::tabulate(TABLE_BITS, OUTPUT_BITS, |i| {
            // Indices with u < 1 never occur; their entries are those of u = 1.
            let u = ((f64::from(i) + 0.5) / fine).max(1.0);
            top / u.sqrt()
        });
        let root = Self {
            ring_bits,
            output_fraction,
            table,
        };
        root.validate()
            .expect("a root is built from usable parameters");
        root
    }

    const fn steps_of(ring_bits: u32) -> u32 {
        // Positive values have at most ring_bits - 1 bits, so a leading one at ring_bits - 2.
        (ring_bits - 2) / 2
    }

    /// Returns the largest normalising exponent, `H`.
    pub const fn steps(&self) -> u32 {
        Self::steps_of(self.ring_bits)
    }

    /// Returns the bits of the output: those of the table, shifted by up to `H`.
    pub const fn output_bits(&self) -> u32 {
        self.table.output_bits() + self.steps()
    }

    /// Computes the function on a signed ring value.
    #[inline]
    pub fn apply(&self, v: i64) -> i64 {
        let v = v.max(1) as u64;
        let h = v.ilog2() / 2;
        let fine = self.table.input_bits() - 2;
        let index = if fine >= 2 * h {
            v << (fine - 2 * h)
        } else {
            v >> (2 * h - fine)
        };
        self.table.at(index) << (self.steps() - h)
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        self.table.validate("reciprocal square root")?;
        let m = self.ring_bits;
        FunctionError::unless(
            (4..=Truncation::MAX_RING_BITS).contains(&m)
                && self.table.input_bits() == TABLE_BITS
                && self.table.output_bits() == OUTPUT_BITS,
            "reciprocal square root",
            format!(
                "ring of {m} bits with a table of {} to {}",
                self.table.input_bits(),
                self.table.output_bits()
            ),
        )?;
        FunctionError::unless(
            (-60..=60).contains(&self.output_fraction),
            "reciprocal square root",
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
            let root = InverseRoot::new(22, scale);
            for v in (1..1 << 12).chain((1 << 12..1 << 21).step_by(97)) {
                let want = scale / (v as f64).sqrt();
                let got = root.apply(v) as f64 * 2f64.powi(-root.output_fraction);
                // Half a cell of 1/128 at u = 1 is 0.2 % after the root, plus the entry's rounding.
                assert!(
                    (got / want - 1.0).abs() < 0.004,
                    "{scale} {v}: {got} against {want}"
                );
                assert!(root.apply(v) >> root.output_bits() == 0);
            }
        }
    }

    #[test]
    fn values_that_are_not_positive_count_as_one() {
        let root = InverseRoot::new(22, 3.0);
        assert_eq!(root.apply(0), root.apply(1));
        assert_eq!(root.apply(-5), root.apply(1));
    }
}
