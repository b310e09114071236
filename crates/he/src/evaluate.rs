//! The server's side: products of encrypted matrices with weights.
//!
//! One product, for each part of the weights and each run of ciphertexts:
//!
//! 1. *Babies*: digits of every input ciphertext once, then each rotation is a sum of products with a
//!    key and a permutation. Results stay modulo `P·q` and are not divided by `P` (Bossuat, Mouchet,
//!    Troncoso-Pastoriza, Hubaux, "double hoisting"): no transform per rotation at all.
//! 2. *Products*: for each output chunk and giant step, one long sum over inputs and babies.
//! 3. *Giants*: each sum but the unrotated one is key-switched and rotated, modulo `P·q` again, and
//!    added up for its output.
//! 4. [`crate::answer`]: division by `P`, fresh zero, mask, flood, smallest modulus.
//!
//! Work runs prime by prime, so that the rotated inputs of one prime are all that has to stay close.

use crate::answer::finish;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::kernel::{aligned::Aligned, elementwise, inner::inner, weighted::weighted};
use crate::keys::{GaloisKeys, PublicKey};
use crate::packing::encode::{Coefficients, Encoder};
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix, mask};
use crate::packing::weights::{PreparedPart, PreparedWeights, Stored, residue, runs};
use crate::params::Params;
use crate::poly::{Poly, Values, divide_by_last};
use crate::switch::Digits;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::ops::Range;
use std::sync::Arc;

/// Outputs whose sums are switched with a key while it is at hand.
const OUTPUTS_TOGETHER: usize = 4;

/// A client's public keys with the memory for working on its ciphertexts.
pub struct Evaluator {
    pub(crate) params: Arc<Params>,
    pub(crate) public: PublicKey,
    pub(crate) galois: GaloisKeys,
    pub(crate) work: Workspace,
}

