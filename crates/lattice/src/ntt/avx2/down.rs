//! Forward layers.

use super::super::Ntt;
use super::{
    BLOCK, Lanes, block_factors, broadcast, down, even_lanes, lanes, load, load_factor, odd_lanes,
    reduce, store,
};
use std::arch::x86_64::*;

/// Runs all forward layers. The first pass reads from `from`; all others work in place.
///
/// # Safety
/// As many numbers as `a` has must be readable at `from`, which is either `a` or disjoint from it.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn forward(ntt: &Ntt, mut from: *const u32, a: &mut [u32]) {
    let l = lanes(ntt.prime.value());
    let n = ntt.degree;
    let (mut stride, mut groups) = (n / 2, 1);
    let to = a.as_mut_ptr();
    if (n / BLOCK).trailing_zeros() % 2 == 1 {
        let w = broadcast(ntt.roots.get(1));
        for i in (0..stride).step_by(8) {
            // SAFETY: `stride + i + 8 <= n`.
            unsafe {
                let (mut u, mut v) = (load(from.add(i)), load(from.add(stride + i)));
                down(l, &mut u, &mut v, w, w.quotient);
                store(to.add(i), u);
                store(to.add(stride + i), v);
            }
        }
        from = to;
        stride /= 2;
        groups *= 2;
    }
    while stride >= BLOCK {
        // Two layers: strides `stride` and `stride / 2`.
        let quarter = stride / 2;
        for g in 0..groups {
            let w1 = broadcast(ntt.roots.get(groups + g));
            let w2 = broadcast(ntt.roots.get(2 * (groups + g)));
            let w3 = broadcast(ntt.roots.get(2 * (groups + g) + 1));
            let first = g * 2 * stride;
            for i in (first..first + quarter).step_by(8) {
                // SAFETY: a group has four quarters, `i + 8` stays within one, and the groups
                // fill the polynomial.
                unsafe {
                    let mut x0 = load(from.add(i));
                    let mut x1 = load(from.add(quarter + i));
                    let mut x2 = load(from.add(2 * quarter + i));
                    let mut x3 = load(from.add(3 * quarter + i));
                    down(l, &mut x0, &mut x2, w1, w1.quotient);
                    down(l, &mut x1, &mut x3, w1, w1.quotient);
                    down(l, &mut x0, &mut x1, w2, w2.quotient);
                    down(l, &mut x2, &mut x3, w3, w3.quotient);
                    store(to.add(i), x0);
                    store(to.add(quarter + i), x1);
                    store(to.add(2 * quarter + i), x2);
                    store(to.add(3 * quarter + i), x3);
                }
            }
        }
        from = to;
        stride /= 4;
        groups *= 4;
    }
    for (g, (chunk, tail)) in a
        .chunks_exact_mut(BLOCK)
        .zip(ntt.tail.chunks_exact(96))
        .enumerate()
    {
        let (w1, w2, w3) = block_factors(&ntt.roots, groups, g);
        let p = chunk.as_mut_ptr();
        // SAFETY: a block has 32 coefficients and its factors are 96 numbers.
        unsafe {
            let [mut x0, mut x1, mut x2, mut x3] =
                [load(p), load(p.add(8)), load(p.add(16)), load(p.add(24))];
            down(l, &mut x0, &mut x2, w1, w1.quotient);
            down(l, &mut x1, &mut x3, w1, w1.quotient);
            down(l, &mut x0, &mut x1, w2, w2.quotient);
            down(l, &mut x2, &mut x3, w3, w3.quotient);
            tail_down(l, x0, x1, tail.as_ptr(), p);
            tail_down(l, x2, x3, tail.as_ptr().add(48), p.add(16));
        }
    }
}

/// Runs the layers of strides 4, 2 and 1 on sixteen coefficients, then the final reduction.
///
/// # Safety
/// 48 numbers must be readable at `tail`, and 16 writable at `out`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tail_down(l: Lanes, a: __m256i, b: __m256i, tail: *const u32, out: *mut u32) {
    // SAFETY: the caller's promise.
    let (w4, w2, w1) = unsafe {
        (
            load_factor(tail),
            load_factor(tail.add(16)),
            load_factor(tail.add(32)),
        )
    };
    let mut x = _mm256_permute2x128_si256::<0x20>(a, b);
    let mut y = _mm256_permute2x128_si256::<0x31>(a, b);
    down(l, &mut x, &mut y, w4, w4.quotient);
    let mut u = _mm256_unpacklo_epi64(x, y);
    let mut v = _mm256_unpackhi_epi64(x, y);
    down(l, &mut u, &mut v, w2, w2.quotient);
    let (mut x, mut y) = (even_lanes(u, v), odd_lanes(u, v));
    down(l, &mut x, &mut y, w1, _mm256_srli_epi64::<32>(w1.quotient));
    let x = reduce(reduce(x, l.q2), l.q);
    let y = reduce(reduce(y, l.q2), l.q);
    let u = _mm256_unpacklo_epi32(x, y);
    let v = _mm256_unpackhi_epi32(x, y);
    let x = _mm256_unpacklo_epi64(u, v);
    let y = _mm256_unpackhi_epi64(u, v);
    // Halves are stored apart: exchanging them in registers first costs more than the stores.
    // SAFETY: the caller's promise.
    unsafe {
        _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(x));
        _mm_storeu_si128(out.add(4).cast(), _mm256_castsi256_si128(y));
        _mm_storeu_si128(out.add(8).cast(), _mm256_extracti128_si256::<1>(x));
        _mm_storeu_si128(out.add(12).cast(), _mm256_extracti128_si256::<1>(y));
    }
}
