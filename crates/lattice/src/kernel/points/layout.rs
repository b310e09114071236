//! From polynomials to the order in which the products read: balanced residues, moved.
#![allow(unsafe_code)] // Calls of AVX2-compiled copies of safe code, after detection.

use super::TILE;
use crate::kernel::elementwise::versions;
use crate::prime::Prime;
use crate::simd::{Level, Simd};

/// Polynomials, and points, that are transposed at once: 16 cache lines on either side.
const SQUARE: usize = 16;

/// Returns the bits of the representative of least absolute value.
#[inline(always)]
fn balanced(prime: Prime, value: u32) -> u32 {
    let above = u32::from(value > prime.value() / 2).wrapping_neg();
    value.wrapping_sub(prime.value() & above)
}

versions! {
    /// Fills a panel of some terms, balanced: two tiles of each, given by the half and the place in
    /// it.
    pub(super) fn gather(
        prime: Prime,
        panel: &mut [u32],
        terms: &[[&[u32]; 2]],
        tiles: [(usize, usize); 2]
    ) {
        for (to, halves) in panel.chunks_exact_mut(2 * TILE).zip(terms) {
            for (to, (half, at)) in to.chunks_exact_mut(TILE).zip(tiles) {
                let tile: &[u32; TILE] = halves[half][at..].first_chunk().expect("a tile");
                for (to, value) in to.iter_mut().zip(tile) {
                    *to = balanced(prime, *value);
                }
            }
        }
    }

    /// Turns polynomials `[row][term][point]` into `[point][term][row]`, points `stride` apart:
    /// balanced and in Montgomery form. `shape` has the numbers of rows, terms and points.
    pub(super) fn turn(
        prime: Prime,
        to: &mut [u32],
        values: &[u32],
        shape: [usize; 3],
        stride: usize
    ) {
        let [rows, terms, points] = shape;
        let shift = prime.shoup(prime.reduce60(1 << 32));
        for first_point in (0..points).step_by(SQUARE) {
            let width = SQUARE.min(points - first_point);
            for first in (0..rows * terms).step_by(SQUARE) {
                let depth = SQUARE.min(rows * terms - first);
                let mut square = [[0; SQUARE]; SQUARE];
                for (i, line) in square.iter_mut().enumerate().take(depth) {
                    let (term, row) = ((first + i) / rows, (first + i) % rows);
                    let from = &values[(row * terms + term) * points + first_point..][..width];
                    for (to, value) in line.iter_mut().zip(from) {
                        *to = balanced(prime, prime.mul_shoup(*value, shift));
                    }
                }
                for point in 0..width {
                    let to = &mut to[(first_point + point) * stride + first..][..depth];
                    for (to, line) in to.iter_mut().zip(&square) {
                        *to = line[point];
                    }
                }
            }
        }
    }
}
