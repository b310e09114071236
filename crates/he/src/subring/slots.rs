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

use super::finish::Sent;
use super::noise::Margins;
use super::open::open_all;
use super::query;
use super::shape::Lanes;
use super::workspace::{Room, Workspace};
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
use crate::slotwise::{add_product, encode, zero};
use crate::threads;
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

    /// Encrypts a matrix into the bytes of its ciphertexts.
    pub(crate) fn encrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        matrix: &Matrix<u64>,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) {
        let params = secret.params();
        query::encrypt(
            secret,
            threads,
            params.degree(),
            rng,
            out,
            |index, plain, slots| {
                slots.fill(0);
                self.each_slot(index, |row, column, slot| {
                    slots[slot] = matrix.get(row, column)
                });
                params.slots().encode(slots, plain);
            },
        );
    }

    /// Encrypts one value for each row, over all its slots.
    pub(crate) fn encrypt_repeated(
        &self,
        secret: &SecretKey,
        threads: usize,
        values: &[u64],
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) {
        let params = secret.params();
        query::encrypt(
            secret,
            threads,
            params.degree(),
            rng,
            out,
            |run, plain, slots| {
                slots.fill(0);
                let rows = slots.chunks_exact_mut(self.lanes.points());
                for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                    slots.fill(values[row]);
                }
                params.slots().encode(slots, plain);
            },
        );
    }

    /// The server: row sums of products with `u`, into the bytes of the answers.
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
        out: &mut [u8],
    ) -> Result<Counters, HeError> {
        agree("ciphertexts of the query", query.len(), self.count())?;
        self.each_out(public, work, rng, out, |finisher, run, mut rng, out| {
            let chunks = run * self.chunks()..(run + 1) * self.chunks();
            let terms = chunks.map(|index| (&query[index], index, u));
            let mut slots = noise_mask(&public.params, &mut rng);
            let rows = slots.chunks_exact_mut(self.lanes.points());
            for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                let (last, others) = slots.split_last_mut().expect("a row has slots");
                let others = others.iter().fold(0, |sum, &x| modulus::add(sum, x));
                *last = modulus::sub(mask.get(row, 0), others);
            }
            self.finish(finisher, terms, &slots, &mut rng, out);
        })?;
        Ok(Counters {
            products: query.len(),
            inputs: query.len(),
            answers: self.lanes.runs(),
            ..Counters::default()
        })
    }

    /// The server: a second matrix, or a repeated column, times `u` plus a matrix times `v`, into
    /// the bytes of the answers.
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
        out: &mut [u8],
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
        self.each_out(public, work, rng, out, |finisher, index, mut rng, out| {
            let terms = [(&other[index / each], index, u), (&matrix[index], index, v)];
            let mut slots = noise_mask(&public.params, &mut rng);
            self.each_slot(index, |row, column, slot| {
                slots[slot] = mask.get(row, column)
            });
            self.finish(finisher, terms.into_iter(), &slots, &mut rng, out);
        })?;
        Ok(Counters {
            products: 2 * self.count(),
            inputs: matrix.len() + other.len(),
            answers: self.count(),
            ..Counters::default()
        })
    }

    /// Calls `f` with the number and the bytes of each answer, divided between threads.
    fn each_out(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
        f: impl Fn(&mut Finisher<'_>, usize, &mut dyn CryptoRng, &mut [u8]) + Sync,
    ) -> Result<(), HeError> {
        let (margins, n) = (Margins::of(&public.params)?, public.params.degree());
        let rooms = work.rooms();
        let len = margins.answer_len(n, n);
        let each = threads::share(out.len() / len, rooms.len());
        let parts = out.chunks_mut(each * len).enumerate();
        let jobs = rooms.iter_mut().zip(parts).collect();
        threads::each_random(
            jobs,
            rng,
            |(room, (part, out)): (_, (_, &mut [u8])), rng| {
                let mut finisher = Finisher {
                    public,
                    margins,
                    room,
                };
                for (i, out) in out.chunks_exact_mut(len).enumerate() {
                    f(&mut finisher, part * each + i, rng, out);
                }
            },
        );
        Ok(())
    }

    /// One answer: the sum of ciphertexts times what a matrix has in their slots, masked.
    fn finish<'a>(
        &self,
        finisher: &mut Finisher<'_>,
        terms: impl Iterator<Item = (&'a SeededCiphertext, usize, &'a Matrix<u64>)>,
        mask: &[u64],
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) {
        let Finisher {
            public,
            margins,
            room,
        } = finisher;
        let params = &*public.params;
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
        room.finish.start(params, 1, sent.len(), rng);
        for limb in 0..params.data_primes() {
            let halves = [sum[0].limb(limb), sum[1].limb(limb)];
            let sent = Sent::Coefficients(&sent);
            room.finish.limb(public, 0, limb, sent, halves, None);
        }
        room.finish.write(params, margins, 0, &plain, rng, out);
        sum.iter_mut().for_each(|half| half.wipe());
    }

    /// The client: row sums.
    ///
    /// # Errors
    /// If an answer's noise is beyond its bound.
    pub(crate) fn decrypt_sums(
        &self,
        secret: &SecretKey,
        threads: usize,
        bytes: &[u8],
        len: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let (runs, size) = (self.lanes.runs(), (self.lanes.rows(), 1));
        self.each_answer(
            secret,
            threads,
            bytes,
            len,
            runs,
            size,
            |run, slots, out| {
                let rows = slots.chunks_exact(self.lanes.points());
                for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                    out.row_mut(row)[0] = slots.iter().fold(0, |sum, &x| modulus::add(sum, x));
                }
            },
        )
    }

    /// The client: a matrix.
    ///
    /// # Errors
    /// If an answer's noise is beyond its bound.
    pub(crate) fn decrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        bytes: &[u8],
        len: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let (count, size) = (self.count(), (self.lanes.rows(), self.cols));
        self.each_answer(
            secret,
            threads,
            bytes,
            len,
            count,
            size,
            |index, slots, out| {
                self.each_slot(index, |row, column, slot| {
                    out.row_mut(row)[column] = slots[slot];
                });
            },
        )
    }

    fn each_answer(
        &self,
        secret: &SecretKey,
        threads: usize,
        bytes: &[u8],
        len: usize,
        count: usize,
        size: (usize, usize),
        f: impl Fn(usize, &[u64], &mut Matrix<u64>) + Sync,
    ) -> Result<Matrix<u64>, HeError> {
        let n = secret.params().degree();
        let sent: Vec<usize> = (0..n).collect();
        open_all(
            secret,
            threads,
            bytes,
            count,
            |_| len,
            size,
            |opener, answer, out| {
                let mut plain = Zeroizing::new(vec![0; n]);
                let mut slots = Zeroizing::new(vec![0; n]);
                opener.open(answer.bytes, &sent, answer.index, &mut plain)?;
                secret.params().slots().decode(&mut plain, &mut slots);
                f(answer.index, &slots, out);
                Ok(())
            },
        )
    }
}

/// What an answer is finished with.
struct Finisher<'a> {
    public: &'a PublicKey,
    margins: Margins,
    room: &'a mut Room,
}

/// A uniform mask for every slot.
fn noise_mask(params: &Params, rng: &mut impl CryptoRng) -> Zeroizing<Vec<u64>> {
    Zeroizing::new((0..params.degree()).map(|_| modulus::random(rng)).collect())
}
