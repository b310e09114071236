//! Products slot by slot: with the server's values for each token and feature, and with weights for
//! each feature and a centring term.
//!
//! These are the products of LayerNorm and of its residual path:
//!
//! * [`Evaluator::slotwise`]: `Σ x ⊙ U`, with server matrices `U` of any residues modulo p. An input may be one
//!   column that is repeated over the features ([`EncryptedMatrix::encrypt_repeated`]).
//! * [`Evaluator::row_sums`]: `Σ_j x[t][j]·U[t][j]` for each token.
//! * [`Evaluator::centred`]: `g_j·x[t][j] - Σ_i h_i·x[t][i]`, a diagonal matrix less a matrix of rank one.
//!
//! A plaintext in slots has coefficients of the size of p whatever its slots hold, so server values of
//! all 41 bits cost no more noise than small weights; only the number of coefficients, `N` instead
//! of `2·period`, adds five bits or so.

use crate::answer::finish;
use crate::ciphertext::{Ciphertext, SeededCiphertext};
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::evaluate::Evaluator;
use crate::kernel::elementwise;
use crate::keys::SecretKey;
use crate::noise;
use crate::packing::layout::{Chunks, Layout, Shape};
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix, mask};
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use crate::poly::{Poly, Values};
use crate::switch::Rotator;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use std::sync::Arc;
use zeroize::Zeroizing;

impl EncryptedMatrix {
    /// Encrypts one value for each token, repeated over all features of its cell: a factor for
    /// [`Evaluator::slotwise`] products of any width.
    ///
    /// # Errors
    /// If there is not one value for each token.
    pub fn encrypt_repeated(
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
                SeededCiphertext::encrypt_slots(secret, &slots, rng)
            })
            .collect();
        Ok(Self {
            layout: *layout,
            chunks: Chunks::even(layout, 1),
            ciphertexts,
        })
    }
}

/// The chunk of a matrix for one ciphertext, as a transformed plaintext.
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

/// Slot values as a transformed plaintext, lifted to the residues of least absolute value.
fn encode(params: &Params, slots: &[u64]) -> Poly<Values> {
    let mut coefficients = Zeroizing::new(vec![0; params.degree()]);
    params.slots().encode(slots, &mut coefficients);
    let signed: Zeroizing<Vec<i64>> = Zeroizing::new(
        coefficients
            .iter()
            .map(|&c| modulus::to_signed(c))
            .collect(),
    );
    let mut out = Poly::<crate::poly::Coefficients>::zero(params, params.data_primes());
    for j in 0..params.data_primes() {
        let prime = params.prime(j);
        elementwise::lift(
            params.simd(),
            prime,
            out.limb_mut(j),
            &signed,
            prime.shoup(1),
        );
    }
    out.into_values(params)
}

/// `sum += ciphertext · plain`.
fn add_product(
    params: &Params,
    sum: &mut [Poly<Values>; 2],
    ct: &Ciphertext,
    plain: &Poly<Values>,
) {
    for (sum, half) in sum.iter_mut().zip(&ct.halves) {
        for j in 0..params.data_primes() {
            let prime = params.prime(j);
            elementwise::mul_add(
                params.simd(),
                prime,
                sum.limb_mut(j),
                half.limb(j),
                plain.limb(j),
            );
        }
    }
}

fn zero(params: &Params) -> [Poly<Values>; 2] {
    std::array::from_fn(|_| Poly::zero(params, params.data_primes()))
}

/// Weights `g` and `h` of [`Evaluator::centred`].
pub struct PreparedCentred {
    /// `-h` to every output feature of a chunk.
    centre: PreparedWeights,
    /// `g`, one plaintext for each chunk.
    diagonal: Vec<Poly<Values>>,
}

