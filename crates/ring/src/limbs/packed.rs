//! Short integers in the order in which products read them.

use super::{COLUMNS, MAX_INNER, NOTHING, PAIRS, PANELS, Pair, STEPS};
use crate::matrix::Matrix;
use zeroize::optimization_barrier;

/// The right side of products modulo p: a matrix of short integers, packed once. Two bytes for
/// each, rows padded to an even number and columns to a multiple of sixteen. Wiped when dropped.
pub struct Packed {
    rows: usize,
    cols: usize,
    /// Steps between two drains.
    steps: usize,
    /// `[group][block][panel][pair]`.
    pairs: Vec<Pair>,
}

impl Packed {
    /// Packs a matrix.
    ///
    /// # Panics
    /// If it has more than `2^19` rows, where sums would stop being exact.
    pub fn new(matrix: &Matrix<i16>) -> Self {
        Self::from_rows(matrix.data(), matrix.rows(), matrix.cols())
    }

    pub(super) fn from_rows(data: &[i16], rows: usize, cols: usize) -> Self {
        assert!(data.len() == rows * cols && rows <= MAX_INNER);
        let mut pairs = vec![NOTHING; rows.div_ceil(2) * cols.div_ceil(COLUMNS)];
        let mut rest = pairs.as_mut_slice();
        let mut seen = 0;
        for first in (0..cols).step_by(PANELS * COLUMNS) {
            let count = (cols - first).div_ceil(COLUMNS).min(PANELS);
            for block in data.chunks(2 * PAIRS * cols) {
                let depth = (block.len() / cols).div_ceil(2);
                let out;
                (out, rest) = std::mem::take(&mut rest).split_at_mut(count * depth);
                for (i, rows) in block.chunks(2 * cols).enumerate() {
                    let (a, b) = rows.split_at(cols);
                    let (a, b) = (&a[first..], b.get(first..).unwrap_or_default());
                    for (p, out) in out[i..].iter_mut().step_by(depth).enumerate() {
                        *out = pair(&a[p * COLUMNS..], b.get(p * COLUMNS..).unwrap_or_default());
                        seen |= out
                            .0
                            .as_flattened()
                            .iter()
                            .fold(0, |all, v| all | (v ^ (v >> 15)));
                    }
                }
            }
        }
        // Bit 14 is set if it is not a copy of the sign somewhere.
        let steps = if seen >> 14 == 0 { STEPS } else { STEPS / 2 };
        Self {
            rows,
            cols,
            steps,
            pairs,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the size of the packed matrix in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(self.pairs.as_slice())
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        self.pairs.fill(NOTHING);
        optimization_barrier(self.pairs.as_slice());
    }
}

/// Returns the first columns of two rows, with zeros for what is missing.
fn pair(a: &[i16], b: &[i16]) -> Pair {
    match (a.first_chunk::<COLUMNS>(), b.first_chunk::<COLUMNS>()) {
        (Some(a), Some(b)) => Pair(std::array::from_fn(|c| [a[c], b[c]])),
        _ => Pair(std::array::from_fn(|c| {
            [a, b].map(|row| row.get(c).copied().unwrap_or(0))
        })),
    }
}
