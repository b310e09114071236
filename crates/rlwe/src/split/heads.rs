//! Products of heads in slots of the subring: weights of all 41 bits, many heads in a ciphertext.
//!
//! Modulo p, a polynomial in `Y` is `F` numbers, its values at the roots of `Y^F + 1`, and products
//! are taken number by number: slots, as in the whole ring, but the same for all `T` rows. The
//! server can add up slots of different ciphertexts only, so the sum over the inputs of a head is
//! divided: input `q·c + l` lies in ciphertext `q`, lane `l`, and the parties add up `c` lanes of
//! what they have in the end. Every input is there `r` times, and an answer holds `r` outputs of
//! each head:
//!
//! ```text
//! slot (head h, replica ρ, lane l)
//!     of a query's ciphertext q     x_h[q·c + l]
//!     of an answer's ciphertext β   Σ_q x_h[q·c + l]·M_h[q·c + l][β·r + ρ]
//! ```
//!
//! Answers are [split](super): each party adds up the lanes of its own share, and forgets
//! slots of no output.

use super::answers::{add_up, open_all};
use super::cost::price;
use super::lanes::Lanes;
use super::odds::Split;
use super::open::Opener;
use super::query;
use super::transform::Transforms;
use super::workspace::{Room, Workspace, sized};
use crate::ciphertext::SeededCiphertext;
use crate::error::{HeError, agree};
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
use crate::slots::Slots;
use crate::threads;
use primer_lattice::kernel::points::{PointWeights, Points};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use std::sync::Arc;
use zeroize::Zeroizing;

/// How heads lie in ciphertexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadShape {
    pub(crate) lanes: Lanes,
    heads: usize,
    inputs: usize,
    outputs: usize,
    /// Heads of a ciphertext.
    together: usize,
    /// `r`.
    replicas: usize,
    /// `c`.
    depth: usize,
}

impl HeadShape {
    /// Returns the shape of least cost.
    pub(crate) fn choose(
        params: &Params,
        rows: usize,
        (heads, inputs, outputs): (usize, usize, usize),
    ) -> Self {
        let lanes = Lanes::new(params, rows);
        let points = lanes.points();
        let shapes = (1..=heads.min(points)).flat_map(|together| {
            let room = points / together;
            (1..=room.min(outputs)).map(move |replicas| {
                let depth = (room / replicas).min(inputs);
                Self {
                    lanes,
                    heads,
                    inputs,
                    outputs,
                    together,
                    // As many ciphertexts, evenly filled.
                    replicas: outputs.div_ceil(outputs.div_ceil(replicas)),
                    depth: inputs.div_ceil(inputs.div_ceil(depth)),
                }
            })
        });
        let cost = |shape: &Self| {
            let (queries, answers) = (shape.queries(), shape.answers());
            let answer = params.degree() * shape.split().width(params);
            price(params, queries, answers, answer)
        };
        let best = shapes.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        best.expect("one head and one replica always fit")
    }

    /// Counts the ciphertexts that the inputs of a group of heads take.
    fn terms(&self) -> usize {
        self.inputs.div_ceil(self.depth)
    }

    /// Counts the answers that the outputs of a group of heads take.
    fn parts(&self) -> usize {
        self.outputs.div_ceil(self.replicas)
    }

    fn groups(&self) -> usize {
        self.heads.div_ceil(self.together)
    }

    /// Counts the ciphertexts of a query.
    pub(crate) fn queries(&self) -> usize {
        self.lanes.runs() * self.groups() * self.terms()
    }

    /// Counts the ciphertexts of an answer.
    pub(crate) fn answers(&self) -> usize {
        self.lanes.runs() * self.groups() * self.parts()
    }

    /// Returns the coefficients of an answer's ciphertext that count.
    fn counted(&self, run: usize) -> Vec<usize> {
        self.lanes.coefficients(run)
    }

    /// Returns the numbers that tell one shape from another.
    pub(crate) fn numbers(&self) -> [usize; 2] {
        [self.together, self.replicas]
    }

    /// Returns what the odds of its shares depend on. Weights are masks, uniform modulo p.
    pub(crate) fn split(&self) -> Split {
        let (points, square) = (self.lanes.points(), (modulus::P as f64).powi(2) / 12.0);
        Split {
            coefficients: self.groups() * self.parts() * self.lanes.rows() * points,
            energy: (self.terms() * points) as f64 * square,
        }
    }

