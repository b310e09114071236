//! The residual's term `g_j·x_j - ⟨h, x⟩`: a diagonal minus one number that all outputs share.
//!
//! As a dense matrix it would cost as much as any. But the weight polynomial of input block `I` and
//! output block `R` is `D - P·H`: `H = Σ_i h_i·Y^(-i)` belongs to the input block alone,
//! `P = Σ_o Y^(ok)` to nothing, and `D` is zero unless the blocks have features in common. So
//! `Z = P·Σ_I H_I·c_I` is computed once, and an answer is `-Z` plus its few products with `D`.
//!
//! The query may be one that another product reads too, cut into narrower blocks than the stride of
//! the answer it is added to.

use super::query::each_limb;
use super::shape::Blocks;
use super::transform::Transforms;
use crate::ciphertext::SeededCiphertext;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_ring::modulus;
use zeroize::Zeroizing;

/// Gains and means, transformed.
pub(crate) struct Centring {
    /// Values that share a point.
    run: usize,
    /// `[limb][term][point]`: `H` of each block of inputs.
    means: Zeroizing<Vec<u32>>,
    /// `[limb][point]`: `-P`.
    comb: Vec<u32>,
    /// For each answer, the blocks of inputs that it has features of, with `[limb][point]`: `D`.
    gains: Vec<Vec<(usize, Zeroizing<Vec<u32>>)>>,
    terms: usize,
    points: usize,
}

impl Centring {
    /// For an answer in blocks, of a query with `width` features in a ciphertext. `gain` and `mean`
    /// are residues modulo p, taken by their least absolute value.
    pub(crate) fn new(
        params: &Params,
        blocks: &Blocks,
        width: usize,
        gain: &[u64],
        mean: &[u64],
    ) -> Self {
        let (points, limbs) = (blocks.lanes.points(), params.data_primes());
        let transforms = Transforms::new(params, points);
        let terms = gain.len().div_ceil(width);
        // Signed coefficients at some powers, as values modulo every prime.
        let values = |coefficients: &[(usize, i64)]| {
            let mut values = Zeroizing::new(vec![0; limbs * points]);
            for (limb, values) in values.chunks_exact_mut(points).enumerate() {
                for &(power, x) in coefficients {
                    values[power] = params.prime(limb).from_signed_wide(x);
                }
                transforms.forward(limb, values);
            }
            values
        };
        let mut means = Zeroizing::new(vec![0; limbs * terms * points]);
        for (term, h) in mean.chunks(width).enumerate() {
            let signed = h.iter().enumerate().map(|(i, &h)| {
                let (power, sign) = blocks.weight(0, i);
                (power, sign * modulus::to_signed(h))
            });
            let made = values(&Zeroizing::new(signed.collect::<Vec<_>>()));
            for (limb, from) in made.chunks_exact(points).enumerate() {
                means[(limb * terms + term) * points..][..points].copy_from_slice(from);
            }
        }
        let comb: Vec<_> = (0..blocks.width).map(|o| (o * blocks.stride, -1)).collect();
        let gains = (0..blocks.answers()).map(|answer| {
            let outputs = blocks.outputs_of(answer);
            let met = outputs.start / width..(outputs.end - 1) / width + 1;
            let of_term = |term: usize| {
                let shared = outputs.clone().filter(|j| j / width == term);
                let signed = shared.map(|j| {
                    let (power, sign) = blocks.weight(j - outputs.start, j % width);
                    (power, sign * modulus::to_signed(gain[j]))
                });
                (term, values(&Zeroizing::new(signed.collect::<Vec<_>>())))
            };
            met.map(of_term).collect()
        });
        Self {
            run: blocks.lanes.lanes(),
            means,
            comb: values(&comb).to_vec(),
            gains: gains.collect(),
            terms,
            points,
        }
    }

    /// Ciphertexts of the query, in each run.
    pub(crate) fn terms(&self) -> usize {
        self.terms
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        let gains = self.gains.iter().flatten().map(|(_, values)| values.len());
        4 * (self.means.len() + self.comb.len() + gains.sum::<usize>())
    }

    /// The term over the ciphertexts of one run.
    pub(super) fn over<'a>(&'a self, params: &Params, list: &[SeededCiphertext]) -> Centred<'a> {
        let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
        let size = 2 * n;
        let mut ciphertexts = vec![0; limbs * self.terms * size];
        let mut mean = Zeroizing::new(vec![0; limbs * size]);
        let mut second = vec![0; n];
        for (term, ciphertext) in list.iter().enumerate() {
            each_limb(params, ciphertext, &mut second, |limb, halves| {
                let at = limb * self.terms + term;
                let h = &self.means[at * self.points..][..self.points];
                let copy = ciphertexts[at * size..][..size].chunks_exact_mut(n);
                let sums = mean[limb * size..][..size].chunks_exact_mut(n);
                for ((half, copy), sum) in halves.into_iter().zip(copy).zip(sums) {
                    copy.copy_from_slice(half);
                    elementwise::mul_add_runs(simd, params.prime(limb), sum, half, h, self.run);
                }
            });
        }
        let mut common = Zeroizing::new(vec![0; limbs * size]);
        for (at, common) in common.chunks_exact_mut(n).enumerate() {
            let (limb, sum) = (at / 2, &mean[at * n..][..n]);
            let comb = &self.comb[limb * self.points..][..self.points];
            elementwise::mul_add_runs(simd, params.prime(limb), common, sum, comb, self.run);
        }
        Centred {
            centring: self,
            ciphertexts,
            common,
        }
    }
}

/// The residual's term over one run of ciphertexts.
pub(super) struct Centred<'a> {
    centring: &'a Centring,
    /// `[limb][term][half][N]`.
    ciphertexts: Vec<u32>,
    /// `[limb][half][N]`: what all answers share.
    common: Zeroizing<Vec<u32>>,
}

impl Centred<'_> {
    /// Adds half of an answer modulo one prime.
    pub(super) fn add(
        &self,
        params: &Params,
        (limb, half): (usize, usize),
        answer: usize,
        to: &mut [u32],
    ) {
        let Centring {
            gains,
            terms,
            points,
            run,
            ..
        } = self.centring;
        let (n, simd, prime) = (params.degree(), params.simd(), params.prime(limb));
        elementwise::add_assign(simd, prime, to, &self.common[(2 * limb + half) * n..][..n]);
        for (term, gain) in &gains[answer] {
            let ciphertext = &self.ciphertexts[(2 * (limb * terms + term) + half) * n..][..n];
            let gain = &gain[limb * points..][..*points];
            elementwise::mul_add_runs(simd, prime, to, ciphertext, gain, *run);
        }
    }
}
