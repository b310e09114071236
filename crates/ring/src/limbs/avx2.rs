//! The inner loop of [`super`] on 256-bit vectors: eight sums and two weights in registers.
#![allow(unsafe_code)] // Vector loads and stores inside arrays of a fixed length.

use super::{BITS, COLUMNS, LIMBS, Limbs, Pair, Sums};
use std::arch::x86_64::*;

/// Vectors of a panel.
const VECTORS: usize = COLUMNS / 8;

pub(super) fn block(limbs: &[Limbs], panel: &[Pair], sums: &mut Sums) {
    // SAFETY: `Kernel::Avx2` is only made where the instructions exist.
    unsafe { run(limbs, panel, sums) }
}

/// The portable form, which the compiler turns into vectors here.
pub(super) fn finish(sums: &Sums, out: &mut [u64]) {
    #[target_feature(enable = "avx2")]
    fn run(sums: &Sums, out: &mut [u64]) {
        super::finish(sums, out);
    }
    // SAFETY: as above.
    unsafe { run(sums, out) }
}

/// The portable form, which the compiler turns into vectors here.
pub(super) fn interleave(right: &[i16], cols: usize, first: usize, out: &mut [Pair]) {
    #[target_feature(enable = "avx2")]
    fn run(right: &[i16], cols: usize, first: usize, out: &mut [Pair]) {
        super::interleave(right, cols, first, out);
    }
    // SAFETY: as above.
    unsafe { run(right, cols, first, out) }
}

/// The portable form, which the compiler turns into vectors here.
pub(super) fn cut_pairs(pairs: &[[u64; 2]], out: &mut [Limbs]) {
    #[target_feature(enable = "avx2")]
    fn run(pairs: &[[u64; 2]], out: &mut [Limbs]) {
        super::cut_pairs(pairs, out);
    }
    // SAFETY: as above.
    unsafe { run(pairs, out) }
}

#[target_feature(enable = "avx2")]
fn run(limbs: &[Limbs], panel: &[Pair], sums: &mut Sums) {
    let mut short = [[_mm256_setzero_si256(); VECTORS]; LIMBS];
    for (limbs, pair) in limbs.iter().zip(panel) {
        let at = pair.as_ptr().cast::<__m256i>();
        // SAFETY: a pair of rows is two vectors of eight columns.
        let weights: [_; VECTORS] =
            std::array::from_fn(|v| unsafe { _mm256_loadu_si256(at.add(v)) });
        for l in 0..LIMBS {
            let [a, b] = limbs[l].map(|limb| u32::from(limb as u16));
            let limb = _mm256_set1_epi32((a | b << 16) as i32);
            for v in 0..VECTORS {
                let products = _mm256_madd_epi16(limb, weights[v]);
                short[l][v] = _mm256_add_epi32(short[l][v], products);
            }
        }
    }
    for v in 0..VECTORS {
        join(short[0][v], short[1][v], &mut sums.low, v);
        join(short[2][v], short[3][v], &mut sums.high, v);
    }
}

/// `sums += first + 2^11·second` for eight columns.
#[inline]
#[target_feature(enable = "avx2")]
fn join(first: __m256i, second: __m256i, sums: &mut [i64; COLUMNS], vector: usize) {
    let halves = |v: __m256i| {
        [
            _mm256_cvtepi32_epi64(_mm256_castsi256_si128(v)),
            _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(v)),
        ]
    };
    let (first, second) = (halves(first), halves(second));
    let columns = &mut sums[8 * vector..][..8];
    for (i, columns) in columns.chunks_exact_mut(4).enumerate() {
        let joined = _mm256_add_epi64(first[i], _mm256_slli_epi64::<{ BITS as i32 }>(second[i]));
        let at = columns.as_mut_ptr().cast();
        // SAFETY: a chunk is four sums of 64 bits.
        unsafe { _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), joined)) };
    }
}
