//! The loops on 256-bit vectors: the innermost by hand, the others as the compiler makes them of
//! the portable ones.
#![allow(unsafe_code)] // Vector loads and stores inside arrays; calls of AVX2-compiled copies.

use super::{COLUMNS, LIMBS, Limbs, Pair, Sums, portable};
use std::arch::x86_64::*;

/// Vectors of a panel.
const VECTORS: usize = COLUMNS / 8;

/// Runs the portable form, compiled for vectors.
pub(super) fn finish(sums: &Sums, out: &mut [u64]) {
    #[target_feature(enable = "avx2")]
    fn run(sums: &Sums, out: &mut [u64]) {
        portable::finish(sums, out);
    }
    // SAFETY: `Kernel::Avx2` is only made where the instructions exist.
    unsafe { run(sums, out) }
}

/// Runs the portable form, compiled for vectors.
pub(super) fn cut_pairs(pairs: &[[u64; 2]], out: &mut [Limbs]) {
    #[target_feature(enable = "avx2")]
    fn run(pairs: &[[u64; 2]], out: &mut [Limbs]) {
        portable::cut_pairs(pairs, out);
    }
    // SAFETY: as above.
    unsafe { run(pairs, out) }
}

/// Prefetches the pairs that will be read soon.
#[inline(always)]
pub(super) fn prefetch(soon: &[Pair]) {
    for pair in soon {
        // SAFETY: asking for an address does not read it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(pair).cast()) };
    }
}

/// Adds the products of the limbs of some rows and a panel.
pub(super) fn tile<const ROWS: usize>(
    limbs: [&[Limbs]; ROWS],
    panel: &[Pair],
    steps: usize,
    sums: [&mut Sums; ROWS],
) {
    assert!(limbs.iter().all(|row| row.len() == panel.len()));
    // SAFETY: as above; there are limbs for every pair of the panel.
    unsafe { run(limbs.map(<[_]>::as_ptr), panel, steps, sums) }
}

/// Runs [`tile`] on raw pointers.
///
/// # Safety
/// Each row must have limbs for every pair of the panel.
#[target_feature(enable = "avx2")]
unsafe fn run<const ROWS: usize>(
    limbs: [*const Limbs; ROWS],
    panel: &[Pair],
    steps: usize,
    mut sums: [&mut Sums; ROWS],
) {
    for start in (0..panel.len()).step_by(steps) {
        let mut short = [[[_mm256_setzero_si256(); VECTORS]; LIMBS]; ROWS];
        for at in start..panel.len().min(start + steps) {
            let pair = panel[at].0.as_ptr().cast::<__m256i>();
            // SAFETY: a pair of rows is two vectors of eight columns on a cache line.
            let weights: [_; VECTORS] =
                std::array::from_fn(|v| unsafe { _mm256_load_si256(pair.add(v)) });
            for (limbs, short) in limbs.iter().zip(&mut short) {
                for (l, short) in short.iter_mut().enumerate() {
                    // SAFETY: there are three times two numbers of 16 bits for this pair; read
                    // without regard to alignment.
                    let limb = unsafe {
                        let both = limbs.add(at).cast::<i32>().add(l).read_unaligned();
                        _mm256_set1_epi32(both)
                    };
                    for (s, w) in short.iter_mut().zip(weights) {
                        *s = _mm256_add_epi32(*s, _mm256_madd_epi16(limb, w));
                    }
                }
            }
        }
        for (short, sums) in short.iter().zip(&mut sums) {
            for (l, short) in short.iter().enumerate() {
                for (v, &short) in short.iter().enumerate() {
                    drain(&mut sums.low[l], v, short);
                    drain(&mut sums.high[l], v, _mm256_srai_epi32::<16>(short));
                }
            }
        }
    }
}

/// Adds `added` to eight columns of `sums`, modulo `2^32`.
#[inline]
#[target_feature(enable = "avx2")]
fn drain(sums: &mut [i32; COLUMNS], vector: usize, added: __m256i) {
    let at = sums[8 * vector..][..8].as_mut_ptr().cast();
    // SAFETY: eight sums of 32 bits.
    unsafe { _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), added)) };
}
