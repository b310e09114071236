//! Automorphisms `X -> X^g` on transformed polynomials.
//!
//! Output `i` of the transform is the value at exponent `e_i = 2·brv(i)+1`, and the value at `e` of
//! the image of a polynomial is the value of the polynomial at `g·e`. Eight consecutive outputs
//! share `e mod N/4`, so the map moves groups of eight as a whole and permutes inside a group in at
//! most eight ways: one vector load, one lane permutation, one store.
//!
//! # Slots
//! Schemes number the roots of unity `ψ^e` in an order in which an automorphism is a rotation: slot
//! `s` of one row is the root with exponent `3^s`, slot `s` of the other the one with `-3^s`, for
//! `s` below `N/2`, which covers every odd exponent once. `X -> X^(3^r)` then moves the content of
//! slot `s + r` to slot `s`, in both rows.

use crate::kernel::weighted::BLOCK;
use crate::ntt::bit_reverse;
use crate::prime::Prime;
use crate::simd::{Level, Simd};

/// The generator whose powers number the slots of a row.
pub const GENERATOR: usize = 3;

/// Returns the exponent of the automorphism that rotates both rows left by `steps` slots.
pub fn rotation(degree: usize, steps: i32) -> usize {
    let steps = steps.rem_euclid(degree as i32 / 2);
    (0..steps).fold(1, |e, _| e * GENERATOR % (2 * degree))
}

/// A permutation of transformed polynomials.
pub struct Automorphism {
    /// For each group of eight outputs: source group times eight, plus the number of its pattern.
    groups: Vec<u32>,
    /// Source lane of each output lane.
    patterns: Vec<[u32; 8]>,
}

impl Automorphism {
    /// Makes the map `X -> X^g` for an odd `g`, on polynomials of the given degree.
    pub fn new(degree: usize, g: usize) -> Self {
        assert!(g % 2 == 1 && degree >= 8);
        let log = degree.trailing_zeros();
        let source = |i: usize| {
            let e = (2 * bit_reverse(i, log) + 1) * g % (2 * degree);
            bit_reverse((e - 1) / 2, log)
        };
        let mut patterns: Vec<[u32; 8]> = Vec::new();
        let groups = (0..degree / 8)
            .map(|k| {
                let first = source(8 * k) / 8;
                let pattern = std::array::from_fn(|lane| {
                    let at = source(8 * k + lane);
                    assert_eq!(at / 8, first, "groups of eight stay together");
                    (at % 8) as u32
                });
                let number = patterns
                    .iter()
                    .position(|p| *p == pattern)
                    .unwrap_or_else(|| {
                        patterns.push(pattern);
                        patterns.len() - 1
                    });
                (first * 8 + number) as u32
            })
            .collect();
        assert!(patterns.len() <= 8);
        Self { groups, patterns }
    }

    /// Computes the image of `a`: `emit` gets each group of eight with its number.
    #[inline(always)]
    fn each(&self, a: &[u32], mut emit: impl FnMut(usize, [u32; 8])) {
        for (k, &group) in self.groups.iter().enumerate() {
            let pattern = &self.patterns[group as usize % 8];
            let from = &a[group as usize / 8 * 8..][..8];
            emit(k, pattern.map(|lane| from[lane as usize]));
        }
    }

