//! Products slot by slot, with the server's values for each row and feature: LayerNorm's.
//!
//! The whole ring has `N` slots modulo p. Row `t` has `F` of them in a row, which hold the features
//! of one chunk after the other in one ciphertext after the other. The server's factors fill all 41
//! bits, so nothing is lost by encoding them in slots.
//!
//! * Row sums: the server adds up chunks, and each party the slots of a row, of its own share.
//! * Scaled rows: one value of the client's for each row, repeated over a ciphertext, and a matrix.
//! * Products of elements: one matrix, or two.
//!
//! Answers are [split](super).

use super::answers::{add_up, open_all};
use super::lanes::Lanes;
use super::odds::Split;
use super::open::Opener;
use super::query;
use super::workspace::{Room, Workspace};
use crate::ciphertext::{SeededCiphertext, add_product, encode, zero};
use crate::error::{HeError, agree};
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
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
    /// Lays out a matrix; one column is repeated over all features.
    pub(crate) fn new(params: &Params, rows: usize, cols: usize) -> Self {
        Self {
            lanes: Lanes::new(params, rows),
            cols,
        }
    }

    /// Counts the ciphertexts of one run.
    pub(crate) fn chunks(&self) -> usize {
        self.cols.div_ceil(self.lanes.points())
    }

    /// Counts the ciphertexts of the matrix.
    pub(crate) fn count(&self) -> usize {
        self.lanes.runs() * self.chunks()
    }

    /// Returns what the odds of shares depend on, where each answer is a sum of products. Weights
    /// are masks, uniform modulo p.
    fn split(&self, params: &Params, answers: usize, products: usize) -> Split {
        let square = (modulus::P as f64).powi(2) / 12.0;
        Split {
            coefficients: answers * params.degree(),
            energy: (products * params.degree()) as f64 * square,
        }
    }

    /// Returns the same for row sums.
    pub(crate) fn split_sums(&self, params: &Params) -> Split {
        self.split(params, self.lanes.runs(), self.chunks())
    }

    /// Returns the same for a number of products in each answer.
    pub(crate) fn split_products(&self, params: &Params, products: usize) -> Split {
        self.split(params, self.count(), products)
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
        query::encrypt(secret, threads, rng, out, |index, plain, slots| {
            slots.fill(0);
            self.each_slot(index, |row, column, slot| {
                slots[slot] = matrix.get(row, column)
            });
            params.slots().encode(slots, plain);
        });
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
        query::encrypt(secret, threads, rng, out, |run, plain, slots| {
            slots.fill(0);
            let rows = slots.chunks_exact_mut(self.lanes.points());
            for (slots, row) in rows.zip(self.lanes.of_run(run)) {
                slots.fill(values[row]);
            }
            params.slots().encode(slots, plain);
        });
    }

    /// Returns the server's share of row sums of products with `u`. `c1` of the answers goes into
    /// their bytes, `width` of them a coefficient.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn row_sums(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        query: &[SeededCiphertext],
        u: &Matrix<u64>,
        width: usize,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) -> Result<Matrix<u64>, HeError> {
        agree("ciphertexts of the query", query.len(), self.count())?;
        let size = (self.lanes.rows(), 1);
        let share = self.each_out((public, width), work, size, rng, out, |made| {
            let chunks = made.index * self.chunks()..(made.index + 1) * self.chunks();
            let terms = chunks.map(|index| (&query[index], index, u));
            let slots = self.finish(made, terms);
            self.decode_sums(made.index, &slots, made.share);
        });
        Ok(share)
    }

    /// Returns the server's share of a sum of matrices, each times a factor of its own; all but the
    /// first may be repeated columns. `c1` of the answers goes into their bytes, `width` of them a
    /// coefficient.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn products(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        terms: &[(&[SeededCiphertext], &Matrix<u64>)],
        width: usize,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) -> Result<Matrix<u64>, HeError> {
        for (place, (query, _)) in terms.iter().enumerate() {
            match place {
                0 => agree("ciphertexts of the query", query.len(), self.count())?,
                _ => agree(
                    "ciphertexts of the factor",
                    self.repeats(query) * query.len(),
                    self.count(),
                )?,
            }
        }
        let size = (self.lanes.rows(), self.cols);
        let share = self.each_out((public, width), work, size, rng, out, |made| {
            let index = made.index;
            let terms = terms.iter().map(|(query, factor)| {
                let ciphertext = &query[index / self.repeats(query)];
                (ciphertext, index, *factor)
            });
            let slots = self.finish(made, terms);
            self.decode(index, &slots, made.share);
        });
        Ok(share)
    }

    /// Tells how many ciphertexts of the matrix each one of a query meets: a column has one for all
    /// chunks of a run.
    fn repeats(&self, query: &[SeededCiphertext]) -> usize {
        match query.len() == self.count() {
            true => 1,
            false => self.chunks(),
        }
    }

    /// Calls `f` for each answer, divided between threads, and adds up the shares that it makes.
    fn each_out(
        &self,
        (public, width): (&PublicKey, usize),
        work: &mut Workspace,
        (rows, cols): (usize, usize),
        rng: &mut impl CryptoRng,
        out: &mut [u8],
        f: impl Fn(&mut Making<'_>) + Sync,
    ) -> Matrix<u64> {
        let rooms = work.rooms();
        let len = width * public.params.degree();
        let each = threads::share(out.len() / len, rooms.len());
        let parts = out.chunks_mut(each * len).enumerate();
        let jobs = rooms.iter_mut().zip(parts).collect();
        let made = threads::each_random(
            jobs,
            rng,
            |(room, (part, out)): (&mut Room, (usize, &mut [u8])), rng| {
                let mut share = Matrix::zeros(rows, cols);
                for (i, out) in out.chunks_exact_mut(len).enumerate() {
                    f(&mut Making {
                        public,
                        width,
                        index: part * each + i,
                        room: &mut *room,
                        rng: &mut *rng,
                        share: &mut share,
                        out,
                    });
                }
                share
            },
        );
        add_up(made, (rows, cols))
    }

    /// Makes one answer, the sum of ciphertexts times what a matrix has in their slots, and returns
    /// those of the server's share.
    fn finish<'a>(
        &self,
        making: &mut Making<'_>,
        terms: impl Iterator<Item = (&'a SeededCiphertext, usize, &'a Matrix<u64>)>,
    ) -> Zeroizing<Vec<u64>> {
        let (params, public) = (&*making.public.params, making.public);
        let finish = &mut making.room.finish;
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
        let all: Vec<usize> = (0..params.degree()).collect();
        finish.start(params, 1, all.len(), &mut making.rng);
        for limb in 0..params.data_primes() {
            let halves = [sum[0].limb(limb), sum[1].limb(limb)];
            finish.limb(public, 0, limb, &all, halves);
        }
        sum.iter_mut().for_each(|half| half.wipe());
        let mut plain = Zeroizing::new(vec![0; params.degree()]);
        finish.split(params, 0, making.width, &mut plain, making.out);
        params.slots().decode(&mut plain, &mut slots);
        slots
    }

    /// Adds the row sums that one answer's slots say.
    fn decode_sums(&self, run: usize, slots: &[u64], out: &mut Matrix<u64>) {
        let rows = slots.chunks_exact(self.lanes.points());
        for (slots, row) in rows.zip(self.lanes.of_run(run)) {
            out.row_mut(row)[0] = slots.iter().fold(0, |sum, &x| modulus::add(sum, x));
        }
    }

    /// Adds the elements that one answer's slots say.
    fn decode(&self, index: usize, slots: &[u64], out: &mut Matrix<u64>) {
        self.each_slot(index, |row, column, slot| {
            out.row_mut(row)[column] = slots[slot];
        });
    }

    /// Returns the client's share of row sums, from the bytes of answers, `width` of them a
    /// coefficient.
    ///
    /// # Errors
    /// If the secret has too few primes.
    pub(crate) fn open_sums(
        &self,
        secret: &SecretKey,
        threads: usize,
        bytes: &[u8],
        width: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let size = (self.lanes.rows(), 1);
        each_answer(secret, threads, (bytes, width), size, |run, slots, out| {
            self.decode_sums(run, slots, out);
        })
    }

    /// Returns the client's share of a matrix, as [`Self::open_sums`].
    ///
    /// # Errors
    /// If the secret has too few primes.
    pub(crate) fn open(
        &self,
        secret: &SecretKey,
        threads: usize,
        bytes: &[u8],
        width: usize,
    ) -> Result<Matrix<u64>, HeError> {
        let size = (self.lanes.rows(), self.cols);
        each_answer(
            secret,
            threads,
            (bytes, width),
            size,
            |index, slots, out| {
                self.decode(index, slots, out);
            },
        )
    }
}

/// Calls `f` with the slots of each answer, of `width` bytes a coefficient.
fn each_answer(
    secret: &SecretKey,
    threads: usize,
    (bytes, width): (&[u8], usize),
    size: (usize, usize),
    f: impl Fn(usize, &[u64], &mut Matrix<u64>) + Sync,
) -> Result<Matrix<u64>, HeError> {
    let n = secret.params().degree();
    let all: Vec<usize> = (0..n).collect();
    open_all(
        threads,
        bytes,
        width * n,
        size,
        || Opener::new(secret, width),
        |opener, answer, out| {
            let mut plain = Zeroizing::new(vec![0; n]);
            let mut slots = Zeroizing::new(vec![0; n]);
            opener.open(answer.bytes, &all, &mut plain)?;
            secret.params().slots().decode(&mut plain, &mut slots);
            f(answer.index, &slots, out);
            Ok(())
        },
    )
}

/// An answer that is being made.
struct Making<'a> {
    public: &'a PublicKey,
    /// Bytes of a coefficient.
    width: usize,
    index: usize,
    room: &'a mut Room,
    rng: &'a mut dyn CryptoRng,
    /// The server's share, of all answers of a thread.
    share: &'a mut Matrix<u64>,
    out: &'a mut [u8],
}
