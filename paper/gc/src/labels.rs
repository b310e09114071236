//! Values between steps: labels, one for each bit of each element.

use primer_garble::Label;
use std::ops::Range;
use zeroize::Zeroizing;

/// A matrix of numbers of which a party holds labels: the garbler those of 0, the evaluator the
/// active ones.
pub(crate) struct Labels {
    cols: usize,
    /// Bits of an element, the lowest first.
    bits: usize,
    all: Zeroizing<Vec<Label>>,
}

impl Labels {
    /// Makes a matrix from its elements, row by row.
    pub(crate) fn new(cols: usize, bits: usize, all: Zeroizing<Vec<Label>>) -> Self {
        debug_assert!(all.len().is_multiple_of((cols * bits).max(1)));
        Self { cols, bits, all }
    }

    /// Returns the bits of an element.
    pub(crate) fn bits(&self) -> usize {
        self.bits
    }

    /// Returns all labels.
    pub(crate) fn all(&self) -> &[Label] {
        &self.all
    }

    /// Returns neighbouring elements of a row.
    pub(crate) fn span(&self, row: usize, cols: Range<usize>) -> &[Label] {
        let at = row * self.cols;
        &self.all[(at + cols.start) * self.bits..(at + cols.end) * self.bits]
    }

    /// Returns a whole row.
    pub(crate) fn row(&self, row: usize) -> &[Label] {
        self.span(row, 0..self.cols)
    }

    /// Returns one element.
    pub(crate) fn element(&self, row: usize, col: usize) -> &[Label] {
        self.span(row, col..col + 1)
    }

    /// Exchanges rows and columns.
    pub(crate) fn transposed(&self) -> Self {
        let rows = self.all.len() / (self.cols * self.bits).max(1);
        let mut all = Zeroizing::new(Vec::with_capacity(self.all.len()));
        for col in 0..self.cols {
            for row in 0..rows {
                all.extend_from_slice(self.element(row, col));
            }
        }
        Self::new(rows, self.bits, all)
    }
}