    /// Computes `out = σ(a)`.
    pub fn apply(&self, simd: Simd, a: &[u32], out: &mut [u32]) {
        self.check(a, out.len());
        match simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::apply(self, a, out),
            _ => self.each(a, |k, v| out[8 * k..][..8].copy_from_slice(&v)),
        }
    }

    /// Computes `out += σ(a)`.
    pub fn apply_add(&self, simd: Simd, prime: Prime, a: &[u32], out: &mut [u32]) {
        self.check(a, out.len());
        match simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::apply_add(self, prime, a, out),
            _ => self.each(a, |k, v| {
                for (o, x) in out[8 * k..][..8].iter_mut().zip(v) {
                    *o = prime.add(*o, x);
                }
            }),
        }
    }

    /// Writes `σ(a)` into the interleaved layout of [`crate::kernel::weighted`]: block `b` of
    /// [`BLOCK`] numbers goes to `out[b·stride + offset ..]`.
    pub fn apply_blocked(
        &self,
        simd: Simd,
        a: &[u32],
        out: &mut [u32],
        stride: usize,
        offset: usize,
    ) {
        self.check(a, a.len());
        assert!((a.len() / BLOCK - 1) * stride + offset + BLOCK <= out.len());
        match simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::apply_blocked(self, a, out, stride, offset),
            _ => self.each(a, |k, v| {
                let at = k / 2 * stride + offset + k % 2 * 8;
                out[at..at + 8].copy_from_slice(&v);
            }),
        }
    }

    fn check(&self, a: &[u32], out: usize) {
        assert!(a.len() == 8 * self.groups.len() && out == a.len());
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![allow(unsafe_code)] // Vector loads and stores; group numbers are below the checked length.

    use super::{Automorphism, BLOCK, Prime};
    use std::arch::x86_64::*;

    pub(super) fn apply(map: &Automorphism, a: &[u32], out: &mut [u32]) {
        let to = out.as_mut_ptr();
        // SAFETY: AVX2 was detected; group `k` of the output is inside, as lengths were checked.
        unsafe { each(map, a, |k, v| _mm256_storeu_si256(to.add(8 * k).cast(), v)) }
    }

    pub(super) fn apply_add(map: &Automorphism, prime: Prime, a: &[u32], out: &mut [u32]) {
        let to = out.as_mut_ptr();
        // SAFETY: as above.
        unsafe {
            let q = _mm256_set1_epi32(prime.value() as i32);
            each(map, a, |k, v| {
                let p = to.add(8 * k).cast();
                let sum = _mm256_add_epi32(_mm256_loadu_si256(p), v);
                _mm256_storeu_si256(p, _mm256_min_epu32(sum, _mm256_sub_epi32(sum, q)));
            });
        }
    }

    pub(super) fn apply_blocked(
        map: &Automorphism,
        a: &[u32],
        out: &mut [u32],
        stride: usize,
        offset: usize,
    ) {
        const { assert!(BLOCK == 16) };
        let to = out.as_mut_ptr();
        // SAFETY: the caller checked that the last block ends inside the output.
        unsafe {
            each(map, a, |k, v| {
                _mm256_storeu_si256(to.add(k / 2 * stride + offset + k % 2 * 8).cast(), v);
            });
        }
    }

    /// Computes the image of `a` as vectors: `emit` gets each group of eight with its number.
    ///
    /// # Safety
    /// AVX2 must exist; `a` must have eight numbers for each group of the map.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn each(map: &Automorphism, a: &[u32], mut emit: impl FnMut(usize, __m256i)) {
        let mut patterns = [_mm256_setzero_si256(); 8];
        for (to, from) in patterns.iter_mut().zip(&map.patterns) {
            // SAFETY: a pattern has eight lanes.
            *to = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        }
        for (k, &group) in map.groups.iter().enumerate() {
            let pattern = patterns[group as usize % 8];
            // SAFETY: source groups are below the number of groups.
            let v = unsafe { _mm256_loadu_si256(a.as_ptr().add(group as usize / 8 * 8).cast()) };
            emit(k, _mm256_permutevar8x32_epi32(v, pattern));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntt::Ntt;

    #[test]
    fn is_the_substitution() {
        let (n, prime) = (256usize, Prime::largest(1)[0]);
        let ntt = Ntt::new(prime, n, Simd::portable());
        let a: Vec<u32> = (0..n as u32).map(|i| i * i + 7).collect();
        for g in [3, 9, 27, 2 * n - 1, 2 * n - 3] {
            let mut image = vec![0; n];
            for (i, &c) in a.iter().enumerate() {
                let e = i * g % (2 * n);
                image[e % n] = if e < n { c } else { prime.neg(c) };
            }
            let mut values = a.clone();
            ntt.forward(&mut values);
            ntt.forward(&mut image);
            let map = Automorphism::new(n, g);
            for simd in Simd::available() {
                let mut out = vec![0; n];
                map.apply(simd, &values, &mut out);
                assert_eq!(out, image, "{simd:?}");
                map.apply_add(simd, prime, &values, &mut out);
                assert!(out.iter().zip(&image).all(|(&o, &i)| o == prime.add(i, i)));
                let (stride, offset) = (48, 16);
                let mut blocked = vec![0; n / BLOCK * stride];
                map.apply_blocked(simd, &values, &mut blocked, stride, offset);
                assert!(
                    (0..n).all(|i| blocked[i / BLOCK * stride + offset + i % BLOCK] == image[i])
                );
            }
        }
    }
}
