//! The loops in plain Rust. Where it may ([`super::avx2`]), the compiler makes vectors of all but
//! the innermost by itself.

use super::{BITS, COLUMNS, LIMBS, Limbs, MAX_INNER, Pair, Sums, WEIGHT_BITS, cut};
use crate::modulus;

/// Adds the products of the limbs of some rows and a panel.
pub(super) fn tile<const ROWS: usize>(
    limbs: [&[Limbs]; ROWS],
    panel: &[Pair],
    steps: usize,
    sums: [&mut Sums; ROWS],
) {
    for (limbs, sums) in limbs.into_iter().zip(sums) {
        for (limbs, panel) in limbs.chunks(steps).zip(panel.chunks(steps)) {
            let mut short = [[0i32; COLUMNS]; LIMBS];
            for (limbs, pair) in limbs.iter().zip(panel) {
                for (short, limb) in short.iter_mut().zip(limbs) {
                    let [a, b] = limb.map(i32::from);
                    for (s, w) in short.iter_mut().zip(&pair.0) {
                        *s += a * i32::from(w[0]) + b * i32::from(w[1]);
                    }
                }
            }
            for l in 0..LIMBS {
                for c in 0..COLUMNS {
                    sums.low[l][c] = sums.low[l][c].wrapping_add(short[l][c]);
                    sums.high[l][c] += short[l][c] >> 16;
                }
            }
        }
    }
}

/// Computes the residues of sums.
#[inline(always)]
pub(super) fn finish(sums: &Sums, out: &mut [u64]) {
    // A multiple of p above every sum.
    const LIFT: i64 = (modulus::P << 7) as i64;
    const _: () = assert!(LIFT >= (MAX_INNER as i64) << (BITS - 1 + WEIGHT_BITS - 1));
    const _: () = assert!(modulus::P as u128 * (1 << BITS) + 2 * LIFT as u128 <= u64::MAX as u128);
    let mut residues = [0; COLUMNS];
    for (c, residue) in residues.iter_mut().enumerate() {
        for l in (0..LIMBS).rev() {
            let base = sums.high[l][c] << 16;
            let sum = (i64::from(sums.high[l][c]) << 16)
                + i64::from(sums.low[l][c].wrapping_sub(base) as u32);
            // Below 2^55 + 2^49.
            *residue = modulus::reduce((*residue << BITS) + (sum + LIFT) as u64);
        }
    }
    let len = out.len().min(COLUMNS);
    out[..len].copy_from_slice(&residues[..len]);
}

/// Cuts pairs of residues into limbs.
#[inline(always)]
pub(super) fn cut_pairs(pairs: &[[u64; 2]], out: &mut [Limbs]) {
    for (pair, out) in pairs.iter().zip(out) {
        let [a, b] = pair.map(cut);
        *out = std::array::from_fn(|l| [a[l], b[l]]);
    }
}