    /// Calls `f` with head, replica, lane and slot of a group's slots.
    fn each_slot(&self, group: usize, mut f: impl FnMut(usize, usize, usize, usize)) {
        let first = group * self.together;
        for head in first..self.heads.min(first + self.together) {
            for replica in 0..self.replicas {
                for lane in 0..self.depth {
                    let block = (head - first) * self.replicas + replica;
                    f(head, replica, lane, block * self.depth + lane);
                }
            }
        }
    }

    /// Encrypts a matrix whose heads lie side by side, into the bytes of its ciphertexts.
    pub(crate) fn encrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        matrix: &Matrix<u64>,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) {
        let transform = Slots::new(self.lanes.points());
        let points = self.lanes.points();
        query::encrypt(secret, threads, rng, out, |index, plain, work| {
            let (block, term) = (index / self.terms(), index % self.terms());
            let (run, group) = (block / self.groups(), block % self.groups());
            let (slots, row) = work[..2 * points].split_at_mut(points);
            for (t, from) in self.lanes.of_run(run).enumerate() {
                slots.fill(0);
                self.each_slot(group, |head, _, lane, slot| {
                    let input = term * self.depth + lane;
                    if input < self.inputs {
                        slots[slot] = matrix.get(from, head * self.inputs + input);
                    }
                });
                transform.encode(slots, row);
                for (i, &x) in row.iter().enumerate() {
                    plain[self.lanes.at(t, i)] = x;
                }
            }
        });
    }

    /// Returns the client's share, from the bytes of answers, `width` of them a coefficient.
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
        let transform = Slots::new(self.lanes.points());
        open_all(
            threads,
            bytes,
            width * secret.params().degree(),
            self.size(),
            || Opener::new(secret, width),
            |opener, answer, out| {
                let counted = self.counted(answer.index / (self.groups() * self.parts()));
                let mut plain = Zeroizing::new(vec![0; counted.len()]);
                opener.open(answer.bytes, &counted, &mut plain)?;
                self.decode(&transform, answer.index, &plain, out);
                Ok(())
            },
        )
    }

    /// Returns the rows and columns of the product.
    fn size(&self) -> (usize, usize) {
        (self.lanes.rows(), self.heads * self.outputs)
    }

    /// Adds what one answer's coefficients say to the product: slots, and lanes added up.
    fn decode(&self, transform: &Slots, index: usize, plain: &[u64], out: &mut Matrix<u64>) {
        let (block, part) = (index / self.parts(), index % self.parts());
        let (run, group) = (block / self.groups(), block % self.groups());
        let (points, rows) = (self.lanes.points(), self.lanes.of_run(run));
        let mut slots = Zeroizing::new(vec![0; points]);
        let mut row = Zeroizing::new(vec![0; points]);
        for (t, to) in rows.clone().enumerate() {
            for (i, x) in row.iter_mut().enumerate() {
                *x = plain[i * rows.len() + t];
            }
            transform.decode(&mut row, &mut slots);
            self.each_slot(group, |head, replica, _, slot| {
                let output = part * self.replicas + replica;
                if output < self.outputs {
                    let column = head * self.outputs + output;
                    let sum = modulus::add(out.get(to, column), slots[slot]);
                    out.row_mut(to)[column] = sum;
                }
            });
        }
    }
}

/// The server's matrices of all heads, transformed.
pub(crate) struct HeadWeights {
    params: Arc<Params>,
    shape: HeadShape,
    slots: Slots,
    /// For each group of heads, those of each prime.
    groups: Vec<Vec<PointWeights>>,
}

impl HeadWeights {
    pub(crate) fn new(params: &Arc<Params>, shape: HeadShape, blocks: &[Matrix<u64>]) -> Self {
        let points = shape.lanes.points();
        let (slots, transforms) = (Slots::new(points), Transforms::new(params, points));
        let groups = (0..shape.groups()).map(|group| {
            let plain = Self::plain(&shape, &slots, group, blocks);
            let limbs = 0..params.data_primes();
            limbs
                .map(|limb| Self::encode(params, &shape, &transforms, limb, &plain))
                .collect()
        });
        let groups = groups.collect();
        Self {
            params: params.clone(),
            shape,
            slots,
            groups,
        }
    }

