//! Products of residues by short integers, on limbs that fit a 16-bit multiplier.
//!
//! A residue of 41 bits is cut into three limbs of fourteen bits, each between `-(2^13 - 1)` and
//! `2^13`. The machine multiplies sixteen pairs of 16-bit numbers at once and adds neighbours, so
//! the inner dimension runs in pairs, and a vector of 32-bit sums for each limb grows by one such
//! instruction and one addition per step.
//!
//! **Sums.** A weight of 15 bits lies between `-2^14` and `2^14 - 1`, so a product with a limb lies
//! between `-2^27` and `2^27 - 1`, and the sixteen of [`STEPS`] `= 8` steps fit 32 bits; those of
//! any 16-bit weights fit for half as many. A *drain* follows: the vector is added, modulo `2^32`,
//! to a vector `low`, and its upper halves to a vector `high`, and it starts again from zero. After
//! `n ≤ 2^16` drains the sum of everything lies between `2^16·high` and `2^16·(high + n)`, less
//! than `2^32` apart, so `low` tells which number it is, and `high` has not overflowed. That is
//! three instructions for a drain, where sums of 64 bits would take six and twice the registers.
//! With [`MAX_INNER`] terms a limb's sum is below `2^19·2^28 = 2^47`, and the result
//! `s0 + 2^14·s1 + 2^28·s2` is put together modulo p.
//!
//! **Order.** Weights are packed once ([`Packed`]), in the order in which they are read: a group of
//! [`PANELS`] panels of [`COLUMNS`] columns, in it a block of [`PAIRS`] pairs of rows, in it a
//! panel at a time. A panel of a block fills a quarter of the first-level cache; every row of the
//! left side passes it, two at a time, in registers: `2 · 3 · 2` vectors of sums, two of weights.
//! Each pass prefetches its part of the next panel, so that it is in the cache when it is needed: a
//! model's weights are larger than the caches.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod packed;
mod portable;
#[cfg(test)]
mod tests;

pub use packed::Packed;

use crate::modulus;
use zeroize::optimization_barrier;

/// Limbs of a residue.
const LIMBS: usize = 3;
/// Bits of a limb.
const BITS: u32 = 14;
/// Bits of a weight, at most, with its sign.
const WEIGHT_BITS: u32 = i16::BITS;
/// Columns of a panel: two vectors of 32-bit sums for each limb.
const COLUMNS: usize = 16;
/// Steps whose sums fit 32 bits if weights have 15 bits; half of them if weights have 16.
const STEPS: usize = 8;
/// Pairs of rows of a block.
const PAIRS: usize = 16 * STEPS;
/// Panels of a group.
const PANELS: usize = 16;
/// Most rows of the right side: `2^16` drains of half [`STEPS`].
const MAX_INNER: usize = 1 << 19;
const _: () = assert!(MAX_INNER.div_ceil(STEPS) <= 1 << 16);

/// The limbs of two neighbours of a row: `[limb][neighbour]`.
type Limbs = [[i16; 2]; LIMBS];
/// Two rows of a panel, interleaved: `[column][row]`. A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Pair([[i16; 2]; COLUMNS]);

/// Sums of one row in one panel.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Sums {
    /// Of each limb and column, modulo `2^32`.
    low: [[i32; COLUMNS]; LIMBS],
    /// The upper halves of what was added to `low`.
    high: [[i32; COLUMNS]; LIMBS],
}

const ZERO: Sums = Sums {
    low: [[0; COLUMNS]; LIMBS],
    high: [[0; COLUMNS]; LIMBS],
};

const NOTHING: Pair = Pair([[0; 2]; COLUMNS]);

/// The form of the inner loops that runs. Only detection makes the vector form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// Adds the products of the limbs of some rows and a panel, draining every `steps` steps.
    #[inline(always)]
    fn tile<const ROWS: usize>(
        self,
        limbs: [&[Limbs]; ROWS],
        panel: &[Pair],
        steps: usize,
        sums: [&mut Sums; ROWS],
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::tile(limbs, panel, steps, sums),
            Self::Portable => portable::tile(limbs, panel, steps, sums),
        }
    }

    /// Prefetches the pairs that will be read soon.
    #[inline(always)]
    fn prefetch(self, soon: &[Pair]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::prefetch(soon),
            Self::Portable => {
                let _ = soon;
            }
        }
    }

    /// Computes the residues of sums.
    #[inline(always)]
    fn finish(self, sums: &Sums, out: &mut [u64]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::finish(sums, out),
            Self::Portable => portable::finish(sums, out),
        }
    }

    /// Cuts the neighbours of a row into limbs; with an odd number the last is paired with zero.
    fn cut(self, row: &[u64], out: &mut [Limbs]) {
        assert!(out.len() == row.len().div_ceil(2));
        let (pairs, rest) = row.as_chunks();
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::cut_pairs(pairs, out),
            Self::Portable => portable::cut_pairs(pairs, out),
        }
        if let ([last], Some(out)) = (rest, out.last_mut()) {
            *out = cut(*last).map(|limb| [limb, 0]);
        }
    }
}