impl PreparedCentred {
    /// Prepares `g` and `h`, residues modulo p, for each column.
    ///
    /// # Errors
    /// If their lengths differ or the noise would not fit.
    pub fn new(
        params: &Arc<Params>,
        layout: &Layout,
        g: &[u64],
        h: &[u64],
    ) -> Result<Self, HeError> {
        agree("weights of diagonal and centre", g.len(), h.len())?;
        let chunks = Chunks::even(layout, g.len());
        let width = chunks.widest(0..chunks.len());
        let centre =
            PreparedWeights::new(params, layout, Shape::dense(g.len(), width), |_, i, _| {
                modulus::neg(h[i])
            })?;
        noise::check(params, Self::bound(params, &centre))?;
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

    fn bound(params: &Params, centre: &PreparedWeights) -> f64 {
        centre.noise() + noise::growth(params.degree()) * noise::fresh()
    }

    /// Bytes of the prepared form.
    pub fn memory(&self) -> usize {
        self.centre.memory()
            + self
                .diagonal
                .iter()
                .map(|p| 4 * p.data().len())
                .sum::<usize>()
    }
}

impl Evaluator {
    /// `Σ inputs ⊙ factors + mask`. All factors and the mask have the same shape; an input either
    /// has that shape too or is one repeated column.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or the noise would not fit.
    pub fn slotwise(
        &mut self,
        layout: &Layout,
        terms: &[(&EncryptedMatrix, &Matrix<u64>)],
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let chunks = Chunks::even(layout, mask_values.cols());
        agree(
            "tokens of mask and layout",
            mask_values.rows(),
            layout.tokens(),
        )?;
        self.check_terms(layout, &chunks, terms)?;
        let params = self.params.clone();
        noise::check(
            &params,
            terms.len() as f64 * noise::growth(params.degree()) * noise::fresh(),
        )?;
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
                    let ct = input.ciphertexts[at].expand(&params);
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

    /// `Σ_j input[t][j]·factors[t][j] + mask[t]` for each token: an answer of one column.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, a rotation key is missing, or the noise would not
    /// fit.
    pub fn row_sums(
        &mut self,
        input: &EncryptedMatrix,
        factors: &Matrix<u64>,
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let layout = input.layout;
        agree(
            "tokens of mask and layout",
            mask_values.rows(),
            layout.tokens(),
        )?;
        agree("columns of the mask", mask_values.cols(), 1)?;
        self.check_terms(&layout, &input.chunks, &[(input, factors)])?;
        let params = self.params.clone();
        let (count, period) = (input.chunks.len(), layout.period());
        let switched = noise::key_switch(&params) + noise::rounding(&params);
        let product = count as f64 * noise::growth(params.degree()) * noise::fresh();
        noise::check(&params, period as f64 * (product + switched))?;
        let mut counters = Counters::default();
        let chunks = Chunks::even(&layout, 1);
        let mut answers = Vec::with_capacity(layout.runs());
        let mut rotator = Rotator::new(&self.galois);
        for run in 0..layout.runs() {
            let mut sum = zero(&params);
            for index in run * count..(run + 1) * count {
                let ct = input.ciphertexts[index].expand(&params);
                let mut factors = plain(&params, &layout, &input.chunks, index, factors);
                add_product(&params, &mut sum, &ct, &factors);
                factors.wipe();
            }
            counters.products += count;
            counters.inputs += count;
            // After the step of 2^k, slot f holds the sum of 2^(k+1) slots from f on; only the
            // first slot of a cell ends as a token's sum, and the mask hides all others.
            let mut sum = Ciphertext { halves: sum };
            for k in 0..period.trailing_zeros() {
                let rotated = rotator.rotate(&sum, 1 << k)?;
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

    /// `g_j·input[t][j] - Σ_i h_i·input[t][i] + mask[t][j]`.
    ///
    /// The centring term is the same for every output feature, so it is computed for one chunk and
    /// added to all.
    ///
    /// # Errors
    /// If shapes or layouts do not fit each other, or a rotation key is missing.
    pub fn centred(
        &mut self,
        input: &EncryptedMatrix,
        weights: &PreparedCentred,
        mask_values: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(EncryptedAnswer, Counters), HeError> {
        let (layout, chunks) = (input.layout, &input.chunks);
        self.check(input, &weights.centre, None)?;
        agree("rows of the mask", mask_values.rows(), layout.tokens())?;
        agree("columns of the mask", mask_values.cols(), chunks.total())?;
        let params = self.params.clone();
        let mut counters = Counters::default();
        let mut answers = Vec::with_capacity(input.ciphertexts.len());
        let special = params.prime(params.data_primes()).value();
        for run in 0..layout.runs() {
            let first = run * chunks.len();
            let [centre] = &self.part(input, first, &weights.centre, 0, &mut counters)?[..] else {
                unreachable!("the centring term has one chunk");
            };
            for (c, diagonal) in weights.diagonal.iter().enumerate() {
                let ct = input.ciphertexts[first + c].expand(&params);
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

    fn check_terms(
        &self,
        layout: &Layout,
        chunks: &Chunks,
        terms: &[(&EncryptedMatrix, &Matrix<u64>)],
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
                chunks.agree(&input.chunks)?;
            }
        }
        Ok(())
    }
}
