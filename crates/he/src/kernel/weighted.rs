//! The sum of products behind every matrix product: rotated ciphertexts times weights.
//!
//! A weight polynomial is constant over tokens, which makes it a polynomial in `X^R` that is fixed
//! by `X -> X^-1`; of its `N` transformed values only `N/2R` differ. In transform order value `k`
//! stands at positions `kR .. kR+R` and, mirrored, at `N-1-kR-R+1 ..= N-1-kR`. So the loop reads each
//! weight once, spreads it over lanes in registers, and multiplies 16 positions of both halves of
//! a ciphertext; sums stay in registers over all terms and are reduced once.
//!
//! Layout, for one prime: ciphertexts are interleaved as `[block of 16][term][half][16]`, weights as
//! `[group][output][term][weights of one block]` where a group is a block and its mirror image (or
//! the several blocks of one run), in Montgomery form. Both are read strictly forwards.

use crate::prime::{Prime, reduce_once};
use crate::simd::Simd;

/// Positions handled together.
pub const BLOCK: usize = 16;
/// Numbers of one block of one ciphertext: both halves.
pub const PAIR: usize = 2 * BLOCK;
/// Most terms of one sum: the upper parts of `2^12` products fit the final reduction.
pub const MAX_TERMS: usize = 1 << 12;
/// Products that fit a 64-bit sum on top of a folded one.
const FOLD: usize = 15;

/// How the values of weights lie in transform order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    degree: usize,
    run: usize,
}

impl Runs {
    /// Runs of `run` equal values in transforms of the given degree.
    pub fn new(degree: usize, run: usize) -> Self {
        assert!(
            run.is_power_of_two() && degree.is_power_of_two() && 2 * run * BLOCK <= degree * BLOCK
        );
        assert!(degree >= 2 * BLOCK);
        Self { degree, run }
    }

    /// Distinct values of one weight polynomial.
    pub const fn distinct(self) -> usize {
        self.degree / (2 * self.run)
    }

    /// Distinct values in one block.
    pub const fn per_block(self) -> usize {
        if self.run >= BLOCK {
            1
        } else {
            BLOCK / self.run
        }
    }

    /// Groups: sets of blocks that read the same weights.
    pub const fn groups(self) -> usize {
        self.distinct() / self.per_block()
    }

    /// Blocks of one group on each side of the mirror.
    const fn blocks_per_side(self) -> usize {
        if self.run >= BLOCK {
            self.run / BLOCK
        } else {
            1
        }
    }
}

/// `outputs[o] (+)= Σ_t ciphertext[t] · weight[o][t]` modulo one prime.
///
/// `outputs` holds both halves of each output end to end. With `add` the sums are added to what is
/// there, otherwise they replace it.
///
/// # Panics
/// If the lengths do not belong together.
pub fn weighted(
    simd: Simd,
    prime: Prime,
    runs: Runs,
    ciphertexts: &[u32],
    terms: usize,
    weights: &[u32],
    outputs: &mut [u32],
    add: bool,
) {
    let n = runs.degree;
    assert!((1..=MAX_TERMS).contains(&terms));
    assert_eq!(ciphertexts.len(), 2 * n * terms);
    assert!(outputs.len().is_multiple_of(2 * n));
    let count = outputs.len() / (2 * n);
    let row = terms * runs.per_block();
    assert_eq!(weights.len(), runs.groups() * count * row);
    if count == 0 {
        return;
    }
    let task = Task {
        prime,
        runs,
        ciphertexts,
        terms,
        weights,
        add,
    };
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 => avx2::run(task, outputs),
        _ => task.blocks(outputs, |data, weights, mirrored, out0, out1| {
            portable(prime, data, weights, mirrored, out0, out1, add);
        }),
    }
}

/// One call of [`weighted`].
#[derive(Clone, Copy)]
struct Task<'a> {
    prime: Prime,
    runs: Runs,
    ciphertexts: &'a [u32],
    terms: usize,
    weights: &'a [u32],
    add: bool,
}

