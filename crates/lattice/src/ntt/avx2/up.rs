//! Inverse layers.

use super::super::{Ntt, Roots};
use super::{
    BLOCK, Factor, Lanes, block_factors, broadcast, even_lanes, lanes, load, load_factor, mul_lazy,
    odd_lanes, reduce, store, up,
};
use std::arch::x86_64::*;

/// Eight numbers of each of some polynomials that go through the same layers: while the products of
/// one are on their way, the next is begun.
pub(super) type Abreast<const P: usize> = [__m256i; P];

#[inline]
#[target_feature(enable = "avx2")]
fn ups<const P: usize>(l: Lanes, x: &mut Abreast<P>, y: &mut Abreast<P>, w: Factor, odd: __m256i) {
    for (x, y) in x.iter_mut().zip(y) {
        up(l, x, y, w, odd);
    }
}

/// Runs the layers of strides 1, 2 and 4 on sixteen coefficients.
///
/// # Safety
/// 48 numbers must be readable at `tail`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tail_up<const P: usize>(
    l: Lanes,
    mut a: Abreast<P>,
    mut b: Abreast<P>,
    tail: *const u32,
) -> (Abreast<P>, Abreast<P>) {
    // SAFETY: the caller's promise.
    let (w4, w2, w1) = unsafe {
        (
            load_factor(tail),
            load_factor(tail.add(16)),
            load_factor(tail.add(32)),
        )
    };
    for (a, b) in a.iter_mut().zip(&mut b) {
        let x = _mm256_permute2x128_si256::<0x20>(*a, *b);
        let y = _mm256_permute2x128_si256::<0x31>(*a, *b);
        let u = _mm256_unpacklo_epi64(x, y);
        let v = _mm256_unpackhi_epi64(x, y);
        (*a, *b) = (even_lanes(u, v), odd_lanes(u, v));
    }
    let odd = _mm256_srli_epi64::<32>(w1.quotient);
    ups(l, &mut a, &mut b, w1, odd);
    for (a, b) in a.iter_mut().zip(&mut b) {
        (*a, *b) = (_mm256_unpacklo_epi32(*a, *b), _mm256_unpackhi_epi32(*a, *b));
    }
    ups(l, &mut a, &mut b, w2, w2.quotient);
    for (a, b) in a.iter_mut().zip(&mut b) {
        (*a, *b) = (_mm256_unpacklo_epi64(*a, *b), _mm256_unpackhi_epi64(*a, *b));
    }
    ups(l, &mut a, &mut b, w4, w4.quotient);
    for (a, b) in a.iter_mut().zip(&mut b) {
        (*a, *b) = (
            _mm256_permute2x128_si256::<0x20>(*a, *b),
            _mm256_permute2x128_si256::<0x31>(*a, *b),
        );
    }
    (a, b)
}

/// Runs the first five inverse layers, in blocks of 32 values.
#[target_feature(enable = "avx2")]
fn blocks_up(l: Lanes, ntt: &Ntt, a: &mut [u32]) {
    for (g, chunk) in a.chunks_exact_mut(BLOCK).enumerate() {
        let p = chunk.as_ptr();
        // SAFETY: a block has 32 values.
        let x = unsafe { [load(p), load(p.add(8)), load(p.add(16)), load(p.add(24))] };
        let x = [[x[0]], [x[1]], [x[2]], [x[3]]];
        block_up(l, ntt, g, x, [chunk]);
    }
}

