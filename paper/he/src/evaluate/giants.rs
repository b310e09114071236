//! Giant steps: sums of products are rotated to where they belong and added up.

use super::{Evaluator, Workspace};
use crate::counters::Counters;
use crate::error::HeError;
use crate::packing::weights::{PreparedPart, PreparedWeights};
use crate::switch::Digits;
use primer_lattice::kernel::{elementwise, inner::inner};
use primer_lattice::poly::{Poly, Values};

/// Outputs whose sums are switched with a key while it is at hand.
const OUTPUTS_TOGETHER: usize = 4;

impl Evaluator {
    /// Rotates the sums by their giant steps and adds them up, for every output.
    ///
    /// A key is read from memory once for several outputs: it is larger than the caches.
    pub(super) fn giants(
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
            .map(|_| std::array::from_fn(|_| Poly::zero(params.basis(), all)))
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
                    params.basis().divide_by_last(keep, dropped);
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
