//! Products slot by slot, with the server's values for each token and feature.
//!
//! These are the products of LayerNorm:
//!
//! * [`Evaluator::slotwise`]: `Σ x ⊙ U`, with server matrices `U` of any residues modulo p. An
//!   input may be one column that is repeated over the features
//!   ([`EncryptedMatrix::encrypt_repeated`]).
//! * [`Evaluator::row_sums`]: `Σ_j x[t][j]·U[t][j]` for each token.
//!
//! A plaintext in slots has coefficients of the size of p for any values in its slots, so server
//! values of all 41 bits cost no more noise than small weights; only the number of coefficients,
//! `N` instead of `2·period`, adds five bits or so.

use crate::answer::finish;
use crate::ciphertext::{Ciphertext, encrypt_slots};
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::noise;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{Ciphertexts, EncryptedAnswer, EncryptedMatrix, mask};
use crate::params::Params;
use crate::switch::Rotator;
use primer_lattice::poly::{Poly, Values};
use primer_ring::matrix::Matrix;
use primer_rlwe::ciphertext::{add_product, encode, zero};
use primer_rlwe::error::agree;
use primer_rlwe::keys::SecretKey;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

impl EncryptedMatrix {
    /// Encrypts one value for each token, repeated over all features of its cell: a factor for
    /// [`Evaluator::slotwise`] products of any width.
    ///
    /// # Errors
    /// If there is not one value for each token.
    pub(crate) fn encrypt_repeated(
        secret: &SecretKey,
        layout: &Layout,
        values: &[u64],
        rng: &mut impl CryptoRng,
    ) -> Result<Self, HeError> {
        agree("tokens of layout and values", layout.tokens(), values.len())?;
        let mut slots = Zeroizing::new(vec![0; secret.params().degree()]);
        let ciphertexts = (0..layout.runs())
            .map(|run| {
                slots.fill(0);
                for token in layout.tokens_of_run(run) {
                    let at = layout.cell(token);
                    slots[at..at + layout.period()].fill(values[token]);
                }
                encrypt_slots(secret, &slots, rng)
            })
            .collect();
        Ok(Self {
            layout: *layout,
            chunks: Chunks::even(layout, 1),
            ciphertexts,
        })
    }
}

/// Encodes the chunk of a matrix for one ciphertext, as a transformed plaintext.
fn plain(
    params: &Params,
    layout: &Layout,
    chunks: &Chunks,
    index: usize,
    matrix: &Matrix<u64>,
) -> Poly<Values> {
    let mut slots = Zeroizing::new(vec![0; params.degree()]);
    let columns = chunks.columns(index % chunks.len());
    for token in layout.tokens_of_run(index / chunks.len()) {
        let at = layout.cell(token);
        slots[at..at + columns.len()].copy_from_slice(&matrix.row(token)[columns.clone()]);
    }
    encode(params, &slots)
}

/// Returns the noise of a sum of `terms` slot-wise products, if it is not too much.
pub(crate) fn check_slotwise(params: &Params, terms: usize) -> Result<f64, HeError> {
    let noise = terms as f64 * noise::growth(params.degree()) * noise::fresh();
    noise::check(params, noise).map(|()| noise)
}

/// Returns the noise of sums over the features of `chunks` ciphertexts, if it is not too much.
pub(crate) fn check_row_sums(
    params: &Params,
    layout: &Layout,
    chunks: usize,
) -> Result<f64, HeError> {
    let switched = noise::key_switch(params) + noise::rounding(params);
    let product = chunks as f64 * noise::growth(params.degree()) * noise::fresh();
    let noise = layout.period() as f64 * (product + switched);
    noise::check(params, noise).map(|()| noise)
}

/// Returns the rotations by which a cell is summed up, each twice the last.
pub(crate) fn doublings(layout: &Layout) -> impl Iterator<Item = i32> + use<> {
    (0..layout.period().trailing_zeros()).map(|k| 1 << k)
}

