//! The server's side: products of encrypted matrices with weights.
//!
//! One product, for each part of the weights and each run of ciphertexts:
//!
//! 1. *Babies*: digits of every input ciphertext once, then each rotation is a sum of products with
//!    a key and a permutation. Results stay modulo `P·q` and are not divided by `P` (Bossuat,
//!    Mouchet, Troncoso-Pastoriza, Hubaux, "double hoisting"): no transform per rotation at all.
//! 2. *Products*: for each output chunk and giant step, one long sum over inputs and babies.
//! 3. *Giants*: each sum but the unrotated one is key-switched and rotated, modulo `P·q` again, and
//!    added up for its output.
//! 4. `answer`: division by `P`, fresh zero, mask, flood, smallest modulus.
//!
//! Work runs prime by prime, so that the rotated inputs of one prime are all that has to stay
//! close.

mod babies;
mod giants;

use crate::answer::finish;
use crate::counters::Counters;
use crate::error::HeError;
use crate::keys::GaloisKeys;
use crate::packing::encode::{Coefficients, Encoder};
use crate::packing::matrix::{Ciphertexts, EncryptedAnswer, mask};
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use crate::switch::Digits;
use primer_lattice::kernel::aligned::Aligned;
use primer_lattice::poly::{Poly, Values};
use primer_ring::matrix::Matrix;
use primer_rlwe::error::agree;
use primer_rlwe::keys::PublicKey;
use primer_rlwe::wire::fingerprint_error;
use rand_core::CryptoRng;
use std::ops::Range;
use std::sync::Arc;

/// A client's public keys with the memory for working on its ciphertexts.
pub(crate) struct Evaluator {
    pub(crate) params: Arc<Params>,
    pub(crate) public: PublicKey,
    pub(crate) galois: GaloisKeys,
    work: Workspace,
}

/// Buffers kept from one product to the next.
#[derive(Default)]
struct Workspace {
    /// Digits of each input of a group, then of the sums of some outputs.
    digits: Vec<Digits>,
    /// The same, transformed modulo one prime.
    transformed: Aligned,
    /// Rotated inputs modulo one prime, interleaved.
    rotated: Aligned,
    /// Sums: `[prime][output, giant][half][N]`.
    sums: Aligned,
    /// Scratch of a few polynomials.
    scratch: Aligned,
    /// For weights that are encoded when they are used.
    encoder: Option<(Encoder, Coefficients)>,
    /// Their values modulo one prime.
    numbers: Aligned,
}

impl Evaluator {
    /// Returns an evaluator with a client's keys.
    ///
    /// # Errors
    /// If the keys were made for different parameters.
    pub(crate) fn new(public: PublicKey, galois: GaloisKeys) -> Result<Self, HeError> {
        if public.params.fingerprint() != galois.params.fingerprint() {
            let found = public.params.fingerprint();
            return Err(fingerprint_error(&galois.params, found).into());
        }
        Ok(Self {
            params: public.params.clone(),
            public,
            galois,
            work: Workspace::default(),
        })
    }