/// Buffers kept from one product to the next.
#[derive(Default)]
pub(crate) struct Workspace {
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

/// Where the numbers of a group come from.
enum Source<'a> {
    /// Kept, for all primes.
    Kept(&'a [u32]),
    /// Encoded prime by prime.
    Encoded(&'a mut Encoder, &'a Coefficients),
}

impl Evaluator {
    /// An evaluator from a client's keys.
    ///
    /// # Errors
    /// If the keys were made for different parameters.
    pub fn new(public: PublicKey, galois: GaloisKeys) -> Result<Self, HeError> {
        if public.params.fingerprint() != galois.params.fingerprint() {
            return Err(crate::wire::fingerprint_error(
                &galois.params,
                public.params.fingerprint(),
            ));
        }
        Ok(Self {
            params: public.params.clone(),
            public,
            galois,
            work: Workspace::default(),
        })
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// `input · weights + mask`, finished for the client.
    ///
    /// Without a mask the result itself goes to the client; slots that hold no result are masked in
    /// any case.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or a rotation key is missing.
    pub fn linear(
        &mut self,
        input: &EncryptedMatrix,
        weights: &PreparedWeights,
        mask_values: Option<&Matrix<u64>>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
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
        input: &EncryptedMatrix,
        weights: &PreparedWeights,
        mask: Option<&Matrix<u64>>,
    ) -> Result<(), HeError> {
        if weights.params.fingerprint() != self.params.fingerprint() {
            return Err(crate::wire::fingerprint_error(
                &self.params,
                weights.params.fingerprint(),
            ));
        }
        let (ours, theirs) = (&weights.layout, &input.layout);
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

    /// The sums of one part of the weights, `P` times too large modulo all primes, one for each output chunk.
    pub(crate) fn part(
        &mut self,
        input: &EncryptedMatrix,
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
            let inputs = &input.ciphertexts[first + group.start..first + group.end];
            self.group(inputs, weights, number, index, len, counters)?;
        }
        counters.products += part.groups.iter().map(Range::len).sum::<usize>()
            * weights.layout.baby_steps()
            * outputs
            * giants;
        self.giants(weights, part, len, counters)
    }

    /// Rotates the inputs of a group and adds their products with the group's weights to the sums.
    fn group(
        &mut self,
        inputs: &[SeededCiphertext],
        weights: &PreparedWeights,
        part: usize,
        index: usize,
        len: usize,
        counters: &mut Counters,
    ) -> Result<(), HeError> {
        let params = &*self.params;
        let (n, data, all, simd) = (
            params.degree(),
            params.data_primes(),
            params.all_primes(),
            params.simd(),
        );
        let (baby, count) = (weights.layout.baby_steps(), inputs.len());
        let (terms, runs) = (baby * count, runs(params, &weights.layout));
        let keys = (1..baby)
            .map(|b| self.galois.get(b as i32))
            .collect::<Result<Vec<_>, _>>()?;
        let work = &mut self.work;
        let inputs: Vec<_> = inputs.iter().map(|ct| ct.expand(params)).collect();
        work.digits
            .resize_with(count.max(work.digits.len()), Digits::default);
        for (ct, digits) in inputs.iter().zip(&mut work.digits) {
            digits.of_values(params, ct.halves[1].data());
        }
        let source = match &weights.stored {
            Stored::Values(values) => Source::Kept(&values[part][index]),
            Stored::Matrix(matrix) => {
                let (encoder, coefficients) = match &mut work.encoder {
                    Some(made) if made.0.fits(&weights.layout) => made,
                    slot => slot.insert((
                        Encoder::new(params, &weights.layout),
                        Coefficients::default(),
                    )),
                };
                let weight = |_, r, c| residue(matrix, r, c);
                let part = &weights.parts[part];
                encoder.coefficients(weights, part, index, &weight, coefficients);
                Source::Encoded(encoder, coefficients)
            }
        };
        let mut source = source;
        let rotated = work.rotated.sized(2 * n * terms);
        // Scratch: P·c0 of every input, P·c1 and two sums.
        let (scaled, rest) = work.scratch.sized((count + 2) * n).split_at_mut(count * n);
        let (half0, half1) = rest.split_at_mut(n);
        let block = crate::kernel::weighted::BLOCK;
        let transformed = work.transformed.sized(count * data * n);
        for j in 0..all {
            for (i, out) in transformed.chunks_exact_mut(data * n).enumerate() {
                let own = (j < data).then(|| inputs[i].halves[1].limb(j));
                work.digits[i].modulo(params, j, own, out);
            }
            let prime = params.prime(j);
            let factor = prime.shoup(params.prime(data).value() % prime.value());
            for (i, ct) in inputs.iter().enumerate() {
                let out = &mut scaled[i * n..][..n];
                if j < data {
                    elementwise::scale_into(simd, prime, out, ct.halves[0].limb(j), factor);
                    elementwise::scale_into(simd, prime, half1, ct.halves[1].limb(j), factor);
                } else {
                    out.fill(0);
                    half1.fill(0);
                }
                for (half, values) in [&*out, &*half1].into_iter().enumerate() {
                    let at = 2 * block * i * baby + half * block;
                    for (b, values) in values.chunks_exact(block).enumerate() {
                        rotated[2 * block * terms * b + at..][..block].copy_from_slice(values);
                    }
                }
            }
            for (b, key) in keys.iter().enumerate() {
                let key_j = key.modulo(params, j);
                for (i, digits) in transformed.chunks_exact(data * n).enumerate() {
                    inner(simd, prime, digits, key_j, half0, half1);
                    elementwise::add_assign(simd, prime, half0, &scaled[i * n..][..n]);
                    let at = 2 * block * (i * baby + b + 1);
                    key.map
                        .apply_blocked(simd, half0, rotated, 2 * block * terms, at);
                    key.map
                        .apply_blocked(simd, half1, rotated, 2 * block * terms, at + block);
                }
            }
            let numbers = match &mut source {
                Source::Kept(values) => {
                    let stride = values.len() / all;
                    &values[j * stride..][..stride]
                }
                Source::Encoded(encoder, coefficients) => {
                    let numbers = work.numbers.sized(encoder.len(coefficients));
                    encoder.modulo(j, coefficients, terms, numbers);
                    numbers
                }
            };
            let sums = &mut work.sums.sized(all * len)[j * len..][..len];
            weighted(simd, prime, runs, rotated, terms, numbers, sums, index > 0);
        }
        counters.inputs += count;
        counters.hoisted += count * (baby - 1);
        counters.rotations += count * (baby - 1);
        Ok(())
    }

    /// Rotates the sums by their giant steps and adds them up, for every output.
    ///
    /// A key is read from memory once for several outputs: it is larger than the caches.
    fn giants(
        &mut self,
        weights: &PreparedWeights,
        part: &PreparedPart,
        len: usize,
        counters: &mut Counters,
    ) -> Result<Vec<[Poly<Values>; 2]>, HeError> {
        let params = &*self.params;
        let (n, all, simd) = (params.degree(), params.all_primes(), params.simd());
        let data = params.data_primes();
        let baby = weights.layout.baby_steps() as i32;
        let Workspace {
            digits,
            transformed,
            sums,
            scratch,
            ..
        } = &mut self.work;
        let sums = sums.get(all * len);
        let scratch = scratch.sized((all + 2) * n);
        let (c1, rest) = scratch.split_at_mut(all * n);
        let (half0, half1) = rest.split_at_mut(n);
        digits.resize_with(digits.len().max(OUTPUTS_TOGETHER), Digits::default);
        let transformed = transformed.sized(data * n);
        let mut totals: Vec<[Poly<Values>; 2]> = (0..part.part.outputs.len())
            .map(|_| std::array::from_fn(|_| Poly::zero(params, all)))
            .collect();
        for (g, giant) in part.giants.clone().enumerate() {
            let at = |o: usize, j: usize, half: usize| {
                j * len + ((o * part.giants.len() + g) * 2 + half) * n
            };
            if giant == 0 {
                for (o, total) in totals.iter_mut().enumerate() {
                    for (half, total) in total.iter_mut().enumerate() {
                        for j in 0..all {
                            let sum = &sums[at(o, j, half)..][..n];
                            elementwise::add_assign(simd, params.prime(j), total.limb_mut(j), sum);
                        }
                    }
                }
                continue;
            }
            let key = self.galois.get(giant * baby)?;
            for (batch, totals) in totals.chunks_mut(OUTPUTS_TOGETHER).enumerate() {
                let first = batch * OUTPUTS_TOGETHER;
                for (i, digits) in digits.iter_mut().take(totals.len()).enumerate() {
                    for (j, limb) in c1.chunks_exact_mut(n).enumerate() {
                        limb.copy_from_slice(&sums[at(first + i, j, 1)..][..n]);
                        params.ntt(j).inverse(limb);
                    }
                    let (keep, dropped) = c1.split_at_mut((all - 1) * n);
                    divide_by_last(params, keep, dropped);
                    digits.of_coefficients(params, keep);
                }
                for j in 0..all {
                    let prime = params.prime(j);
                    let key_j = key.modulo(params, j);
                    for (i, [total0, total1]) in totals.iter_mut().enumerate() {
                        digits[i].modulo(params, j, None, transformed);
                        inner(simd, prime, transformed, key_j, half0, half1);
                        elementwise::add_assign(
                            simd,
                            prime,
                            half0,
                            &sums[at(first + i, j, 0)..][..n],
                        );
                        key.map.apply_add(simd, prime, half0, total0.limb_mut(j));
                        key.map.apply_add(simd, prime, half1, total1.limb_mut(j));
                    }
                }
                counters.rotations += totals.len();
            }
        }
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;
    use crate::keys::SecretKey;
    use crate::noise;
    use crate::packing::layout::Layout;
    use primer_ring::modulus;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    #[test]
    fn noise_of_products_is_within_its_bound() {
        let params = Params::products();
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
                .part(&sent, 0, &weights, 0, &mut Counters::default())
                .unwrap();
            for sum in sums {
                let halves = sum.map(|half| {
                    let mut half = half.into_coefficients(&params);
                    half.drop_to(&params, params.data_primes());
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
                    half.drop_to(&params, params.flood_limbs());
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
