//! Centred products: a diagonal matrix minus one of rank one, as on the residual path of LayerNorm.
//!
//! `g_j·x[t][j] - Σ_i h_i·x[t][i]`. The centring term is the same for every output feature, so it
//! is a matrix product with the outputs of one chunk only, added to all; the diagonal is a product
//! slot by slot.

use crate::answer::finish;
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::noise;
use crate::packing::chunks::{BlockShape, Chunks};
use crate::packing::layout::Layout;
use crate::packing::matrix::{Ciphertexts, EncryptedAnswer, mask};
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::poly::{Poly, Values};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_rlwe::ciphertext::{add_product, encode, zero};
use primer_rlwe::error::agree;
use rand_core::CryptoRng;
use std::sync::Arc;

/// Weights `g` and `h` of [`Evaluator::centred`].
pub(crate) struct PreparedCentred {
    /// `-h` to every output feature of a chunk.
    pub(crate) centre: PreparedWeights,
    /// `g`, one plaintext for each chunk.
    diagonal: Vec<Poly<Values>>,
}

impl PreparedCentred {
    /// Prepares `g` and `h`, residues modulo p, for each column.
    ///
    /// # Errors
    /// If their lengths differ or the noise would not fit.
    pub(crate) fn new(
        params: &Arc<Params>,
        layout: &Layout,
        g: &[u64],
        h: &[u64],
    ) -> Result<Self, HeError> {
        agree("weights of diagonal and centre", g.len(), h.len())?;
        Self::check(params, layout, g.len())?;
        let chunks = Chunks::even(layout, g.len());
        let centre = PreparedWeights::new(params, layout, Self::centre(&chunks), |_, i, _| {
            modulus::neg(h[i])
        })?;
        let diagonal = (0..chunks.len())
            .map(|c| {
                let columns = chunks.columns(c);
                let mut slots = vec![0; params.degree()];
                for cell in slots.chunks_exact_mut(layout.period()) {
                    cell[..columns.len()].copy_from_slice(&g[columns.clone()]);
                }
                encode(params, &slots)
            })
            .collect();
        Ok(Self { centre, diagonal })
    }

    /// Returns the noise, if there are columns and it fits.
    pub(crate) fn check(
        params: &Arc<Params>,
        layout: &Layout,
        cols: usize,
    ) -> Result<f64, HeError> {
        let shape = Self::centre(&Chunks::even(layout, cols));
        let centre = PreparedWeights::plan(params, layout, shape)?;
        let diagonal = noise::growth(params.degree()) * noise::fresh();
        let noise = centre.noise() + diagonal;
        noise::check(params, noise).map(|()| noise)
    }

    /// Returns the shape of the centring term: from all columns to the widest chunk.
    fn centre(chunks: &Chunks) -> BlockShape {
        BlockShape::dense(chunks.total(), chunks.widest(0..chunks.len()))
    }

    /// Counts the bytes of the prepared form.
    pub(crate) fn memory(&self) -> usize {
        self.centre.memory()
            + self
                .diagonal
                .iter()
                .map(|p| 4 * p.data().len())
                .sum::<usize>()
    }
}

impl Drop for PreparedCentred {
    fn drop(&mut self) {
        self.diagonal.iter_mut().for_each(Poly::wipe);
    }
}

impl Evaluator {
    /// Computes `g_j·input[t][j] - Σ_i h_i·input[t][i] + mask[t][j]`.
    ///
    /// The centring term is the same for every output feature, so it is computed for one chunk and
    /// added to all.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or a rotation key is missing.
    pub(crate) fn centred<'a>(
        &mut self,
        input: impl Into<Ciphertexts<'a>>,
        weights: &PreparedCentred,
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let input = input.into();
        let (layout, chunks) = (*input.layout, input.chunks);
        self.check(input, &weights.centre, None)?;
        agree("rows of the mask", mask_values.rows(), layout.tokens())?;
        agree("columns of the mask", mask_values.cols(), chunks.total())?;
        let params = self.params.clone();
        let mut counters = Counters::default();
        let mut answers = Vec::with_capacity(input.list.len());
        let special = params.prime(params.data_primes()).value();
        for run in 0..layout.runs() {
            let first = run * chunks.len();
            let [centre] = &self.part(input, first, &weights.centre, 0, &mut counters)?[..] else {
                unreachable!("the centring term has one chunk");
            };
            for (c, diagonal) in weights.diagonal.iter().enumerate() {
                let ct = input.list[first + c].expand(&params);
                let mut sum = zero(&params);
                add_product(&params, &mut sum, &ct, diagonal);
                let [s0, s1] = sum;
                // The centring term is P times too large, modulo P as well.
                let halves = [(s0, &centre[0]), (s1, &centre[1])].map(|(sum, centre)| {
                    let mut total = centre.copy();
                    for j in 0..params.data_primes() {
                        let prime = params.prime(j);
                        let mut limb = sum.limb(j).to_vec();
                        elementwise::scale(
                            params.simd(),
                            prime,
                            &mut limb,
                            prime.shoup(special % prime.value()),
                        );
                        elementwise::add_assign(params.simd(), prime, total.limb_mut(j), &limb);
                    }
                    total
                });
                counters.products += 1;
                let plain = mask(
                    &params,
                    &layout,
                    chunks,
                    answers.len(),
                    Some(mask_values),
                    rng,
                );
                answers.push(finish(&self.public, halves, &plain, rng));
            }
        }
        counters.answers = answers.len();
        Ok((
            EncryptedAnswer {
                layout,
                chunks: chunks.clone(),
                answers,
            },
            counters,
        ))
    }
}
