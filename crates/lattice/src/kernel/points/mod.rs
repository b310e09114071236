//! Matrix products at every evaluation point: the sums behind products of heads without rotations.
//!
//! # What is computed
//! A weight polynomial that has only powers of `Y = X^T` lies in the subring `Z_q[Y]/(Y^F + 1)`,
//! `F = N/T`: its transform has the same value at `T` consecutive outputs (see [`crate::ntt`]), so
//! `F` values describe it. A ciphertext is two polynomials of `N` values, that is, `2T` columns at
//! each of the `F` points. With `K` ciphertexts on the right and `R·K` weight polynomials, the
//! products and their sums are, for every point `f` on its own, a plain matrix product modulo `q`:
//!
//! ```text
//! sums_f [R × 2T]  =  weights_f [R × K]  ·  terms_f [K × 2T]
//! ```
//!
//! One call of [`multiply`] does this for all points of one limb.
//!
//! # The bound
//! Residues are balanced: between `-(q-1)/2` and `(q-1)/2`, so a product is below `q²/4` in
//! absolute value, and `FIRST = 32` of them are below `8q² < 2^63` for every `q < 2^30`. Longer
//! sums are *halved* on the way: `4q²` is subtracted from those that are not negative and added to
//! the others, which leaves the residue and at most the size of `HALVED = 16` products, so 16 more
//! terms fit on top: two instructions against 32.
//!
//! Weights are stored in Montgomery form, times `2^32`. A sum `s` of at most `LAST = 24` products
//! has `|s| < 6q²`; with `m = s·q^-1 mod 2^32`, taken as a signed number, `(s - m·q)/2^32` is exact
//! and below `6q²/2^32 + q/2 < 2q` in absolute value: two conditional steps lead to `[0, q)`.
//!
//! # The layout
//! * [`PointWeights`]: `[point][block of rows][term][row of the block]`. A block has up to six rows
//!   and is what the registers hold; rows are spread evenly over the blocks, so nothing is padded.
//! * [`PointTerms`]: `[eight terms][point][panel of 16 columns][term][column]`, a cache line for
//!   each term, balanced. Ciphertexts are put eight at a time and fill memory in one sweep, and
//!   each panel of eight terms follows the one before. The first half's `T` columns come before
//!   those of the second.
//! * [`PointSums`] are polynomials again, ready for an inverse transform. A panel's sums are one
//!   cache line of each row.
//!
//! A panel of all terms stays in the nearest cache while all rows are multiplied with it, and the
//! next one is fetched meanwhile.
//!
//! The inner loop keeps six rows by eight columns of sums in twelve registers. A signed product
//! reads the lower half of each 64-bit lane, so one vector of eight columns serves the even columns
//! as it is and the odd ones after one shuffle; every weight is broadcast by its load. Measured by
//! `cargo bench -p primer-lattice --bench points`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod layout;
mod portable;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

pub use terms::{PointSums, PointTerms, TermSlots};
pub use weights::PointWeights;

use crate::prime::Prime;
use crate::simd::{Level, Simd};
use std::ops::Range;

/// Columns of a panel of terms.
const PANEL: usize = 16;
/// Columns whose sums registers hold.
const TILE: usize = 8;
/// Terms that lie together.
const TOGETHER: usize = 8;
/// The largest number of rows of a block.
const HEIGHT: usize = 6;
/// Products that a sum has room for.
const FIRST: usize = 32;
/// The number of products that a halved sum counts as.
const HALVED: usize = 16;
/// The number of products of a sum that can be reduced.
const LAST: usize = 24;

/// Returns what is subtracted from a sum or added to it when it is halved: `4q²`.
const fn step(prime: Prime) -> i64 {
    let q = prime.value() as i64;
    4 * q * q
}

/// How the values of one limb share evaluation points: `degree / run` points, each with `run`
/// consecutive values of a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Points {
    degree: usize,
    run: usize,
}

impl Points {
    /// Makes the points of polynomials of a degree, for weights in powers of `X^run`.
    ///
    /// # Panics
    /// If one of them is not a power of two, or if a run is shorter than eight or longer than the
    /// degree.
    pub fn new(degree: usize, run: usize) -> Self {
        assert!(degree.is_power_of_two() && run.is_power_of_two());
        assert!((TILE..=degree).contains(&run));
        Self { degree, run }
    }