/// Runs the first five inverse layers of block `g` of some polynomials, given in eights.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn block_up<const P: usize>(
    l: Lanes,
    ntt: &Ntt,
    g: usize,
    x: [Abreast<P>; 4],
    out: [&mut [u32]; P],
) {
    let (w1, w2, w3) = block_factors(&ntt.inverse_roots, ntt.degree / BLOCK, g);
    let tail = &ntt.inverse_tail[96 * g..][..96];
    assert!(out.iter().all(|out| out.len() == BLOCK));
    // SAFETY: the factors of a block are 96 numbers.
    let ((mut x0, mut x1), (mut x2, mut x3)) = unsafe {
        (
            tail_up(l, x[0], x[1], tail.as_ptr()),
            tail_up(l, x[2], x[3], tail.as_ptr().add(48)),
        )
    };
    ups(l, &mut x0, &mut x1, w2, w2.quotient);
    ups(l, &mut x2, &mut x3, w3, w3.quotient);
    ups(l, &mut x0, &mut x2, w1, w1.quotient);
    ups(l, &mut x1, &mut x3, w1, w1.quotient);
    for (i, out) in out.into_iter().enumerate() {
        let p = out.as_mut_ptr();
        // SAFETY: there is room for 32 values.
        unsafe {
            store(p, x0[i]);
            store(p.add(8), x1[i]);
            store(p.add(16), x2[i]);
            store(p.add(24), x3[i]);
        }
    }
}

/// Runs two inverse layers, of strides `stride` and `2·stride`; `first` is the place of the
/// second's first factor.
#[target_feature(enable = "avx2")]
fn two_layers_up(l: Lanes, roots: &Roots, first: usize, a: &mut [u32], stride: usize) {
    assert!(stride.is_multiple_of(8));
    for (g, chunk) in a.chunks_exact_mut(4 * stride).enumerate() {
        let w1 = broadcast(roots.get(first + g));
        let w2 = broadcast(roots.get(2 * (first + g)));
        let w3 = broadcast(roots.get(2 * (first + g) + 1));
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
}

#[target_feature(enable = "avx2")]
pub(super) fn inverse(ntt: &Ntt, a: &mut [u32]) {
    blocks_up(lanes(ntt.prime.value()), ntt, a);
    rest::<false>(ntt, a, &[]);
}

/// Runs the layers after those of blocks; with `ADD`, small numbers are added to the coefficients.
#[target_feature(enable = "avx2")]
pub(super) fn rest<const ADD: bool>(ntt: &Ntt, a: &mut [u32], small: &[i8]) {
    assert!(a.len() == ntt.degree && (!ADD || small.len() == a.len()));
    let l = lanes(ntt.prime.value());
    let roots = &ntt.inverse_roots;
    let with = |x: __m256i, at: usize| {
        if ADD {
            // SAFETY: there are as many small numbers as coefficients, eight of them from `at` on.
            let small = unsafe { _mm_loadl_epi64(small.as_ptr().add(at).cast()) };
            let sum = _mm256_add_epi32(x, _mm256_cvtepi8_epi32(small));
            // A negative number is a large one here.
            reduce(_mm256_min_epu32(sum, _mm256_add_epi32(sum, l.q)), l.q)
        } else {
            x
        }
    };
    let (mut stride, mut groups) = (BLOCK, ntt.degree / BLOCK);
    while groups > 4 {
        two_layers_up(l, roots, groups / 4, a, stride);
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
                store(p[0], with(x0, i));
                store(p[1], with(x1, stride + i));
                store(p[2], with(x2, 2 * stride + i));
                store(p[3], with(x3, 3 * stride + i));
            }
        }
    } else {
        let (xs, ys) = a.split_at_mut(stride);
        let pairs = xs.chunks_exact_mut(8).zip(ys.chunks_exact_mut(8));
        for (i, (x, y)) in pairs.enumerate() {
            // SAFETY: both chunks have eight numbers.
            unsafe {
                let (u, v) = finish(l, load(x.as_ptr()), load(y.as_ptr()), scale, last);
                store(x.as_mut_ptr(), with(u, 8 * i));
                store(y.as_mut_ptr(), with(v, stride + 8 * i));
            }
        }
    }
}

/// Computes the last inverse layer with the division by the degree, reduced.
#[inline]
#[target_feature(enable = "avx2")]
fn finish(l: Lanes, u: __m256i, v: __m256i, scale: Factor, last: Factor) -> (__m256i, __m256i) {
    let x = mul_lazy(l, _mm256_add_epi32(u, v), scale, scale.quotient);
    let y = _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v);
    let y = mul_lazy(l, y, last, last.quotient);
    (reduce(x, l.q), reduce(y, l.q))
}