impl Task<'_> {
    /// Calls `f` for every block and output: ciphertexts of the block, weights of the output, whether
    /// the block is a mirror image, and where both halves of the result go.
    #[inline(always)]
    fn blocks(
        self,
        outputs: &mut [u32],
        mut f: impl FnMut(&[u32], &[u32], bool, &mut [u32], &mut [u32]),
    ) {
        let (n, terms) = (self.runs.degree, self.terms);
        let (side, blocks) = (self.runs.blocks_per_side(), n / BLOCK);
        let count = outputs.len() / (2 * n);
        let row = terms * self.runs.per_block();
        for (group, weights) in self.weights.chunks_exact(count * row).enumerate() {
            for i in 0..2 * side {
                let mirrored = i >= side;
                let block = if mirrored {
                    blocks - 1 - (group * side + i - side)
                } else {
                    group * side + i
                };
                let data = &self.ciphertexts[block * terms * PAIR..][..terms * PAIR];
                for (weights, output) in weights
                    .chunks_exact(row)
                    .zip(outputs.chunks_exact_mut(2 * n))
                {
                    let (out0, out1) = output.split_at_mut(n);
                    let at = block * BLOCK;
                    f(
                        data,
                        weights,
                        mirrored,
                        &mut out0[at..at + BLOCK],
                        &mut out1[at..at + BLOCK],
                    );
                }
            }
        }
    }
}