    /// Returns the number of values of a polynomial.
    pub const fn degree(self) -> usize {
        self.degree
    }

    /// Returns the number of values that share a point.
    pub const fn run(self) -> usize {
        self.run
    }

    /// Returns the number of points: the values of a weight polynomial.
    pub const fn count(self) -> usize {
        self.degree / self.run
    }

    /// Returns the half, and the place in it, of both tiles of a panel, from a column on.
    fn tiles(self, point: usize, column: usize) -> [(usize, usize); 2] {
        let at = |c: usize| (c / self.run, point * self.run + c % self.run);
        [at(column), at(column + TILE)]
    }

    /// Returns the number of columns of the matrix at each point: both halves of a ciphertext.
    const fn columns(self) -> usize {
        2 * self.run
    }
}

/// Rows cut into blocks of at most [`HEIGHT`], of nearly equal heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocks {
    rows: usize,
}

impl Blocks {
    const fn count(self) -> usize {
        self.rows.div_ceil(HEIGHT)
    }

    /// Returns the rows of block `block`.
    const fn rows(self, block: usize) -> Range<usize> {
        let count = self.count();
        block * self.rows / count..(block + 1) * self.rows / count
    }

    /// Returns all blocks, each with its share of the terms.
    fn all(self, terms: usize) -> Vec<Block> {
        let (eights, count) = (terms.div_ceil(TOGETHER), self.count());
        let each = (0..count).map(|block| Block {
            rows: self.rows(block),
            share: block * eights / count..(block + 1) * eights / count,
        });
        each.collect()
    }
}

/// A block of rows.
struct Block {
    rows: Range<usize>,
    /// The groups of eight terms of the next panel that are fetched on the way.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    share: Range<usize>,
}

/// Computes `sums = weights · terms` at every point.
///
/// # Panics
/// If points, primes, terms or rows do not belong together.
pub fn multiply(simd: Simd, weights: &PointWeights, terms: &PointTerms, sums: &mut PointSums) {
    assert_eq!(weights.points(), terms.points());
    assert_eq!(weights.points(), sums.points());
    assert_eq!(weights.prime(), terms.prime(), "limbs of one prime");
    assert_eq!(weights.terms(), terms.terms(), "a weight for every term");
    assert_eq!(weights.rows(), sums.rows(), "a sum for every row");
    let blocks = weights.blocks_of_rows().all(weights.terms());
    for point in 0..weights.points().count() {
        let task = Task {
            prime: weights.prime(),
            points: weights.points(),
            point,
            terms: weights.terms(),
            weights: weights.at(point),
            blocks: &blocks,
            panels: terms.panels(point),
            sums: sums.all(),
        };
        match simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::run(task),
            _ => portable::run(task),
        }
    }
}

/// The products of all rows at one point.
struct Task<'a> {
    prime: Prime,
    points: Points,
    point: usize,
    /// At least one.
    terms: usize,
    /// `[block][term][row of the block]`.
    weights: &'a [u32],
    blocks: &'a [Block],
    panels: Panels<'a>,
    sums: Rows<'a>,
}

impl Task<'_> {
    /// Returns the weights of a block, `[term][row]`.
    fn weights(&self, block: &Block) -> &[u32] {
        &self.weights[block.rows.start * self.terms..block.rows.end * self.terms]
    }

    /// Returns where both tiles of a panel belong in a row of sums.
    fn places(&self, column: usize) -> [usize; 2] {
        let tiles = self.points.tiles(self.point, column);
        tiles.map(|(half, at)| half * self.points.degree + at)
    }
}

/// All panels of a point: `[panel][term][column]` of eight terms; those of the next eight follow
/// `stride` numbers further on.
#[derive(Clone, Copy)]
struct Panels<'a> {
    data: &'a [u32],
    stride: usize,
}

/// Rows of sums, `stride` numbers apart.
struct Rows<'a> {
    data: &'a mut [u32],
    stride: usize,
}