    /// Returns the parameters.
    pub(crate) fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Computes `input · weights + mask`, finished for the client.
    ///
    /// Without a mask the result itself goes to the client; slots that hold no result are masked in
    /// any case.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or a rotation key is missing.
    pub(crate) fn linear<'a>(
        &mut self,
        input: impl Into<Ciphertexts<'a>>,
        weights: &PreparedWeights,
        mask_values: Option<&Matrix<u64>>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let input = input.into();
        self.check(input, weights, mask_values)?;
        let (layout, outputs) = (&weights.layout, &weights.outputs);
        let mut counters = Counters::default();
        let mut answers = Vec::with_capacity(layout.runs() * outputs.len());
        for run in 0..layout.runs() {
            for part in 0..weights.parts.len() {
                let first = run * input.chunks.len();
                let sums = self.part(input, first, weights, part, &mut counters)?;
                for sum in sums {
                    let plain = mask(
                        &self.params,
                        layout,
                        outputs,
                        answers.len(),
                        mask_values,
                        rng,
                    );
                    answers.push(finish(&self.public, sum, &plain, rng));
                }
            }
        }
        counters.answers += answers.len();
        let answer = EncryptedAnswer {
            layout: *layout,
            chunks: outputs.clone(),
            answers,
        };
        Ok((answer, counters))
    }

    pub(crate) fn check(
        &self,
        input: Ciphertexts<'_>,
        weights: &PreparedWeights,
        mask: Option<&Matrix<u64>>,
    ) -> Result<(), HeError> {
        if weights.params.fingerprint() != self.params.fingerprint() {
            let found = weights.params.fingerprint();
            return Err(fingerprint_error(&self.params, found).into());
        }
        let (ours, theirs) = (&weights.layout, input.layout);
        agree(
            "tokens of input and weights",
            theirs.tokens(),
            ours.tokens(),
        )?;
        agree(
            "cell width of input and weights",
            theirs.period(),
            ours.period(),
        )?;
        agree(
            "packing of input and weights",
            theirs.packing() as usize,
            ours.packing() as usize,
        )?;
        input.chunks.agree(&weights.inputs)?;
        if let Some(mask) = mask {
            agree("rows of the mask", mask.rows(), ours.tokens())?;
            agree("columns of the mask", mask.cols(), weights.outputs.total())?;
        }
        Ok(())
    }

    /// Computes the sums of one part of the weights, `P` times too large modulo all primes, one for
    /// each output chunk.
    pub(crate) fn part(
        &mut self,
        input: Ciphertexts<'_>,
        first: usize,
        weights: &PreparedWeights,
        number: usize,
        counters: &mut Counters,
    ) -> Result<Vec<[Poly<Values>; 2]>, HeError> {
        let part = &weights.parts[number];
        let params = self.params.clone();
        let (n, all) = (params.degree(), params.all_primes());
        let (outputs, giants) = (part.part.outputs.len(), part.giants.len());
        let len = outputs * giants * 2 * n;
        self.work.sums.sized(all * len);
        for (index, group) in part.groups.iter().enumerate() {
            let inputs = &input.list[first + group.start..first + group.end];
            self.group(inputs, weights, number, index, len, counters)?;
        }
        counters.products += part.groups.iter().map(Range::len).sum::<usize>()
            * weights.layout.baby_steps()
            * outputs
            * giants;
        self.giants(weights, part, len, counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;
    use crate::noise;
    use crate::packing::layout::Layout;
    use crate::packing::matrix::EncryptedMatrix;
    use crate::params::{flood_limbs, products};
    use primer_ring::modulus;
    use primer_ring::prg::Prg;
    use primer_rlwe::keys::SecretKey;
    use rand_core::Rng;

    #[test]
    fn noise_of_products_is_within_its_bound() {
        let params = products();
        let mut rng = Prg::new(&[11; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        for (layout, inputs) in [
            (Layout::tokens_first(&params, 60).unwrap(), 300),
            (Layout::features_first(&params, 1, 128).unwrap(), 128),
        ] {
            let public = PublicKey::generate(&secret, &mut rng);
            let galois = GaloisKeys::generate(&secret, layout.rotations(), &mut rng);
            let mut server = Evaluator::new(public, galois).unwrap();
            let w = Matrix::from_fn(inputs, 100, |_, _| (rng.next_u32() as i16) >> 1);
            let x = Matrix::from_fn(layout.tokens(), inputs, |_, _| modulus::random(&mut rng));
            let weights = PreparedWeights::dense(&params, &layout, &w).unwrap();
            let sent =
                EncryptedMatrix::encrypt(&secret, &layout, weights.input_chunks(), &x, &mut rng)
                    .unwrap();
            let sums = server
                .part((&sent).into(), 0, &weights, 0, &mut Counters::default())
                .unwrap();
            for sum in sums {
                let halves = sum.map(|half| {
                    let mut half = half.into_coefficients(params.basis());
                    half.drop_to(params.basis(), params.data_primes());
                    half
                });
                let largest = budget::noise(&secret, &halves)
                    .iter()
                    .fold(0.0f64, |m, x| m.max(x.abs()));
                let (found, bound) = (largest.log2(), weights.noise().log2());
                // Typical noise is far below the worst case, and not so far that the test is idle.
                assert!(
                    found < bound && found > bound - 30.0,
                    "2^{found} of 2^{bound}"
                );
                let halves = halves.map(|mut half| {
                    half.drop_to(params.basis(), flood_limbs(&params));
                    half
                });
                let largest = budget::noise(&secret, &halves)
                    .iter()
                    .fold(0.0f64, |m, x| m.max(x.abs()));
                assert!(largest < noise::hidden(&params, weights.noise()));
            }
        }
    }
}
