//! The transform on 256-bit vectors of eight 32-bit lanes.
//!
//! Layers of stride 32 and more run in pairs (radix 4) with one factor per group of coefficients.
//! The five last layers of the forward transform, and the five first of the inverse, run on blocks
//! of 32 coefficients without leaving the registers.
#![allow(unsafe_code)] // Vector loads and stores; bounds follow from the degree, checked on entry.

use super::{Ntt, Roots};
use crate::prime::Shoup;
use std::arch::x86_64::*;

/// Coefficients of a block that the innermost layers keep in registers.
const BLOCK: usize = 32;

/// Eight copies of a factor and of its quotient.
#[derive(Clone, Copy)]
struct Factor {
    value: __m256i,
    quotient: __m256i,
}

/// The prime, once and twice, in every lane.
#[derive(Clone, Copy)]
struct Lanes {
    q: __m256i,
    q2: __m256i,
}

#[target_feature(enable = "avx2")]
fn lanes(q: u32) -> Lanes {
    Lanes {
        q: _mm256_set1_epi32(q as i32),
        q2: _mm256_set1_epi32(2 * q as i32),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(w: Shoup) -> Factor {
    Factor {
        value: _mm256_set1_epi32(w.value as i32),
        quotient: _mm256_set1_epi32(w.quotient as i32),
    }
}

/// `a·w` up to one prime. `odd` holds the quotients of the odd lanes in even lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn mul_lazy(l: Lanes, a: __m256i, w: Factor, odd: __m256i) -> __m256i {
    let even = _mm256_mul_epu32(a, w.quotient);
    let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), odd);
    let high = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
    _mm256_sub_epi32(
        _mm256_mullo_epi32(a, w.value),
        _mm256_mullo_epi32(high, l.q),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn reduce(a: __m256i, q: __m256i) -> __m256i {
    _mm256_min_epu32(a, _mm256_sub_epi32(a, q))
}

/// Forward butterfly: inputs and outputs below `4q`.
#[inline]
#[target_feature(enable = "avx2")]
fn down(l: Lanes, x: &mut __m256i, y: &mut __m256i, w: Factor, odd: __m256i) {
    let u = reduce(*x, l.q2);
    let v = mul_lazy(l, *y, w, odd);
    *x = _mm256_add_epi32(u, v);
    *y = _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v);
}

/// Inverse butterfly: inputs and outputs below `2q`.
#[inline]
#[target_feature(enable = "avx2")]
fn up(l: Lanes, x: &mut __m256i, y: &mut __m256i, w: Factor, odd: __m256i) {
    let (u, v) = (*x, *y);
    *x = reduce(_mm256_add_epi32(u, v), l.q2);
    *y = mul_lazy(l, _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v), w, odd);
}

/// # Safety
/// Eight numbers must be readable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(p: *const u32) -> __m256i {
    // SAFETY: the caller's promise; the load is unaligned.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

/// # Safety
/// Eight numbers must be writable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(p: *mut u32, v: __m256i) {
    // SAFETY: the caller's promise; the store is unaligned.
    unsafe { _mm256_storeu_si256(p.cast(), v) }
}

/// # Safety
/// Sixteen numbers must be readable at `p`: eight factors, then their quotients.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_factor(p: *const u32) -> Factor {
    // SAFETY: the caller's promise.
    unsafe {
        Factor {
            value: load(p),
            quotient: load(p.add(8)),
        }
    }
}

pub(super) fn forward(ntt: &Ntt, a: &mut [u32]) {
    assert!(a.len() == ntt.degree && ntt.degree >= 2 * BLOCK);
    let from = a.as_ptr();
    // SAFETY: `Level::Avx2` is only made where the instructions exist; reading and writing the
    // same polynomial is allowed.
    unsafe { forward_avx2(ntt, from, a) }
}

pub(super) fn forward_from(ntt: &Ntt, from: &[u32], a: &mut [u32]) {
    assert!(a.len() == ntt.degree && ntt.degree >= 2 * BLOCK && from.len() == a.len());
    // SAFETY: as above; `from` has as many coefficients.
    unsafe { forward_avx2(ntt, from.as_ptr(), a) }
}

