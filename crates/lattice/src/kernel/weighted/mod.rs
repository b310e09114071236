//! The sum of products behind every matrix product: rotated ciphertexts times weights.
//!
//! A weight polynomial is constant over tokens, which makes it a polynomial in `X^R` that is fixed
//! by `X -> X^-1`; only `N/2R` of its `N` transformed values are distinct. In transform order value
//! `k` stands at positions `kR .. kR+R` and, mirrored, at `N-1-kR-R+1 ..= N-1-kR`. So the loop
//! reads each weight once, spreads it over lanes in registers, and multiplies 16 positions of both
//! halves of a ciphertext; sums stay in registers over all terms and are reduced once.
//!
//! Layout, for one prime: ciphertexts are interleaved as `[block of 16][term][half][16]`, weights
//! as `[group][output][term][weights of one block]` where a group is a block and its mirror image
//! (or the several blocks of one run), in Montgomery form. Both are read strictly forwards.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::prime::{Prime, reduce_once};
use crate::simd::{Level, Simd};

/// Positions that are handled together.
pub const BLOCK: usize = 16;
/// Numbers of one block of one ciphertext: both halves.
pub const PAIR: usize = 2 * BLOCK;
/// The largest number of terms of one sum: the upper parts of `2^12` products fit the final
/// reduction.
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
    /// Makes runs of `run` equal values in transforms of the given degree.
    pub fn new(degree: usize, run: usize) -> Self {
        assert!(
            run.is_power_of_two() && degree.is_power_of_two() && 2 * run * BLOCK <= degree * BLOCK
        );
        assert!(degree >= 2 * BLOCK);
        Self { degree, run }
    }

    /// Returns the number of distinct values of one weight polynomial.
    pub const fn distinct(self) -> usize {
        self.degree / (2 * self.run)
    }

    /// Returns the number of distinct values in one block.
    pub const fn per_block(self) -> usize {
        if self.run >= BLOCK {
            1
        } else {
            BLOCK / self.run
        }
    }

    /// Returns the number of groups: sets of blocks that read the same weights.
    pub const fn groups(self) -> usize {
        self.distinct() / self.per_block()
    }

    /// Returns the number of blocks of one group on each side of the mirror.
    const fn blocks_per_side(self) -> usize {
        if self.run >= BLOCK {
            self.run / BLOCK
        } else {
            1
        }
    }
}

/// Computes `outputs[o] (+)= Σ_t ciphertext[t] · weight[o][t]` modulo one prime.
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
    match simd.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::run(task, outputs),
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
    /// Calls `f` for every block and output: ciphertexts of the block, weights of the output,
    /// whether the block is a mirror image, and where both halves of the result go.
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

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    /// Computes the sums by the definition, with weights expanded to every position.
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
