//! Products slot by slot, with the server's values for each row and feature: LayerNorm's.
//!
//! The whole ring has `N` slots modulo p. Row `t` has `F` of them in a row, which hold the features
//! of one chunk after the other in one ciphertext after the other. The server's factors fill all 41
//! bits, so nothing is lost by encoding them in slots.
//!
//! * Row sums: the server adds up chunks, the client adds up the slots of a row. It may learn the
//!   sum alone, so the masks of a row's slots are uniform but for their sum.
//! * Scaled rows: one value of the client's for each row, repeated over a ciphertext, and a matrix.
//! * Products of elements: two matrices.

use super::finish::finish;
use super::noise::Margins;
use super::open::Opener;
use super::query;
use super::shape::Lanes;
use super::workspace::Workspace;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
use crate::slotwise::{add_product, encode, zero};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use std::ops::Range;
use zeroize::Zeroizing;

/// Where rows and features lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotShape {
    pub(crate) lanes: Lanes,
    cols: usize,
}

impl SlotShape {
    /// For a matrix; one column is repeated over all features.
    pub(crate) fn new(params: &Params, rows: usize, cols: usize) -> Self {
        Self {
            lanes: Lanes::new(params, rows),
            cols,
        }
    }

    /// Ciphertexts of one run.
    pub(crate) fn chunks(&self) -> usize {
        self.cols.div_ceil(self.lanes.points())
    }

    /// Ciphertexts of the matrix.
    pub(crate) fn count(&self) -> usize {
        self.lanes.runs() * self.chunks()
    }

    /// Squares of weights that meet in one coefficient of a sum of so many products, on average
    /// over uniform weights.
    pub(crate) fn energy(&self, params: &Params, products: usize) -> f64 {
        (products * params.degree()) as f64 * (modulus::P as f64).powi(2) / 12.0
    }

    fn columns(&self, chunk: usize) -> Range<usize> {
        let first = chunk * self.lanes.points();
        first..(first + self.lanes.points()).min(self.cols)
    }

    /// Calls `f` with row, column and slot of a ciphertext's entries.
    fn each_slot(&self, index: usize, mut f: impl FnMut(usize, usize, usize)) {
        let (run, chunk) = (index / self.chunks(), index % self.chunks());
        for (t, row) in self.lanes.of_run(run).enumerate() {
            for (i, column) in self.columns(chunk).enumerate() {
                f(row, column, t * self.lanes.points() + i);
            }
        }
    }

    /// Encrypts a matrix.
    pub(crate) fn encrypt(
        &self,
        secret: &SecretKey,
        matrix: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Vec<SeededCiphertext> {
        let mut slots = Zeroizing::new(vec![0; secret.params().degree()]);
        query::encrypt(secret, self.count(), rng, |index, plain| {
            slots.fill(0);
            self.each_slot(index, |row, column, slot| {
                slots[slot] = matrix.get(row, column)
            });
            secret.params().slots().encode(&slots, plain);
        })
    }

    /// Encrypts one value for each row, over all its slots.
    pub(crate) fn encrypt_repeated(
        &self,
        secret: &SecretKey,
        values: &[u64],
        rng: &mut impl CryptoRng,
    ) -> Vec<SeededCiphertext> {
        let mut slots = Zeroizing::new(vec![0; secret.params().degree()]);
        query::encrypt(secret, self.lanes.runs(), rng, |run, plain| {
            slots.fill(0);
            let rows = slots.chunks_exact_mut(self.lanes.points());
            for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                slots.fill(values[row]);
            }
            secret.params().slots().encode(&slots, plain);
        })
    }

