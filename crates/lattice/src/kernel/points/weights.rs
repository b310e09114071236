//! Weights, prepared once: one number for every weight, point and limb.

use super::layout;
use super::{Blocks, Points};
use crate::kernel::aligned::Aligned;
use crate::prime::Prime;
use crate::simd::Simd;
use std::ops::Range;

/// The weight polynomials of `rows × terms` for one limb, by their values. They are the server's
/// secret and wiped when dropped.
///
/// They are written one block of rows at a time, so an encoder needs memory for only one block of
/// plain values; and weights that do not fit the memory at all can be written over those of other
/// rows between two products.
pub struct PointWeights {
    prime: Prime,
    points: Points,
    blocks: Blocks,
    terms: usize,
    /// `[point][block][term][row of the block]`: balanced, in Montgomery form.
    data: Aligned,
}

impl PointWeights {
    /// Makes weights that are all zero.
    ///
    /// # Panics
    /// If there is no row or no term.
    pub fn zeros(prime: Prime, points: Points, rows: usize, terms: usize) -> Self {
        assert!(rows > 0 && terms > 0, "a product has rows and terms");
        Self {
            prime,
            points,
            blocks: Blocks { rows },
            terms,
            data: Aligned::zeros(points.count() * rows * terms),
        }
    }

    /// Returns the number of blocks that are written one at a time.
    pub fn blocks(&self) -> usize {
        self.blocks.count()
    }

    /// Returns the rows of one block: one to six.
    pub fn block(&self, block: usize) -> Range<usize> {
        self.blocks.rows(block)
    }

    /// Writes the weights of one block: the values of its polynomials at all points, one polynomial
    /// after the other, `[row of the block][term][point]`, as a transform of degree
    /// `points.count()` returns them.
    ///
    /// # Panics
    /// If there is no such block or if these are not its values.
    pub fn write(&mut self, simd: Simd, block: usize, values: &[u32]) {
        assert!(block < self.blocks(), "no block {block}");
        let (prime, terms, count) = (self.prime, self.terms, self.points.count());
        let rows = self.blocks.rows(block);
        let height = rows.len();
        assert_eq!(values.len(), height * terms * count);
        debug_assert!(values.iter().all(|v| *v < prime.value()));
        let stride = self.blocks.rows * terms;
        let data = &mut self.data.sized(count * stride)[rows.start * terms..];
        layout::turn(simd, prime, data, values, [height, terms, count], stride);
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.blocks.rows
    }

    /// Returns the number of terms of a sum.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Returns the limb's prime.
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// Returns the points.
    pub fn points(&self) -> Points {
        self.points
    }

    /// Returns the size of the weights in bytes: four for each weight polynomial and point.
    pub fn memory(&self) -> usize {
        size_of::<u32>() * self.points.count() * self.rows() * self.terms
    }

    pub(super) fn blocks_of_rows(&self) -> Blocks {
        self.blocks
    }

    /// Returns the weights of one point.
    pub(super) fn at(&self, point: usize) -> &[u32] {
        let len = self.rows() * self.terms;
        &self.data.get(self.points.count() * len)[point * len..][..len]
    }
}

impl Drop for PointWeights {
    fn drop(&mut self) {
        self.data.wipe();
    }
}