pub(super) fn inverse(ntt: &Ntt, a: &mut [u32]) {
    assert!(a.len() == ntt.degree && ntt.degree >= 2 * BLOCK);
    // SAFETY: as above.
    unsafe { inverse_avx2(ntt, a) }
}

/// The first pass reads from `from`, all others work in place.
///
/// # Safety
/// As many numbers as `a` has must be readable at `from`, which is either `a` or apart from it.
#[target_feature(enable = "avx2")]
unsafe fn forward_avx2(ntt: &Ntt, mut from: *const u32, a: &mut [u32]) {
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

/// The factors of strides 16 and 8 in block `g`.
#[inline]
#[target_feature(enable = "avx2")]
fn block_factors(roots: &Roots, groups: usize, g: usize) -> (Factor, Factor, Factor) {
    (
        broadcast(roots.get(groups + g)),
        broadcast(roots.get(2 * (groups + g))),
        broadcast(roots.get(2 * (groups + g) + 1)),
    )
}

/// Strides 4, 2 and 1 of sixteen coefficients, then the final reduction.
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

/// Strides 1, 2 and 4 of sixteen coefficients.
///
/// # Safety
/// 48 numbers must be readable at `tail`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tail_up(l: Lanes, a: __m256i, b: __m256i, tail: *const u32) -> (__m256i, __m256i) {
    // SAFETY: the caller's promise.
    let (w4, w2, w1) = unsafe {
        (
            load_factor(tail),
            load_factor(tail.add(16)),
            load_factor(tail.add(32)),
        )
    };
    let x = _mm256_permute2x128_si256::<0x20>(a, b);
    let y = _mm256_permute2x128_si256::<0x31>(a, b);
    let u = _mm256_unpacklo_epi64(x, y);
    let v = _mm256_unpackhi_epi64(x, y);
    let (mut x, mut y) = (even_lanes(u, v), odd_lanes(u, v));
    up(l, &mut x, &mut y, w1, _mm256_srli_epi64::<32>(w1.quotient));
    let mut u = _mm256_unpacklo_epi32(x, y);
    let mut v = _mm256_unpackhi_epi32(x, y);
    up(l, &mut u, &mut v, w2, w2.quotient);
    let mut x = _mm256_unpacklo_epi64(u, v);
    let mut y = _mm256_unpackhi_epi64(u, v);
    up(l, &mut x, &mut y, w4, w4.quotient);
    (
        _mm256_permute2x128_si256::<0x20>(x, y),
        _mm256_permute2x128_si256::<0x31>(x, y),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn even_lanes(u: __m256i, v: __m256i) -> __m256i {
    let (u, v) = (_mm256_castsi256_ps(u), _mm256_castsi256_ps(v));
    _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(u, v))
}

#[inline]
#[target_feature(enable = "avx2")]
fn odd_lanes(u: __m256i, v: __m256i) -> __m256i {
    let (u, v) = (_mm256_castsi256_ps(u), _mm256_castsi256_ps(v));
    _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(u, v))
}

