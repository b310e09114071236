//! The transform on 256-bit vectors of eight 32-bit lanes.
//!
//! Layers of stride 32 and more run in pairs (radix 4) with one factor per group of coefficients.
//! The last five layers of the forward transform, and the first five of the inverse, run on blocks
//! of 32 coefficients without leaving the registers.
#![allow(unsafe_code)] // Vector loads and stores; bounds follow from the degree, checked on entry.

mod down;
mod masked;
mod up;

pub(super) use masked::inverse_masked;

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

/// Moves the odd lanes to the places of the even ones.
#[inline]
#[target_feature(enable = "avx2")]
fn upper(a: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_movehdup_ps(_mm256_castsi256_ps(a)))
}

/// Computes `a·w` up to one prime. `odd` holds the quotients of the odd lanes in even lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn mul_lazy(l: Lanes, a: __m256i, w: Factor, odd: __m256i) -> __m256i {
    let even = _mm256_mul_epu32(a, w.quotient);
    let odd = _mm256_mul_epu32(upper(a), odd);
    let high = _mm256_blend_epi32::<0b1010_1010>(upper(even), odd);
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

/// Computes a forward butterfly: inputs and outputs below `4q`.
#[inline]
#[target_feature(enable = "avx2")]
fn down(l: Lanes, x: &mut __m256i, y: &mut __m256i, w: Factor, odd: __m256i) {
    let u = reduce(*x, l.q2);
    let v = mul_lazy(l, *y, w, odd);
    *x = _mm256_add_epi32(u, v);
    *y = _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v);
}

/// Computes an inverse butterfly: inputs and outputs below `2q`.
#[inline]
#[target_feature(enable = "avx2")]
fn up(l: Lanes, x: &mut __m256i, y: &mut __m256i, w: Factor, odd: __m256i) {
    let (u, v) = (*x, *y);
    *x = reduce(_mm256_add_epi32(u, v), l.q2);
    *y = mul_lazy(l, _mm256_sub_epi32(_mm256_add_epi32(u, l.q2), v), w, odd);
}

/// Loads eight numbers.
///
/// # Safety
/// Eight numbers must be readable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(p: *const u32) -> __m256i {
    // SAFETY: the caller's promise; the load is unaligned.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

/// Stores eight numbers.
///
/// # Safety
/// Eight numbers must be writable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(p: *mut u32, v: __m256i) {
    // SAFETY: the caller's promise; the store is unaligned.
    unsafe { _mm256_storeu_si256(p.cast(), v) }
}

/// Loads eight factors with their quotients.
///
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
    unsafe { down::forward(ntt, from, a) }
}

pub(super) fn forward_from(ntt: &Ntt, from: &[u32], a: &mut [u32]) {
    assert!(a.len() == ntt.degree && ntt.degree >= 2 * BLOCK && from.len() == a.len());
    // SAFETY: as above; `from` has as many coefficients.
    unsafe { down::forward(ntt, from.as_ptr(), a) }
}

pub(super) fn inverse(ntt: &Ntt, a: &mut [u32]) {
    assert!(a.len() == ntt.degree && ntt.degree >= 2 * BLOCK);
    // SAFETY: as above.
    unsafe { up::inverse(ntt, a) }
}

/// Returns the factors of strides 16 and 8 in block `g`.
#[inline]
#[target_feature(enable = "avx2")]
fn block_factors(roots: &Roots, groups: usize, g: usize) -> (Factor, Factor, Factor) {
    (
        broadcast(roots.get(groups + g)),
        broadcast(roots.get(2 * (groups + g))),
        broadcast(roots.get(2 * (groups + g) + 1)),
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