/// Returns a residue as limbs: `Σ_i limb_i·2^(BITS·i)`, each between `-(2^13 - 1)` and `2^13`.
#[inline(always)]
fn cut(residue: u64) -> [i16; LIMBS] {
    debug_assert!(residue < modulus::P);
    // With that much added to the lower limbs they are plain digits.
    const ADD: u64 = (1 << (BITS - 1)) - 1;
    const MASK: u64 = (1 << BITS) - 1;
    const TOP: u64 = (modulus::P - 1 + ADD + (ADD << BITS)) >> (2 * BITS);
    const _: () = assert!(
        TOP <= 1 << (BITS - 1),
        "a residue has more bits than its limbs"
    );
    let shifted = residue + ADD + (ADD << BITS);
    [
        (shifted & MASK) as i16 - ADD as i16,
        ((shifted >> BITS) & MASK) as i16 - ADD as i16,
        (shifted >> (2 * BITS)) as i16,
    ]
}

/// Buffers kept from one product to the next. They hold shares and are wiped.
#[derive(Default)]
pub(crate) struct Scratch {
    limbs: Vec<Limbs>,
    sums: Vec<Sums>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.limbs.fill(Limbs::default());
        self.sums.fill(ZERO);
        // Number by number, as `zeroize` does it, would take as long as a small product.
        optimization_barrier(self.limbs.as_slice());
        optimization_barrier(self.sums.as_slice());
    }
}

/// Returns `left · right` modulo p; the rows of `left` have as many residues as `right` has rows.
pub(crate) fn product(left: &[u64], right: &Packed, scratch: &mut Scratch) -> Vec<u64> {
    run(Kernel::detect(), left, right, scratch)
}

fn run(kernel: Kernel, left: &[u64], right: &Packed, scratch: &mut Scratch) -> Vec<u64> {
    let (inner, cols) = (right.rows(), right.cols());
    if inner == 0 || cols == 0 || left.is_empty() {
        return Vec::new();
    }
    assert!(left.len().is_multiple_of(inner));
    let (rows, pairs) = (left.len() / inner, inner.div_ceil(2));
    let Scratch { limbs, sums } = scratch;
    limbs.resize(rows * pairs, Limbs::default());
    for (row, out) in left.chunks_exact(inner).zip(limbs.chunks_exact_mut(pairs)) {
        kernel.cut(row, out);
    }
    let mut out = vec![0; rows * cols];
    let mut weights = right.pairs();
    for first in (0..cols).step_by(PANELS * COLUMNS) {
        let count = (cols - first).div_ceil(COLUMNS).min(PANELS);
        sums.clear();
        sums.resize(count * rows, ZERO);
        for start in (0..pairs).step_by(PAIRS) {
            let depth = PAIRS.min(pairs - start);
            let row = |r: usize| &limbs[r * pairs + start..][..depth];
            for sums in sums.chunks_exact_mut(rows) {
                let (panel, rest) = weights.split_at(depth);
                weights = rest;
                let mut soon =
                    rest[..rest.len().min(PAIRS)].chunks(PAIRS.div_ceil(rows.div_ceil(2)));
                let (twos, last) = sums.as_chunks_mut();
                let even = 2 * twos.len();
                for (i, [a, b]) in twos.iter_mut().enumerate() {
                    kernel.prefetch(soon.next().unwrap_or_default());
                    kernel.tile([row(2 * i), row(2 * i + 1)], panel, right.steps(), [a, b]);
                }
                if let [last] = last {
                    kernel.prefetch(soon.next().unwrap_or_default());
                    kernel.tile([row(even)], panel, right.steps(), [last]);
                }
            }
        }
        for (r, out) in out.chunks_exact_mut(cols).enumerate() {
            for (p, out) in out[first..].chunks_mut(COLUMNS).take(count).enumerate() {
                kernel.finish(&sums[p * rows + r], out);
            }
        }
    }
    out
}

/// Returns `left · right` modulo p for residues on both sides, `right` in rows of `cols`: the limbs
/// of the right side are columns beside each other.
pub(crate) fn product_residues(
    left: &[u64],
    right: &[u64],
    inner: usize,
    cols: usize,
    scratch: &mut Scratch,
) -> Vec<u64> {
    let mut short = vec![0i16; LIMBS * right.len()];
    if cols > 0 {
        for (row, out) in right
            .chunks_exact(cols)
            .zip(short.chunks_exact_mut(LIMBS * cols))
        {
            for (c, &v) in row.iter().enumerate() {
                for (l, limb) in cut(v).into_iter().enumerate() {
                    out[l * cols + c] = limb;
                }
            }
        }
    }
    let wide = product(
        left,
        &Packed::from_rows(&short, inner, LIMBS * cols),
        scratch,
    );
    short.fill(0);
    optimization_barrier(short.as_slice());
    let mut out = Vec::with_capacity(wide.len() / LIMBS);
    for row in wide.chunks_exact((LIMBS * cols).max(1)) {
        out.extend((0..cols).map(|c| {
            (0..LIMBS).rev().fold(0, |sum, l| {
                modulus::reduce((sum << BITS) + row[l * cols + c])
            })
        }));
    }
    out
}