    /// The server: row sums of products with `u`.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn row_sums(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        query: &[SeededCiphertext],
        u: &Matrix<u64>,
        mask: &Matrix<u64>,
        rng: &mut impl CryptoRng,
        out: &mut Vec<u8>,
    ) -> Result<Counters, HeError> {
        agree("ciphertexts of the query", query.len(), self.count())?;
        for run in 0..self.lanes.runs() {
            let chunks = run * self.chunks()..(run + 1) * self.chunks();
            let terms = chunks.map(|index| (&query[index], index, u));
            let mut slots = noise_mask(&public.params, rng);
            let rows = slots.chunks_exact_mut(self.lanes.points());
            for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                let (last, others) = slots.split_last_mut().expect("a row has slots");
                let others = others.iter().fold(0, |sum, &x| modulus::add(sum, x));
                *last = modulus::sub(mask.get(row, 0), others);
            }
            self.finish(public, work, terms, &slots, rng, out)?;
        }
        Ok(Counters {
            products: query.len(),
            inputs: query.len(),
            answers: self.lanes.runs(),
            ..Counters::default()
        })
    }

    /// The server: a second matrix, or a repeated column, times `u` plus a matrix times `v`.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn products(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        [matrix, other]: [&[SeededCiphertext]; 2],
        [u, v]: [&Matrix<u64>; 2],
        mask: &Matrix<u64>,
        rng: &mut impl CryptoRng,
        out: &mut Vec<u8>,
    ) -> Result<Counters, HeError> {
        agree("ciphertexts of the query", matrix.len(), self.count())?;
        // A column has one ciphertext for all chunks of a run.
        let each = if other.len() == self.count() {
            1
        } else {
            self.chunks()
        };
        agree(
            "ciphertexts of the factor",
            each * other.len(),
            self.count(),
        )?;
        for index in 0..self.count() {
            let terms = [(&other[index / each], index, u), (&matrix[index], index, v)];
            let mut slots = noise_mask(&public.params, rng);
            self.each_slot(index, |row, column, slot| {
                slots[slot] = mask.get(row, column)
            });
            self.finish(public, work, terms.into_iter(), &slots, rng, out)?;
        }
        Ok(Counters {
            products: 2 * self.count(),
            inputs: matrix.len() + other.len(),
            answers: self.count(),
            ..Counters::default()
        })
    }

    /// One answer: the sum of ciphertexts times what a matrix has in their slots, masked.
    fn finish<'a>(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        terms: impl Iterator<Item = (&'a SeededCiphertext, usize, &'a Matrix<u64>)>,
        mask: &[u64],
        rng: &mut impl CryptoRng,
        out: &mut Vec<u8>,
    ) -> Result<(), HeError> {
        let params = &*public.params;
        let margins = Margins::of(params)?;
        let mut sum = zero(params);
        let mut slots = Zeroizing::new(vec![0; params.degree()]);
        for (ciphertext, index, factors) in terms {
            slots.fill(0);
            self.each_slot(index, |row, column, slot| {
                slots[slot] = factors.get(row, column)
            });
            let mut factors = encode(params, &slots);
            add_product(params, &mut sum, &ciphertext.expand(params), &factors);
            factors.wipe();
        }
        let mut plain = Zeroizing::new(vec![0; params.degree()]);
        params.slots().encode(mask, &mut plain);
        let sent: Vec<usize> = (0..params.degree()).collect();
        let scratch = &mut work.scratch;
        let values = |limb: usize, half: usize, to: &mut [u32]| {
            to.copy_from_slice(sum[half].limb(limb));
        };
        finish(public, &margins, scratch, &sent, &plain, values, rng, out);
        sum.iter_mut().for_each(|half| half.wipe());
        Ok(())
    }

    /// The client: row sums.
    ///
    /// # Errors
    /// If an answer's noise is beyond its bound.
    pub(crate) fn decrypt_sums(
        &self,
        secret: &SecretKey,
        bytes: &[u8],
        len: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let mut out = Matrix::zeros(self.lanes.rows(), 1);
        self.each_answer(secret, bytes, len, self.lanes.runs(), |run, slots| {
            let rows = slots.chunks_exact(self.lanes.points());
            for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                out.row_mut(row)[0] = slots.iter().fold(0, |sum, &x| modulus::add(sum, x));
            }
        })?;
        Ok(out)
    }

    /// The client: a matrix.
    ///
    /// # Errors
    /// If an answer's noise is beyond its bound.
    pub(crate) fn decrypt(
        &self,
        secret: &SecretKey,
        bytes: &[u8],
        len: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let mut out = Matrix::zeros(self.lanes.rows(), self.cols);
        self.each_answer(secret, bytes, len, self.count(), |index, slots| {
            self.each_slot(index, |row, column, slot| {
                out.row_mut(row)[column] = slots[slot];
            });
        })?;
        Ok(out)
    }

    fn each_answer(
        &self,
        secret: &SecretKey,
        bytes: &[u8],
        len: usize,
        count: usize,
        mut f: impl FnMut(usize, &[u64]),
    ) -> Result<(), HeError> {
        let n = secret.params().degree();
        let sent: Vec<usize> = (0..n).collect();
        let mut opener = Opener::new(secret)?;
        let mut plain = Zeroizing::new(vec![0; n]);
        let mut slots = Zeroizing::new(vec![0; n]);
        for (index, bytes) in bytes.chunks_exact(len).take(count).enumerate() {
            opener.open(bytes, &sent, index, &mut plain)?;
            secret.params().slots().decode(&mut plain, &mut slots);
            f(index, &slots);
        }
        Ok(())
    }
}

/// A uniform mask for every slot.
fn noise_mask(params: &Params, rng: &mut impl CryptoRng) -> Zeroizing<Vec<u64>> {
    Zeroizing::new((0..params.degree()).map(|_| modulus::random(rng)).collect())
}