fn portable(
    prime: Prime,
    data: &[u32],
    weights: &[u32],
    mirrored: bool,
    out0: &mut [u32],
    out1: &mut [u32],
    add: bool,
) {
    let per = weights.len() / (data.len() / PAIR);
    for (half, out) in [out0, out1].into_iter().enumerate() {
        for i in 0..BLOCK {
            let at = if mirrored { BLOCK - 1 - i } else { i } * per / BLOCK;
            let mut total = 0u32;
            for (data, weights) in data.chunks(PAIR * 7).zip(weights.chunks(per * 7)) {
                let sum = data
                    .chunks_exact(PAIR)
                    .zip(weights.chunks_exact(per))
                    .map(|(d, w)| u64::from(d[half * BLOCK + i]) * u64::from(w[at]))
                    .sum();
                total = prime.add(total, prime.redc(sum));
            }
            out[i] = if add {
                reduce_once(out[i] + total, prime.value())
            } else {
                total
            };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are asserted.

    use super::{BLOCK, FOLD, PAIR, Prime, Task};
    use std::arch::x86_64::*;

    pub(super) fn run(task: Task<'_>, outputs: &mut [u32]) {
        // SAFETY: `Simd::Avx2` is only constructed where the instructions exist.
        unsafe {
            match task.runs.per_block() {
                1 => all::<1>(task, outputs),
                2 => all::<2>(task, outputs),
                4 => all::<4>(task, outputs),
                8 => all::<8>(task, outputs),
                _ => all::<16>(task, outputs),
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn all<const PER: usize>(task: Task<'_>, outputs: &mut [u32]) {
        assert_eq!(PER, task.runs.per_block());
        let constants = constants(task.prime);
        let forwards = patterns::<PER, false>();
        let backwards = patterns::<PER, true>();
        task.blocks(outputs, |data, weights, mirrored, out0, out1| {
            // SAFETY: `blocks` gives `PAIR` numbers and `PER` weights for each term, and results of
            // `BLOCK` numbers.
            unsafe {
                if mirrored && PER > 1 {
                    block::<PER, true>(constants, backwards, data, weights, out0, out1, task.add);
                } else {
                    block::<PER, false>(constants, forwards, data, weights, out0, out1, task.add);
                }
            }
        });
    }

    #[target_feature(enable = "avx2")]
    fn constants(prime: Prime) -> Constants {
        let q = _mm256_set1_epi64x(prime.value().into());
        Constants {
            q,
            q2: _mm256_add_epi64(q, q),
            both: _mm256_set1_epi32(prime.value() as i32),
            inverse: _mm256_set1_epi64x(prime.montgomery_inverse().into()),
            quotient: _mm256_set1_epi64x((1i64 << 49) / i64::from(prime.value())),
        }
    }

    /// Lane patterns that spread the weights of a block over positions 0-7 and 8-15.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn patterns<const PER: usize, const MIRRORED: bool>() -> [__m256i; 2] {
        let spread = |half: usize| {
            let lanes: [i32; 8] = std::array::from_fn(|lane| {
                let i = 8 * half + lane;
                let i = if MIRRORED { BLOCK - 1 - i } else { i };
                (i * PER / BLOCK % 8) as i32
            });
            // SAFETY: eight lanes are read from eight numbers.
            unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
        };
        [spread(0), spread(1)]
    }

    /// The weights of one block for positions 0-7 and 8-15.
    ///
    /// # Safety
    /// `PER` numbers must be readable at `w`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn spread<const PER: usize, const MIRRORED: bool>(
        w: *const u32,
        patterns: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: each arm reads `PER` numbers.
        unsafe {
            let two = match PER {
                1 => return [_mm256_set1_epi32(*w as i32); 2],
                2 => {
                    let pair = [
                        _mm256_set1_epi32(*w as i32),
                        _mm256_set1_epi32(*w.add(1) as i32),
                    ];
                    return if MIRRORED { [pair[1], pair[0]] } else { pair };
                }
                4 => [_mm256_castsi128_si256(_mm_loadu_si128(w.cast())); 2],
                8 => [_mm256_loadu_si256(w.cast()); 2],
                _ => {
                    let pair = [
                        _mm256_loadu_si256(w.cast()),
                        _mm256_loadu_si256(w.add(8).cast()),
                    ];
                    if MIRRORED { [pair[1], pair[0]] } else { pair }
                }
            };
            [
                _mm256_permutevar8x32_epi32(two[0], patterns[0]),
                _mm256_permutevar8x32_epi32(two[1], patterns[1]),
            ]
        }
    }

    /// # Safety
    /// For each `PAIR` numbers of `data` there must be `PER` weights; outputs have `BLOCK` numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn block<const PER: usize, const MIRRORED: bool>(
        constants: Constants,
        patterns: [__m256i; 2],
        data: &[u32],
        weights: &[u32],
        out0: &mut [u32],
        out1: &mut [u32],
        add: bool,
    ) {
        let low = _mm256_set1_epi64x(0xffff_ffff);
        let mut sums = [_mm256_setzero_si256(); 8];
        let mut high = [_mm256_setzero_si256(); 8];
        for (data, weights) in data.chunks(PAIR * FOLD).zip(weights.chunks(PER * FOLD)) {
            let (mut d, mut w) = (data.as_ptr(), weights.as_ptr());
            for _ in 0..data.len() / PAIR {
                // SAFETY: the chunk has `PAIR` numbers and `PER` weights for each term.
                unsafe {
                    let spread = spread::<PER, MIRRORED>(w, patterns);
                    for i in 0..4 {
                        let v = _mm256_loadu_si256(d.add(8 * i).cast());
                        let even = spread[i % 2];
                        // Neighbours share a weight unless every position has its own.
                        let odd = if PER == BLOCK {
                            _mm256_srli_epi64::<32>(even)
                        } else {
                            even
                        };
                        let terms = [
                            _mm256_mul_epu32(v, even),
                            _mm256_mul_epu32(_mm256_srli_epi64::<32>(v), odd),
                        ];
                        sums[2 * i] = _mm256_add_epi64(sums[2 * i], terms[0]);
                        sums[2 * i + 1] = _mm256_add_epi64(sums[2 * i + 1], terms[1]);
                    }
                    d = d.add(PAIR);
                    w = w.add(PER);
                }
            }
            for (high, sum) in high.iter_mut().zip(&mut sums) {
                *high = _mm256_add_epi64(*high, _mm256_srli_epi64::<32>(*sum));
                *sum = _mm256_and_si256(*sum, low);
            }
        }
        for i in 0..4 {
            let even = reduce(constants, high[2 * i], sums[2 * i]);
            let odd = reduce(constants, high[2 * i + 1], sums[2 * i + 1]);
            let mut v = _mm256_or_si256(even, _mm256_slli_epi64::<32>(odd));
            let out = if i < 2 { &mut *out0 } else { &mut *out1 };
            // SAFETY: each output has 16 numbers.
            unsafe {
                let p = out.as_mut_ptr().add(8 * (i % 2)).cast();
                if add {
                    v = _mm256_add_epi32(v, _mm256_loadu_si256(p));
                    v = _mm256_min_epu32(v, _mm256_sub_epi32(v, constants.both));
                }
                _mm256_storeu_si256(p, v);
            }
        }
    }

    #[derive(Clone, Copy)]
    struct Constants {
        q: __m256i,
        q2: __m256i,
        /// The prime in every 32-bit lane.
        both: __m256i,
        inverse: __m256i,
        /// `⌊2^49 / q⌋`.
        quotient: __m256i,
    }

    /// `high + low·2^-32` modulo q in each 64-bit lane, for `high < 2^41` and `low < 2^32`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn reduce(c: Constants, high: __m256i, low: __m256i) -> __m256i {
        // Montgomery: low·2^-32 ≡ -t.
        let m = _mm256_mul_epu32(low, c.inverse);
        let t = _mm256_srli_epi64::<32>(_mm256_mul_epu32(m, c.q));
        // Barrett: the quotient is short by at most 2, so the rest is below 3q.
        let estimate = _mm256_mul_epu32(_mm256_srli_epi64::<29>(high), c.quotient);
        let estimate = _mm256_srli_epi64::<20>(estimate);
        let r = _mm256_sub_epi64(high, _mm256_mul_epu32(estimate, c.q));
        let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q2));
        let r = _mm256_sub_epi64(_mm256_add_epi64(r, c.q), t);
        let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q2));
        _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    /// The definition, with weights expanded to every position.
    fn schoolbook(
        prime: Prime,
        runs: Runs,
        data: &[u32],
        terms: usize,
        weights: &[u32],
        outputs: usize,
    ) -> Vec<u32> {
        let n = runs.degree;
        let mut out = vec![0; outputs * 2 * n];
        for (o, half, i) in
            (0..outputs).flat_map(|o| (0..2).flat_map(move |h| (0..n).map(move |i| (o, h, i))))
        {
            let k = if i < n / 2 {
                i / runs.run
            } else {
                (n - 1 - i) / runs.run
            };
            let (group, within) = (k / runs.per_block(), k % runs.per_block());
            let mut sum = 0u128;
            for t in 0..terms {
                let w = weights[((group * outputs + o) * terms + t) * runs.per_block() + within];
                let d = data[(i / BLOCK * terms + t) * PAIR + half * BLOCK + i % BLOCK];
                sum += u128::from(d) * u128::from(w);
            }
            let value = (sum % u128::from(prime.value())) as u64;
            out[(2 * o + half) * n + i] = prime.redc(value);
        }
        out
    }

    #[test]
    fn every_run_length_agrees_with_the_definition() {
        let mut rng = Prg::new(&[8; 16]);
        let (n, prime) = (512, Prime::largest(7)[3]);
        let q = prime.value();
        for run in [1, 2, 4, 8, 16, 32, 64] {
            let runs = Runs::new(n, run);
            for (terms, extreme) in [(1, true), (FOLD, true), (100, false), (257, true)] {
                let mut draw = |len: usize| -> Vec<u32> {
                    (0..len)
                        .map(|_| if extreme { q - 1 } else { rng.next_u32() % q })
                        .collect()
                };
                let outputs = 3;
                let data = draw(2 * n * terms);
                let weights = draw(runs.distinct() * outputs * terms);
                let want = schoolbook(prime, runs, &data, terms, &weights, outputs);
                for simd in Simd::available() {
                    let mut got = vec![1; want.len()];
                    weighted(simd, prime, runs, &data, terms, &weights, &mut got, false);
                    assert!(got == want, "{simd:?}, runs of {run}, {terms} terms");
                    weighted(simd, prime, runs, &data, terms, &weights, &mut got, true);
                    assert!(got.iter().zip(&want).all(|(&g, &w)| g == prime.add(w, w)));
                }
            }
        }
    }

    #[test]
    fn the_longest_sum_does_not_overflow() {
        let (n, prime) = (32, Prime::largest(1)[0]);
        let runs = Runs::new(n, 16);
        let data = vec![prime.value() - 1; 2 * n * MAX_TERMS];
        let weights = vec![prime.value() - 1; MAX_TERMS];
        let want = schoolbook(prime, runs, &data, MAX_TERMS, &weights, 1);
        for simd in Simd::available() {
            let mut got = vec![0; want.len()];
            weighted(
                simd, prime, runs, &data, MAX_TERMS, &weights, &mut got, false,
            );
            assert!(got == want, "{simd:?}");
        }
    }
}
