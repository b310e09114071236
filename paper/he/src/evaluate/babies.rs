//! Baby steps: inputs are rotated, all rotations of one sharing its digits, and multiplied with
//! weights.

use super::Evaluator;
use crate::ciphertext::Ciphertext;
use crate::counters::Counters;
use crate::error::HeError;
use crate::packing::encode::{Coefficients, Encoder};
use crate::packing::weights::{PreparedWeights, Stored, residue, runs};
use crate::switch::Digits;
use primer_lattice::kernel::weighted::{BLOCK, weighted};
use primer_lattice::kernel::{elementwise, inner::inner};
use primer_rlwe::ciphertext::SeededCiphertext;

/// Where the numbers of a group come from.
enum Source<'a> {
    /// Kept, for all primes.
    Kept(&'a [u32]),
    /// Encoded prime by prime.
    Encoded(&'a mut Encoder, &'a Coefficients),
}

impl Evaluator {
    /// Rotates the inputs of a group and adds their products with the group's weights to the sums.
    pub(super) fn group(
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
        let inputs: Vec<_> = inputs.iter().map(|ct| Ciphertext::of(ct, params)).collect();
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
        let block = BLOCK;
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
}
