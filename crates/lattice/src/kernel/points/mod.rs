//! Matrix products at every evaluation point: the sums behind products without rotations.
//!
//! # What is computed
//! A weight polynomial that has only powers of `Y = X^T` lies in the subring `Z_q[Y]/(Y^F + 1)`,
//! `F = N/T`: its transform has the same value at `T` consecutive outputs (see [`crate::ntt`]), so
//! `F` values are all of it. A ciphertext is two polynomials of `N` values, that is `2T` columns at
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
//! Residues are balanced: between `-(q-1)/2` and `(q-1)/2`, so a product is below `q²/4` in absolute
//! value, and 32 of them below `8q² < 2^63` for every `q < 2^30`. A sum of 64 bits is kept in range
//! by a *correction*: subtract `4q²`, a multiple of `q`, from a sum that is not negative, and add it
//! to a negative one. Whoever is below `8q²` is then at most `4q²`, and `AGAIN = 16` terms fit on
//! top. So the first `FIRST = 32` terms are added up, and a correction follows them and every 16
//! terms after: two instructions against thirty-two.
//!
//! Weights are stored in Montgomery form, times `2^32`. A corrected sum `s` has `|s| ≤ 4q²`; with
//! `m = s·q^-1 mod 2^32`, taken as a signed number, `(s - m·q)/2^32` is exact and below
//! `4q²/2^32 + q/2 < 1.5·q` in absolute value: two conditional steps lead to `[0, q)`.
//!
//! # The layout
//! All three are cut by points first, so that a point's share of each is contiguous and in the
//! nearest caches while it is worked on:
//!
//! * [`PointWeights`]: `[point][block of rows][term][row of the block]`. A block has up to six rows
//!   and is what the registers hold; rows are spread evenly over the blocks, so nothing is padded.
//! * [`PointTerms`]: `[point][panel of 16 columns][term][column]`, a cache line for each term. The
//!   first half's `T` columns come before those of the second.
//! * [`PointSums`] lie as `[point][row][column]`.
//!
//! Polynomials go in and out whole, one half at a time ([`PointTerms::put`], [`PointSums::take`]):
//! meant to happen right after a forward and right before an inverse transform, while the values
//! are in the cache.
//!
//! The inner loop keeps six rows by eight columns of sums in twelve registers. A signed product
//! reads the lower half of each 64-bit lane, so one vector of eight columns serves the even
//! columns as it is and the odd ones after one shuffle; every weight is broadcast by its load.
//! What was measured: `cargo bench -p primer-lattice --bench points`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod layout;
mod portable;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

pub use terms::{PointSums, PointTerms};
pub use weights::PointWeights;

use crate::prime::Prime;
use crate::simd::{Level, Simd};
use std::ops::Range;

/// Columns of a panel of terms.
const PANEL: usize = 16;
/// Columns whose sums registers hold.
const TILE: usize = 8;
/// Most rows of a block.
const HEIGHT: usize = 6;
/// Terms of a sum that starts at zero, before its first correction.
const FIRST: usize = 32;
/// Terms between two corrections.
const AGAIN: usize = 16;

/// How the values of one limb share evaluation points: `degree / run` points, each with `run`
/// consecutive values of a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Points {
    degree: usize,
    run: usize,
}

impl Points {
    /// Points of polynomials of a degree, for weights in powers of `X^run`.
    ///
    /// # Panics
    /// If one of them is not a power of two, if a run is shorter than eight, or longer than the
    /// degree.
    pub fn new(degree: usize, run: usize) -> Self {
        assert!(degree.is_power_of_two() && run.is_power_of_two());
        assert!((TILE..=degree).contains(&run));
        Self { degree, run }
    }

    /// Values of a polynomial.
    pub const fn degree(self) -> usize {
        self.degree
    }

    /// Values that share a point.
    pub const fn run(self) -> usize {
        self.run
    }

    /// Number of points: the values of a weight polynomial.
    pub const fn count(self) -> usize {
        self.degree / self.run
    }

    /// Columns of the matrix at each point: both halves of a ciphertext.
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

    /// The rows of one block.
    const fn rows(self, block: usize) -> Range<usize> {
        let count = self.count();
        block * self.rows / count..(block + 1) * self.rows / count
    }
}

/// `sums = weights · terms` at every point, or `sums += weights · terms` with `add`.
///
/// # Panics
/// If points, primes, terms or rows do not belong together.
pub fn multiply(
    simd: Simd,
    weights: &PointWeights,
    terms: &PointTerms,
    sums: &mut PointSums,
    add: bool,
) {
    assert_eq!(weights.points(), terms.points());
    assert_eq!(weights.points(), sums.points());
    assert_eq!(weights.prime(), terms.prime(), "limbs of one prime");
    assert_eq!(weights.terms(), terms.terms(), "a weight for every term");
    assert_eq!(weights.rows(), sums.rows(), "a sum for every row");
    let blocks = weights.blocks_of_rows();
    let columns = weights.points().columns();
    for point in 0..weights.points().count() {
        let (values, data) = (weights.at(point), terms.at(point));
        let out = sums.at_mut(point);
        for block in 0..blocks.count() {
            let rows = blocks.rows(block);
            let task = Block {
                prime: weights.prime(),
                terms: weights.terms(),
                weights: &values[rows.start * weights.terms()..rows.end * weights.terms()],
                data,
                add,
            };
            let out = &mut out[rows.start * columns..rows.end * columns];
            match simd.level() {
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::run(task, rows.len(), out),
                _ => portable::run(task, rows.len(), out),
            }
        }
    }
}

/// The product of one block of rows at one point.
#[derive(Clone, Copy)]
struct Block<'a> {
    prime: Prime,
    /// At least one.
    terms: usize,
    /// `[term][row]`.
    weights: &'a [u32],
    /// `[panel][term][column of the panel]`.
    data: &'a [u32],
    add: bool,
}
