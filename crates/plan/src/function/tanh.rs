//! The hyperbolic tangent of the pooler.
//!
//! It is an odd function, so only magnitudes are tabulated: `a = x XOR sign`, below 4, in cells of
//! 1/256; from 4 on (tanh is 0.9993 there) the last entry is used. The sign is restored by
//! negation: with output bits `t_i`, `-t = Σ (t_i XOR 1)·2^i - (2^o - 1)`, which projection gates
//! do for free.

use super::{FunctionError, Table};
use serde::{Deserialize, Serialize};

const TABLE_BITS: u32 = 10;
const SPAN_BITS: u32 = 2;
const OUTPUT_BITS: u32 = 12;

/// Hyperbolic tangent on a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tanh {
    /// Bits of the input ring.
    pub ring_bits: u32,
    /// Fractional bits of the input.
    pub fraction: i32,
    /// `tanh` of magnitudes below 4.
    pub table: Table,
}

impl Tanh {
    /// Makes the hyperbolic tangent for a ring and a scale.
    ///
    /// # Panics
    /// If the fraction leaves no room for the table.
    pub fn new(ring_bits: u32, fraction: i32) -> Self {
        let cell = 2f64.powi(SPAN_BITS as i32 - TABLE_BITS as i32);
        let unit = f64::from(1 << OUTPUT_BITS);
        let table = Table::tabulate(TABLE_BITS, OUTPUT_BITS, |i| {
            ((f64::from(i) + 0.5) * cell).tanh() * unit
        });
        let tanh = Self {
            ring_bits,
            fraction,
            table,
        };
        tanh.validate()
            .expect("a tangent is built from usable parameters");
        tanh
    }

    /// Returns the fractional bits of the output, which are all its bits.
    pub const fn output_fraction(&self) -> i32 {
        self.table.output_bits() as i32
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
        (self.table.at(index) ^ sign) - sign
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, "tanh", reason);
        self.table.validate("tanh")?;
        let (m, f) = (self.ring_bits, self.fraction);
        check(
            self.table.input_bits() == TABLE_BITS,
            "its table has another size".into(),
        )?;
        check(super::is_ring(m), format!("ring of {m} bits"))?;
        check(
            f >= (TABLE_BITS - SPAN_BITS) as i32 && f as u32 + SPAN_BITS < m,
            format!("{f} fractional bits in a ring of {m}"),
        )
    }
}
