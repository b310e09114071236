//! The sum of products of key switching: digits times a key, both halves of the key at once.
//!
//! Keys are stored interleaved, `[block of 16][digit][half][16]`, so that they stream through
//! memory in one line: a key is larger than the caches, and limbs a power of two apart would share
//! cache sets.

use super::aligned::Aligned;
use crate::prime::Prime;
use crate::simd::{Level, Simd};

/// Digits that fit one unreduced 64-bit sum: `8 · 2^30 · 2^30 = 2^63`.
pub const MAX_DIGITS: usize = 8;
/// Positions of one block.
pub const BLOCK: usize = 16;

/// Returns the place of the number of a digit, a half and a position in an interleaved key of
/// `digits` digits.
#[inline(always)]
pub const fn key_index(digits: usize, digit: usize, half: usize, position: usize) -> usize {
    ((position / BLOCK * digits + digit) * 2 + half) * BLOCK + position % BLOCK
}

/// Interleaves both halves of a key, each `[prime][digit][n]`, prime by prime, as [`inner`] reads
/// them.
///
/// # Panics
/// If the halves differ in length or are not whole.
pub fn interleave(n: usize, digits: usize, halves: [&[u32]; 2]) -> Aligned {
    let len = halves[0].len();
    assert!(halves[1].len() == len && len.is_multiple_of(n * digits));
    let mut interleaved = Aligned::zeros(2 * len);
    let keys = interleaved.sized(2 * len);
    for (half, values) in halves.into_iter().enumerate() {
        for (limb, values) in values.chunks_exact(n).enumerate() {
            let (prime, digit) = (limb / digits, limb % digits);
            let key = &mut keys[prime * 2 * digits * n..][..2 * digits * n];
            for (block, values) in values.chunks_exact(BLOCK).enumerate() {
                let at = key_index(digits, digit, half, block * BLOCK);
                key[at..at + BLOCK].copy_from_slice(values);
            }
        }
    }
    interleaved
}

/// Computes `out0[j] = Σ_i digits[i][j]·key[i][0][j]` and the same for the other half, modulo one
/// prime.
///
/// Digits lie end to end, one polynomial of `out0.len()` numbers after the other; the key is
/// interleaved and in Montgomery form.
///
/// # Panics
/// If the lengths disagree or there are more than [`MAX_DIGITS`] digits.
pub fn inner(
    simd: Simd,
    prime: Prime,
    digits: &[u32],
    key: &[u32],
    out0: &mut [u32],
    out1: &mut [u32],
) {
    let n = out0.len();
    assert!(n > 0 && n.is_multiple_of(BLOCK) && out1.len() == n);
    assert!(digits.len().is_multiple_of(n) && digits.len() <= MAX_DIGITS * n);
    assert!(key.len() == 2 * digits.len());
    match simd.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::inner(prime, digits, key, out0, out1),
        _ => portable(prime, digits, key, out0, out1),
    }
}

fn portable(prime: Prime, digits: &[u32], key: &[u32], out0: &mut [u32], out1: &mut [u32]) {
    let n = out0.len();
    let count = digits.len() / n;
    for j in 0..n {
        let sum = |half: usize| {
            (0..count)
                .map(|i| {
                    u64::from(digits[i * n + j]) * u64::from(key[key_index(count, i, half, j)])
                })
                .sum()
        };
        out0[j] = prime.redc(sum(0));
        out1[j] = prime.redc(sum(1));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are checked.

    use super::{BLOCK, Prime};
    use std::arch::x86_64::*;

    pub(super) fn inner(
        prime: Prime,
        digits: &[u32],
        key: &[u32],
        out0: &mut [u32],
        out1: &mut [u32],
    ) {
        // SAFETY: `Level::Avx2` is only made where the instructions exist.
        unsafe { run(prime, digits, key, out0, out1) }
    }

    #[target_feature(enable = "avx2")]
    fn run(prime: Prime, digits: &[u32], key: &[u32], out0: &mut [u32], out1: &mut [u32]) {
        let n = out0.len();
        let q = _mm256_set1_epi32(prime.value() as i32);
        let inverse = _mm256_set1_epi32(prime.montgomery_inverse() as i32);
        let mut k = key.as_ptr();
        for j in (0..n).step_by(BLOCK) {
            // Half, vector of eight, even or odd lanes.
            let mut sums = [_mm256_setzero_si256(); 8];
            for at in (j..digits.len()).step_by(n) {
                // SAFETY: `at + 16` is within the digits, which are whole polynomials; the key has
                // 32 numbers for each digit of each block, and `k` passes them in this order.
                unsafe {
                    for v in 0..2 {
                        let d = _mm256_loadu_si256(digits.as_ptr().add(at + 8 * v).cast());
                        let odd = _mm256_srli_epi64::<32>(d);
                        for half in 0..2 {
                            let key = _mm256_loadu_si256(k.add(BLOCK * half + 8 * v).cast());
                            let sum = 4 * half + 2 * v;
                            sums[sum] = _mm256_add_epi64(sums[sum], _mm256_mul_epu32(d, key));
                            let key = _mm256_srli_epi64::<32>(key);
                            sums[sum + 1] =
                                _mm256_add_epi64(sums[sum + 1], _mm256_mul_epu32(odd, key));
                        }
                    }
                    k = k.add(2 * BLOCK);
                }
            }
            for v in 0..2 {
                let v0 = redc(sums[2 * v], sums[2 * v + 1], q, inverse);
                let v1 = redc(sums[4 + 2 * v], sums[5 + 2 * v], q, inverse);
                // SAFETY: `j + 16 <= n`, the length of both outputs.
                unsafe {
                    _mm256_storeu_si256(out0.as_mut_ptr().add(j + 8 * v).cast(), v0);
                    _mm256_storeu_si256(out1.as_mut_ptr().add(j + 8 * v).cast(), v1);
                }
            }
        }
    }

    /// Computes eight Montgomery reductions of sums below `2^63`, even and odd lanes apart.
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
                let mut draw = |len: usize| -> Vec<u32> {
                    (0..len)
                        .map(|_| if extreme { q - 1 } else { rng.next_u32() % q })
                        .collect()
                };
                let (digits, key) = (draw(n * count), draw(2 * n * count));
                let want = |half: usize, j: usize| {
                    (0..count).fold(0, |acc, i| {
                        let product =
                            prime.mul(digits[i * n + j], key[key_index(count, i, half, j)]);
                        prime.add(acc, prime.redc(u64::from(product)))
                    })
                };
                for simd in Simd::available() {
                    let (mut out0, mut out1) = (vec![0; n], vec![0; n]);
                    inner(simd, prime, &digits, &key, &mut out0, &mut out1);
                    assert!((0..n).all(|j| out0[j] == want(0, j)), "{simd:?}");
                    assert!((0..n).all(|j| out1[j] == want(1, j)), "{simd:?}");
                }
            }
        }
    }
}
