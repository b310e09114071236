//! GELU as ReLU minus a small correction.
//!
//! `GELU(x) = ReLU(x) - δ(|x|)` with `δ(a) = a·Φ(-a)`, an even function that vanishes quickly: at
//! `a = 4` it is 0.0001. So the table only covers `a < 4` and a larger argument takes its last
//! entry, which is zero. No input wraps around.
//!
//! In bits, with `s` the sign of `x` and `a = x XOR s` its one's complement magnitude:
//!
//! ```text
//! 2·ReLU(x) = x + a + s          (x >= 0: x + x;  x < 0: x + (-x - 1) + 1 = 0)
//! index     = the bits of a below 4, the top TABLE_BITS of them; all ones if a >= 4
//! GELU(x)   = ReLU(x)·2^(g-f) - table[index]
//! ```
//!
//! `x`, `a` and the table's output leave the circuit through projection gates with their own
//! weights, so ReLU costs no AND gate. What remains is the adder of the two shares, the test for
//! `a >= 4`, the saturation of the index, and the table.

use super::{FunctionError, Table};
use crate::scales::MAX_VALUE_BITS;
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};

/// Bits of the table's index.
const TABLE_BITS: u32 = 8;
/// The table covers magnitudes below `2^SPAN_BITS`.
const SPAN_BITS: u32 = 2;
/// Fractional bits by which the output may exceed the input.
const MORE_BITS: i32 = 8;
const _: () = assert!(Truncation::MAX_RING_BITS as i32 + MORE_BITS <= MAX_VALUE_BITS as i32);

/// Which activation a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activation {
    /// `x·Φ(x)` with the error function: Hugging Face's `gelu`.
    GeluErf,
    /// The approximation by the hyperbolic tangent: `gelu_new`, `gelu_pytorch_tanh`.
    GeluTanh,
    /// `max(x, 0)`: `relu`.
    Relu,
}

impl Activation {
    /// Computes the function on real numbers.
    pub fn real(self, x: f64) -> f64 {
        match self {
            Self::GeluErf => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Self::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Self::Relu => x.max(0.0),
        }
    }
}

/// GELU on a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gelu {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of the input.
    pub fraction: i32,
    /// Fractional bits of the output, at least those of the input.
    pub output_fraction: i32,
    /// The correction `δ`, with the output's fractional bits.
    pub table: Table,
}

impl Gelu {
    /// Makes GELU for a ring, a scale and one of its two forms.
    ///
    /// # Panics
    /// If the activation is not a GELU or the fractions leave no room for the table.
    pub fn new(
        activation: Activation,
        ring_bits: u32,
        fraction: i32,
        output_fraction: i32,
    ) -> Self {
        assert!(activation != Activation::Relu, "ReLU needs no table");
        let cell = 2f64.powi(SPAN_BITS as i32 - TABLE_BITS as i32);
        let unit = 2f64.powi(output_fraction);
        let largest = (1 << TABLE_BITS) - 1;
        let delta = |a: f64| a - activation.real(a);
        let output_bits = 32 - ((0.171 * unit).ceil() as u32).leading_zeros();
        let table = Table::tabulate(TABLE_BITS, output_bits, |i| {
            if i == largest {
                0.0
            } else {
                delta((f64::from(i) + 0.5) * cell) * unit
            }
        });
        let gelu = Self {
            ring_bits,
            fraction,
            output_fraction,
            table,
        };
        gelu.validate()
            .expect("a GELU is built from usable parameters");
        gelu
    }

    /// Returns the number of low bits of the magnitude that the table does not see.
    pub const fn dropped_bits(&self) -> u32 {
        (self.fraction as u32 + SPAN_BITS) - self.table.input_bits()
    }

    /// Computes the function on a signed ring value.
    #[inline]
    pub fn apply(&self, x: i64) -> i64 {
        let sign = x >> 63;
        let a = (x ^ sign) as u64;
        let covered = self.fraction as u32 + SPAN_BITS;
        let index = self.table.saturating_index(a, covered);
        let relu = x & !sign;
        (relu << (self.output_fraction - self.fraction)) - self.table.at(index)
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, "GELU", reason);
        self.table.validate("GELU")?;
        check(
            self.table.input_bits() == TABLE_BITS,
            "its table has another size".into(),
        )?;
        let (m, f, g) = (self.ring_bits, self.fraction, self.output_fraction);
        check(super::is_ring(m), format!("ring of {m} bits"))?;
        check(
            f >= (TABLE_BITS - SPAN_BITS) as i32 && f as u32 + SPAN_BITS < m,
            format!("{f} fractional bits in a ring of {m}"),
        )?;
        check(
            (f..=f + MORE_BITS).contains(&g),
            format!("{g} fractional bits out of {f}"),
        )?;
        // δ must be less than one, below the ring's values, in any table.
        let bits = self.table.output_bits();
        check(
            bits <= g as u32,
            format!("a correction of {bits} bits with {g} fractional ones"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_parameters_are_refused() {
        let mut gelu = Gelu::new(Activation::GeluErf, 15, 8, 9);
        gelu.fraction = 14;
        assert!(gelu.validate().is_err());
        gelu.fraction = 5;
        assert!(gelu.validate().is_err());
        gelu.fraction = 8;
        gelu.ring_bits = 40;
        assert!(gelu.validate().is_err());
    }
}