impl Evaluator {
    /// Computes `Σ inputs ⊙ factors + mask`. All factors and the mask have the same shape; an input
    /// either has that shape too or is one repeated column.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or the noise would not fit.
    pub(crate) fn slotwise<'a, T: Into<Ciphertexts<'a>> + Copy>(
        &mut self,
        layout: &Layout,
        terms: &[(T, &Matrix<u64>)],
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let terms: Vec<_> = terms.iter().map(|(x, u)| ((*x).into(), *u)).collect();
        let chunks = Chunks::even(layout, mask_values.cols());
        agree(
            "tokens of mask and layout",
            mask_values.rows(),
            layout.tokens(),
        )?;
        self.check_terms(layout, &chunks, &terms)?;
        let params = self.params.clone();
        check_slotwise(&params, terms.len())?;
        let mut counters = Counters::default();
        let repeated: Vec<_> = terms.iter().map(|(x, _)| x.chunks.total() == 1).collect();
        let answers = (0..EncryptedMatrix::count(layout, &chunks))
            .map(|index| {
                let mut sum = zero(&params);
                for ((input, factors), &repeated) in terms.iter().zip(&repeated) {
                    let at = if repeated {
                        index / chunks.len()
                    } else {
                        index
                    };
                    let ct = input.list[at].expand(&params);
                    let mut factors = plain(&params, layout, &chunks, index, factors);
                    add_product(&params, &mut sum, &ct, &factors);
                    factors.wipe();
                    counters.products += 1;
                    counters.inputs += 1;
                }
                let plain = mask(&params, layout, &chunks, index, Some(mask_values), rng);
                finish(&self.public, sum, &plain, rng)
            })
            .collect::<Vec<_>>();
        counters.answers = answers.len();
        Ok((
            EncryptedAnswer {
                layout: *layout,
                chunks,
                answers,
            },
            counters,
        ))
    }

    /// Computes `Σ_j input[t][j]·factors[t][j] + mask[t]` for each token: an answer of one column.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, a rotation key is missing, or the noise would
    /// not fit.
    pub(crate) fn row_sums<'a>(
        &mut self,
        input: impl Into<Ciphertexts<'a>>,
        factors: &Matrix<u64>,
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let input = input.into();
        let layout = *input.layout;
        agree(
            "tokens of mask and layout",
            mask_values.rows(),
            layout.tokens(),
        )?;
        agree("columns of the mask", mask_values.cols(), 1)?;
        self.check_terms(&layout, input.chunks, &[(input, factors)])?;
        let params = self.params.clone();
        let count = input.chunks.len();
        check_row_sums(&params, &layout, count)?;
        let mut counters = Counters::default();
        let chunks = Chunks::even(&layout, 1);
        let mut answers = Vec::with_capacity(layout.runs());
        let mut rotator = Rotator::new(&self.galois);
        for run in 0..layout.runs() {
            let mut sum = zero(&params);
            for index in run * count..(run + 1) * count {
                let ct = input.list[index].expand(&params);
                let mut factors = plain(&params, &layout, input.chunks, index, factors);
                add_product(&params, &mut sum, &ct, &factors);
                factors.wipe();
            }
            counters.products += count;
            counters.inputs += count;
            // After the step of 2^k, slot f holds the sum of 2^(k+1) slots from f on; only the
            // first slot of a cell ends as a token's sum, and the mask hides all others.
            let mut sum = Ciphertext { halves: sum };
            for steps in doublings(&layout) {
                let rotated = rotator.rotate(&sum, steps)?;
                sum.add_assign(&params, &rotated)?;
                counters.rotations += 1;
            }
            let plain = mask(&params, &layout, &chunks, run, Some(mask_values), rng);
            answers.push(finish(&self.public, sum.halves, &plain, rng));
        }
        counters.answers = answers.len();
        Ok((
            EncryptedAnswer {
                layout,
                chunks,
                answers,
            },
            counters,
        ))
    }

    fn check_terms(
        &self,
        layout: &Layout,
        chunks: &Chunks,
        terms: &[(Ciphertexts<'_>, &Matrix<u64>)],
    ) -> Result<(), HeError> {
        for (input, factors) in terms {
            agree(
                "tokens of input and layout",
                input.layout.tokens(),
                layout.tokens(),
            )?;
            agree(
                "cell width of input and layout",
                input.layout.period(),
                layout.period(),
            )?;
            agree(
                "packing of input and layout",
                input.layout.packing() as usize,
                layout.packing() as usize,
            )?;
            agree("rows of factors", factors.rows(), layout.tokens())?;
            agree("columns of factors", factors.cols(), chunks.total())?;
            if input.chunks.total() != 1 {
                chunks.agree(input.chunks)?;
            }
        }
        Ok(())
    }
}