    /// Returns the signed coefficients of the weight polynomials of a group, `[part][term][power]`.
    fn plain(
        shape: &HeadShape,
        transform: &Slots,
        group: usize,
        blocks: &[Matrix<u64>],
    ) -> Zeroizing<Vec<i64>> {
        let points = shape.lanes.points();
        let mut slots = Zeroizing::new(vec![0; points]);
        let mut coefficients = Zeroizing::new(vec![0; points]);
        let mut plain = Zeroizing::new(Vec::new());
        plain.reserve_exact(shape.parts() * shape.terms() * points);
        for part in 0..shape.parts() {
            for term in 0..shape.terms() {
                slots.fill(0);
                shape.each_slot(group, |head, replica, lane, slot| {
                    let input = term * shape.depth + lane;
                    let output = part * shape.replicas + replica;
                    if input < shape.inputs && output < shape.outputs {
                        slots[slot] = blocks[head].get(input, output);
                    }
                });
                transform.encode(&slots, &mut coefficients);
                plain.extend(coefficients.iter().map(|&x| modulus::to_signed(x)));
            }
        }
        plain
    }

    fn encode(
        params: &Params,
        shape: &HeadShape,
        transforms: &Transforms,
        limb: usize,
        plain: &[i64],
    ) -> PointWeights {
        let (prime, points) = (params.prime(limb), shape.lanes.points());
        let kind = Points::new(params.degree(), shape.lanes.lanes());
        let mut out = PointWeights::zeros(prime, kind, shape.parts(), shape.terms());
        let mut values = Zeroizing::new(Vec::new());
        for block in 0..out.blocks() {
            let rows = out.block(block);
            let size = shape.terms() * points;
            let plain = &plain[rows.start * size..rows.end * size];
            let values = sized(&mut values, plain.len());
            for (value, &x) in values.iter_mut().zip(plain) {
                *value = prime.from_signed_wide(x);
            }
            for polynomial in values.chunks_exact_mut(points) {
                transforms.forward(limb, polynomial);
            }
            out.write(params.simd(), block, values);
        }
        out
    }

    /// Counts the bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.groups.iter().flatten().map(PointWeights::memory).sum()
    }

    /// Returns the server's share of the product. `c1` of the answers goes into their bytes,
    /// `width` of them a coefficient.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn answer(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        query: &[SeededCiphertext],
        width: usize,
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) -> Result<Matrix<u64>, HeError> {
        let (params, shape) = (&*self.params, &self.shape);
        agree("ciphertexts of the query", query.len(), shape.queries())?;
        let rooms = work.rooms();
        let lists: Vec<_> = query.chunks_exact(shape.terms()).enumerate().collect();
        let each = threads::share(lists.len(), rooms.len());
        let len = shape.parts() * width * params.degree();
        let parts = lists.chunks(each).zip(out.chunks_mut(each * len));
        let jobs = rooms.iter_mut().zip(parts).collect();
        let shares = threads::each_random(jobs, rng, |(room, (lists, out)), mut rng| {
            let (rows, cols) = shape.size();
            let mut share = Matrix::zeros(rows, cols);
            for (&(index, list), out) in lists.iter().zip(out.chunks_exact_mut(len)) {
                self.list(
                    public,
                    room,
                    (index, list),
                    width,
                    &mut rng,
                    (&mut share, out),
                );
            }
            share
        });
        Ok(add_up(shares, shape.size()))
    }

    /// Answers the ciphertexts of one group and run, and adds their part of the share.
    fn list(
        &self,
        public: &PublicKey,
        room: &mut Room,
        (index, list): (usize, &[SeededCiphertext]),
        width: usize,
        rng: &mut impl CryptoRng,
        (share, out): (&mut Matrix<u64>, &mut [u8]),
    ) {
        let (params, shape) = (&*self.params, &self.shape);
        let points = Points::new(params.degree(), shape.lanes.lanes());
        let (run, group) = (index / shape.groups(), index % shape.groups());
        let Room {
            terms,
            sums,
            finish,
        } = room;
        let counted = shape.counted(run);
        terms.fill(params, points, list);
        finish.start(params, shape.parts(), counted.len(), rng);
        for (limb, weights) in self.groups[group].iter().enumerate() {
            let sums = sums.multiply(params, weights, terms.limb(limb));
            for part in 0..shape.parts() {
                let halves = [sums.values(part, 0), sums.values(part, 1)];
                finish.limb(public, part, limb, &counted, halves);
            }
        }
        let mut plain = Zeroizing::new(vec![0; counted.len()]);
        let answers = out.chunks_exact_mut(width * params.degree());
        for (part, out) in answers.enumerate() {
            finish.split(params, part, width, &mut plain, out);
            shape.decode(&self.slots, index * shape.parts() + part, &plain, share);
        }
    }
}
