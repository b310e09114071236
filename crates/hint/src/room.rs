//! Sums of products of short polynomials with elements of the packing: where the time goes.

use crate::params::{BLOCK, DEGREE};
use crate::ring::{Limbs, Packing};
use primer_ring::matrix::Matrix;
use primer_ring::threads;
use std::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// Buffers of such sums, wiped when dropped.
pub(crate) struct Room {
    values: Zeroizing<Vec<u32>>,
    sums: Zeroizing<Vec<u64>>,
    limbs: [Zeroizing<Vec<u32>>; 2],
    out: Zeroizing<Vec<u64>>,
}

impl Default for Room {
    fn default() -> Self {
        let limb = || Zeroizing::new(vec![0; DEGREE]);
        Self {
            values: limb(),
            sums: Zeroizing::new(vec![0; DEGREE]),
            limbs: [limb(), limb()],
            out: Zeroizing::new(vec![0; DEGREE]),
        }
    }
}

impl Room {
    /// Returns the coefficients of `Σ short·factor`, below `q'`; factors are given by values, in
    /// Montgomery form.
    pub(crate) fn sum<'a>(
        &mut self,
        ring: &Packing,
        short: impl Iterator<Item = &'a [i16]> + Clone,
        factors: &[Limbs],
    ) -> &[u64] {
        for limb in 0..2 {
            self.sums.fill(0);
            for (short, factor) in short.clone().zip(factors) {
                ring.values_of_short(limb, short, &mut self.values);
                ring.accumulate(&mut self.sums, &self.values, &factor[limb]);
            }
            ring.finish(limb, &self.sums, &mut self.limbs[limb]);
        }
        self.joined(ring)
    }

    /// Returns the coefficients of a product, below `q'`; both factors are given by values, the
    /// second one in Montgomery form.
    pub(crate) fn product(
        &mut self,
        ring: &Packing,
        short: &[Zeroizing<Vec<u32>>; 2],
        factor: &Limbs,
    ) -> &[u64] {
        for limb in 0..2 {
            self.sums.fill(0);
            ring.accumulate(&mut self.sums, &short[limb], &factor[limb]);
            ring.finish(limb, &self.sums, &mut self.limbs[limb]);
        }
        self.joined(ring)
    }

    fn joined(&mut self, ring: &Packing) -> &[u64] {
        let pairs = self.limbs[0].iter().zip(self.limbs[1].iter());
        for (out, (&a, &b)) in self.out.iter_mut().zip(pairs) {
            *out = ring.join(a, b);
        }
        &self.out
    }
}

/// Computes a matrix of some lanes block by block of its columns, divided between threads: `fill`
/// writes some blocks to a matrix that begins with the first of them.
pub(crate) fn by_blocks(
    (lanes, columns): (usize, usize),
    threads: usize,
    fill: impl Fn(Range<usize>, &mut Matrix<u64>) + Sync,
) -> Matrix<u64> {
    let blocks = columns.div_ceil(BLOCK);
    let each = blocks.div_ceil(threads.max(1)).max(1);
    let part = |first: usize| {
        let range = first..blocks.min(first + each);
        let width = columns.min(range.end * BLOCK) - first * BLOCK;
        let mut part = Matrix::zeros(lanes, width);
        fill(range, &mut part);
        part
    };
    let mut parts = threads::each((0..blocks).step_by(each).collect(), part);
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    let mut out = Matrix::zeros(lanes, columns);
    for (index, mut part) in parts.into_iter().enumerate() {
        let start = index * each * BLOCK;
        for lane in 0..lanes {
            let width = part.cols();
            out.row_mut(lane)[start..start + width].copy_from_slice(part.row(lane));
        }
        part.data_mut().zeroize();
    }
    out
}

/// Writes the coefficients of an element to its columns of all lanes that there is room for.
pub(crate) fn spread(out: &mut Matrix<u64>, block: usize, values: impl Iterator<Item = u64>) {
    let columns = out.cols();
    for (n, value) in values.enumerate() {
        let column = block * BLOCK + n % BLOCK;
        if column < columns {
            out.data_mut()[n / BLOCK * columns + column] = value;
        }
    }
}
