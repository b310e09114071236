//! What a model's hint is made of: one hint for each value that weights read.

use crate::params::hint_bytes;
use std::ops::Range;

/// The weights that read one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: u32,
    /// Its columns.
    pub features: usize,
    /// Columns of all weights that read it, side by side.
    pub outputs: usize,
}

/// All values of a model that weights read, in the order in which their hints follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents(Vec<Entry>);

impl Contents {
    /// Takes the entries in order.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self(entries)
    }

    /// Returns the entries.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// Returns the bytes of the whole hint.
    pub fn bytes(&self) -> u64 {
        let each = self.0.iter().map(|entry| hint_bytes(entry.outputs) as u64);
        each.sum()
    }

    /// Returns where the hint of an entry lies in the whole.
    pub fn place(&self, index: usize) -> Range<u64> {
        let before = self.0[..index].iter();
        let start: u64 = before.map(|entry| hint_bytes(entry.outputs) as u64).sum();
        start..start + hint_bytes(self.0[index].outputs) as u64
    }
}
