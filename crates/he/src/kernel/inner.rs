//! The sum of products of key switching: digits times a key, both parts of the key at once.

use crate::prime::Prime;
use crate::simd::Simd;

/// Digits that fit one unreduced 64-bit sum: `8 · 2^30 · 2^30 = 2^63`.
pub const MAX_DIGITS: usize = 8;

/// `out0[j] = Σ_i digits[i][j]·key0[i][j]` and the same for `key1`, modulo one prime.
///
/// Digits and keys lie end to end, one polynomial of `out0.len()` numbers after the other; keys are
/// in Montgomery form.
///
/// # Panics
/// If the lengths disagree or there are more than [`MAX_DIGITS`] digits.
pub fn inner(
    simd: Simd,
    prime: Prime,
    digits: &[u32],
    key0: &[u32],
    key1: &[u32],
    out0: &mut [u32],
    out1: &mut [u32],
) {
    let n = out0.len();
    assert!(n > 0 && n.is_multiple_of(8) && out1.len() == n);
    assert!(digits.len().is_multiple_of(n) && digits.len() <= MAX_DIGITS * n);
    assert!(key0.len() == digits.len() && key1.len() == digits.len());
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => avx2::inner(prime, digits, key0, key1, out0, out1),
        _ => portable(prime, digits, key0, key1, out0, out1),
    }
}

fn portable(
    prime: Prime,
    digits: &[u32],
    key0: &[u32],
    key1: &[u32],
    out0: &mut [u32],
    out1: &mut [u32],
) {
    let n = out0.len();
    for j in 0..n {
        let (mut s0, mut s1) = (0u64, 0u64);
        for at in (j..digits.len()).step_by(n) {
            let d = u64::from(digits[at]);
            s0 += d * u64::from(key0[at]);
            s1 += d * u64::from(key1[at]);
        }
        out0[j] = prime.redc(s0);
        out1[j] = prime.redc(s1);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are checked.

    use crate::prime::Prime;
    use std::arch::x86_64::*;

    pub(super) fn inner(
        prime: Prime,
        digits: &[u32],
        key0: &[u32],
        key1: &[u32],
        out0: &mut [u32],
        out1: &mut [u32],
    ) {
        // SAFETY: `Simd::Avx2` is only constructed where the instructions exist.
        unsafe { run(prime, digits, key0, key1, out0, out1) }
    }

    #[target_feature(enable = "avx2")]
    fn run(
        prime: Prime,
        digits: &[u32],
        key0: &[u32],
        key1: &[u32],
        out0: &mut [u32],
        out1: &mut [u32],
    ) {
        let n = out0.len();
        let q = _mm256_set1_epi32(prime.value() as i32);
        let inverse = _mm256_set1_epi32(prime.montgomery_inverse() as i32);
        for j in (0..n).step_by(8) {
            let mut sums = [_mm256_setzero_si256(); 4];
            for at in (j..digits.len()).step_by(n) {
                // SAFETY: `at + 8` is within the slices: they are whole polynomials of `n` numbers,
                // and `n` is a multiple of eight.
                let (d, k0, k1) = unsafe {
                    (
                        _mm256_loadu_si256(digits.as_ptr().add(at).cast()),
                        _mm256_loadu_si256(key0.as_ptr().add(at).cast()),
                        _mm256_loadu_si256(key1.as_ptr().add(at).cast()),
                    )
                };
                let odd = _mm256_srli_epi64::<32>(d);
                let terms = [
                    _mm256_mul_epu32(d, k0),
                    _mm256_mul_epu32(odd, _mm256_srli_epi64::<32>(k0)),
                    _mm256_mul_epu32(d, k1),
                    _mm256_mul_epu32(odd, _mm256_srli_epi64::<32>(k1)),
                ];
                for (sum, term) in sums.iter_mut().zip(terms) {
                    *sum = _mm256_add_epi64(*sum, term);
                }
            }
            let v0 = redc(sums[0], sums[1], q, inverse);
            let v1 = redc(sums[2], sums[3], q, inverse);
            // SAFETY: `j + 8 <= n`, the length of both outputs.
            unsafe {
                _mm256_storeu_si256(out0.as_mut_ptr().add(j).cast(), v0);
                _mm256_storeu_si256(out1.as_mut_ptr().add(j).cast(), v1);
            }
        }
    }

    /// Eight Montgomery reductions of sums below `2^63`, even and odd lanes apart.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn redc(even: __m256i, odd: __m256i, q: __m256i, inverse: __m256i) -> __m256i {
        let te = _mm256_mul_epu32(_mm256_mul_epu32(even, inverse), q);
        let to = _mm256_mul_epu32(_mm256_mul_epu32(odd, inverse), q);
        let high = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
        let t = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(te), to);
        let r = _mm256_sub_epi32(_mm256_add_epi32(high, q), t);
        let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, _mm256_add_epi32(q, q)));
        let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, q));
        _mm256_min_epu32(r, _mm256_sub_epi32(r, q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    #[test]
    fn is_the_sum_of_products_at_the_extremes() {
        let mut rng = Prg::new(&[4; 16]);
        let (n, prime) = (64, Prime::largest(7)[6]);
        let q = prime.value();
        for extreme in [true, false] {
            for count in [1, 6, MAX_DIGITS] {
                let mut draw = || -> Vec<u32> {
                    (0..n * count)
                        .map(|_| if extreme { q - 1 } else { rng.next_u32() % q })
                        .collect()
                };
                let (digits, key0, key1) = (draw(), draw(), draw());
                let want = |key: &[u32], j: usize| {
                    (0..count).fold(0, |acc, i| {
                        let product = prime.mul(digits[i * n + j], key[i * n + j]);
                        prime.add(acc, prime.redc(u64::from(product)))
                    })
                };
                for simd in Simd::available() {
                    let (mut out0, mut out1) = (vec![0; n], vec![0; n]);
                    inner(simd, prime, &digits, &key0, &key1, &mut out0, &mut out1);
                    assert!((0..n).all(|j| out0[j] == want(&key0, j)), "{simd:?}");
                    assert!((0..n).all(|j| out1[j] == want(&key1, j)), "{simd:?}");
                }
            }
        }
    }
}