#[target_feature(enable = "avx2")]
fn inverse_avx2(ntt: &Ntt, a: &mut [u32]) {
    let l = lanes(ntt.prime.value());
    let n = ntt.degree;
    let roots = &ntt.inverse_roots;
    let mut groups = n / BLOCK;
    for (g, (chunk, tail)) in a
        .chunks_exact_mut(BLOCK)
        .zip(ntt.inverse_tail.chunks_exact(96))
        .enumerate()
    {
        let (w1, w2, w3) = block_factors(roots, groups, g);
        let p = chunk.as_mut_ptr();
        // SAFETY: a block has 32 values and its factors are 96 numbers.
        unsafe {
            let (mut x0, mut x1) = tail_up(l, load(p), load(p.add(8)), tail.as_ptr());
            let (mut x2, mut x3) =
                tail_up(l, load(p.add(16)), load(p.add(24)), tail.as_ptr().add(48));
            up(l, &mut x0, &mut x1, w2, w2.quotient);
            up(l, &mut x2, &mut x3, w3, w3.quotient);
            up(l, &mut x0, &mut x2, w1, w1.quotient);
            up(l, &mut x1, &mut x3, w1, w1.quotient);
            store(p, x0);
            store(p.add(8), x1);
            store(p.add(16), x2);
            store(p.add(24), x3);
        }
    }
    let mut stride = BLOCK;
    while groups > 4 {
        // Two layers: strides `stride` and `2·stride`.
        for (g, chunk) in a.chunks_exact_mut(4 * stride).enumerate() {
            let w1 = broadcast(roots.get(groups / 4 + g));
            let w2 = broadcast(roots.get(groups / 2 + 2 * g));
            let w3 = broadcast(roots.get(groups / 2 + 2 * g + 1));
            let base = chunk.as_mut_ptr();
            for i in (0..stride).step_by(8) {
                // SAFETY: the chunk has four quarters, and `i + 8` stays within one.
                unsafe {
                    let p = [
                        base.add(i),
                        base.add(stride + i),
                        base.add(2 * stride + i),
                        base.add(3 * stride + i),
                    ];
                    let [mut x0, mut x1, mut x2, mut x3] =
                        [load(p[0]), load(p[1]), load(p[2]), load(p[3])];
                    up(l, &mut x0, &mut x1, w2, w2.quotient);
                    up(l, &mut x2, &mut x3, w3, w3.quotient);
                    up(l, &mut x0, &mut x2, w1, w1.quotient);
                    up(l, &mut x1, &mut x3, w1, w1.quotient);
                    store(p[0], x0);
                    store(p[1], x1);
                    store(p[2], x2);
                    store(p[3], x3);
                }
            }
        }
        stride *= 4;
        groups /= 4;
    }
    let (scale, last) = (broadcast(ntt.scale), broadcast(ntt.scale_last));
    if groups == 4 {
        let (w2, w3) = (broadcast(roots.get(2)), broadcast(roots.get(3)));
        let base = a.as_mut_ptr();
        for i in (0..stride).step_by(8) {
            // SAFETY: the polynomial has four quarters of `stride` coefficients.
            unsafe {
                let p = [
                    base.add(i),
                    base.add(stride + i),
                    base.add(2 * stride + i),
                    base.add(3 * stride + i),
                ];
                let [mut x0, mut x1, mut x2, mut x3] =
                    [load(p[0]), load(p[1]), load(p[2]), load(p[3])];
                up(l, &mut x0, &mut x1, w2, w2.quotient);
                up(l, &mut x2, &mut x3, w3, w3.quotient);
                let (x0, x2) = finish(l, x0, x2, scale, last);
                let (x1, x3) = finish(l, x1, x3, scale, last);
                store(p[0], x0);
                store(p[1], x1);
                store(p[2], x2);
                store(p[3], x3);
            }
        }
    } else {
        let (xs, ys) = a.split_at_mut(stride);
        for (x, y) in xs.chunks_exact_mut(8).zip(ys.chunks_exact_mut(8)) {
            // SAFETY: both chunks have eight numbers.
            unsafe {
                let (u, v) = finish(l, load(x.as_ptr()), load(y.as_ptr()), scale, last);
                store(x.as_mut_ptr(), u);
                store(y.as_mut_ptr(), v);
            }
        }
    }
}

/// The last inverse layer with the division by the degree, reduced.
#[inline]
#[target_feature(enable = "avx2")]
fn finish(l: Lanes, u: __m256i, v: __m256i, scale: Factor, last: Factor) -> (__m256i, __m256i) {
    let x = mul_lazy(l, _mm256_add_epi32(u, v), scale, scale.quotient);
    let y = _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v);
    let y = mul_lazy(l, y, last, last.quotient);
    (reduce(x, l.q), reduce(y, l.q))
}
