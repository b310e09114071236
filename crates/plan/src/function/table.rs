//! Small lookup tables.

use super::FunctionError;
use serde::{Deserialize, Serialize};

/// A table from `input_bits` to `output_bits` bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    input_bits: u32,
    output_bits: u32,
    entries: Vec<u32>,
}

impl Table {
    /// The largest number of input bits.
    pub const MAX_INPUT_BITS: u32 = 12;

    /// Tabulates a function of the index; values are rounded and clamped to `output_bits`.
    pub fn tabulate(input_bits: u32, output_bits: u32, mut f: impl FnMut(u32) -> f64) -> Self {
        assert!(
            (1..=Self::MAX_INPUT_BITS).contains(&input_bits) && (1..=24).contains(&output_bits)
        );
        let top = f64::from((1u32 << output_bits) - 1);
        let entries = (0..1 << input_bits)
            .map(|i| f(i).round().clamp(0.0, top) as u32)
            .collect();
        Self {
            input_bits,
            output_bits,
            entries,
        }
    }

    /// Returns the bits of the index.
    pub const fn input_bits(&self) -> u32 {
        self.input_bits
    }

    /// Returns the bits of an entry.
    pub const fn output_bits(&self) -> u32 {
        self.output_bits
    }

    /// Returns all entries in order.
    pub fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// Returns the entry of `index`.
    ///
    /// # Panics
    /// If the index does not have `input_bits` bits.
    #[inline]
    pub fn at(&self, index: u64) -> i64 {
        i64::from(self.entries[index as usize])
    }

    /// Returns the index of a magnitude: the topmost of its low `covered` bits, which the table
    /// covers. A larger magnitude takes the last entry.
    #[inline]
    pub(super) fn saturating_index(&self, magnitude: u64, covered: u32) -> u64 {
        if magnitude >> covered != 0 {
            (1 << self.input_bits) - 1
        } else {
            magnitude >> (covered - self.input_bits)
        }
    }

    pub(super) fn validate(&self, function: &'static str) -> Result<(), FunctionError> {
        let ok = (1..=Self::MAX_INPUT_BITS).contains(&self.input_bits)
            && (1..=24).contains(&self.output_bits)
            && self.entries.len() == 1 << self.input_bits
            && self.entries.iter().all(|e| e >> self.output_bits == 0);
        FunctionError::unless(ok, function, "its table does not have the announced size")
    }
}
