//! Dense matrices by coefficients, and the residual's term in the same answer.
//!
//! The weight polynomial of input block `I` and output block `R` is
//! `Σ_o Σ_i w[Ik + i][Rm + o]·Y^(ok - i)`. Weights of a model are transformed once and kept, one
//! 32-bit number for each weight and prime, in groups of answers; or they are kept as they are and
//! transformed group by group when they are used.

use super::finish::{More, Sent};
use super::noise::Margins;
use super::residual::{Centred, Centring};
use super::shape::Blocks;
use super::transform::Transforms;
use super::workspace::{Mask, Room, Terms, Workspace, sized};
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::keys::PublicKey;
use crate::params::Params;
use crate::threads;
use primer_lattice::kernel::points::{PointWeights, Points};
use primer_lattice::ntt::Part;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::ops::Range;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Most answers whose sums are computed before they are finished: what stays close to the
/// processor.
const GROUP: usize = 48;

/// Weights of one product.
pub(crate) struct DenseWeights {
    params: Arc<Params>,
    blocks: Blocks,
    transforms: Transforms,
    /// The coefficients of answers that carry results.
    part: Part,
    source: Source,
    residual: Option<Centring>,
}

/// Where transformed weights come from.
enum Source {
    /// There are none: the residual's term is all.
    Absent,
    /// For each group of answers, those of each prime.
    Kept(Vec<Vec<PointWeights>>),
    /// Transformed when they are used.
    Streamed(Matrix<i16>),
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Self::Streamed(weights) = self {
            weights.data_mut().zeroize();
        }
    }
}

impl DenseWeights {
    /// Transforms weights, which are given by input and output.
    pub(crate) fn kept(
        params: &Arc<Params>,
        blocks: Blocks,
        entry: impl Fn(usize, usize) -> i64,
        residual: Option<Centring>,
    ) -> Self {
        let mut weights = Self::new(params, blocks, Source::Absent, residual);
        let groups = weights.groups().map(|group| {
            let limbs = 0..params.data_primes();
            limbs
                .map(|limb| weights.encode(limb, &group, &entry))
                .collect()
        });
        weights.source = Source::Kept(groups.collect());
        weights
    }

    /// Keeps weights as they are.
    pub(crate) fn streamed(
        params: &Arc<Params>,
        blocks: Blocks,
        weights: Matrix<i16>,
        residual: Option<Centring>,
    ) -> Self {
        Self::new(params, blocks, Source::Streamed(weights), residual)
    }

    /// The residual's term alone.
    pub(crate) fn centred(params: &Arc<Params>, blocks: Blocks, residual: Centring) -> Self {
        Self::new(params, blocks, Source::Absent, Some(residual))
    }

    fn new(
        params: &Arc<Params>,
        blocks: Blocks,
        source: Source,
        residual: Option<Centring>,
    ) -> Self {
        Self {
            params: params.clone(),
            blocks,
            transforms: Transforms::new(params, blocks.lanes.points()),
            part: blocks.part(),
            source,
            residual,
        }
    }

    /// Bytes of kept weights: four for each prime and weight, those that fill up blocks included.
    pub(crate) fn kept_bytes(params: &Params, blocks: &Blocks) -> usize {
        let polynomials = blocks.queries() * blocks.answers();
        4 * params.data_primes() * blocks.lanes.points() * polynomials
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        let weights = match &self.source {
            Source::Absent => 0,
            Source::Kept(groups) => groups.iter().flatten().map(PointWeights::memory).sum(),
            Source::Streamed(weights) => 2 * weights.data().len(),
        };
        weights + self.residual.as_ref().map_or(0, Centring::memory)
    }

    fn points(&self) -> Points {
        Points::new(self.params.degree(), self.blocks.lanes.lanes())
    }

    /// Answers that are computed together: an even number of groups, so that two threads have as
    /// much to do, none of which ends between answers that share a fresh secret.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (answers, shared) = (self.blocks.answers(), self.params.zeros());
        let parts = answers.div_ceil(shared);
        let count = answers.div_ceil(GROUP).next_multiple_of(2).min(parts);
        let end = move |i: usize| (i * parts / count * shared).min(answers);
        (0..count).map(move |i| end(i)..end(i + 1))
    }

    /// The weights of some answers modulo one prime.
    fn encode(
        &self,
        limb: usize,
        answers: &Range<usize>,
        entry: &impl Fn(usize, usize) -> i64,
    ) -> PointWeights {
        let Blocks {
            inputs,
            stride,
            lanes,
            ..
        } = self.blocks;
        let (prime, terms) = (self.params.prime(limb), self.blocks.queries());
        let mut out = PointWeights::zeros(prime, self.points(), answers.len(), terms);
        let mut values = Zeroizing::new(Vec::new());
        for block in 0..out.blocks() {
            let rows = out.block(block);
            let values = sized(&mut values, rows.len() * terms * lanes.points());
            values.fill(0);
            let mut polynomials = values.chunks_exact_mut(lanes.points());
            for row in rows {
                let outputs = self.blocks.outputs_of(answers.start + row);
                for first in (0..inputs).step_by(stride) {
                    let polynomial = polynomials.next().expect("one for each row and term");
                    for (o, output) in outputs.clone().enumerate() {
                        for (i, input) in (first..inputs.min(first + stride)).enumerate() {
                            let (power, sign) = self.blocks.weight(o, i);
                            let weight = sign * entry(input, output);
                            polynomial[power] = prime.from_signed_wide(weight);
                        }
                    }
                    self.transforms.forward(limb, polynomial);
                }
            }
            out.write(self.params.simd(), block, values);
        }
        out
    }

    /// The product, masked and finished, into the bytes of its answers.
    ///
    /// # Errors
    /// If there are not as many ciphertexts as the product reads.
    pub(crate) fn answer(
        &self,
        public: &PublicKey,
        work: &mut Workspace,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        rng: &mut impl CryptoRng,
        mut out: &mut [u8],
    ) -> Result<Counters, HeError> {
        let (params, blocks) = (&*self.params, &self.blocks);
        let margins = Margins::of(params)?;
        let (dense, residual) = self.split(queries)?;
        let rooms = work.rooms();
        for run in 0..blocks.lanes.runs() {
            // The ciphertexts are shared by all threads.
            let mut terms = std::mem::take(&mut rooms[0].terms);
            let dense = dense.map(|list| self.of_run(run, list));
            if let Some(list) = dense {
                terms.fill(params, self.points(), list, rooms.len());
            }
            let both = self
                .residual
                .as_ref()
                .zip(residual.map(|list| self.of_run(run, list)));
            let task = Task {
                public,
                margins: &margins,
                run,
                dense: dense.map(|_| &terms),
                residual: both.map(|(centring, list)| centring.over(params, list)),
                mask,
            };
            let groups: Vec<_> = self.groups().enumerate().collect();
            let each = threads::share(groups.len(), rooms.len());
            let mut jobs = Vec::with_capacity(rooms.len());
            for (room, groups) in rooms.iter_mut().zip(groups.chunks(each)) {
                let answers = groups.iter().flat_map(|(_, group)| group.clone());
                let len = answers.map(|answer| task.len(params, blocks, answer)).sum();
                let (now, later) = std::mem::take(&mut out).split_at_mut(len);
                out = later;
                jobs.push((room, groups, now));
            }
            threads::each_random(jobs, rng, |(room, groups, mut out), mut rng| {
                for (index, group) in groups {
                    out = self.group(&task, room, *index, group, &mut rng, out);
                }
            });
            rooms[0].terms = terms;
        }
        let (runs, answers) = (blocks.lanes.runs(), blocks.answers());
        let terms = dense.map_or(0, |_| blocks.queries());
        Ok(Counters {
            inputs: runs * terms,
            products: runs * terms * answers,
            answers: runs * answers,
            ..Counters::default()
        })
    }

    /// The ciphertexts of one run.
    fn of_run<'a>(&self, run: usize, list: &'a [SeededCiphertext]) -> &'a [SeededCiphertext] {
        let terms = list.len() / self.blocks.lanes.runs();
        &list[run * terms..][..terms]
    }

    /// The answers of a group, into the first of some bytes; gives the others.
    fn group<'a>(
        &self,
        task: &Task<'_>,
        room: &mut Room,
        index: usize,
        group: &Range<usize>,
        rng: &mut impl CryptoRng,
        mut out: &'a mut [u8],
    ) -> &'a mut [u8] {
        let (params, blocks, run) = (&*self.params, &self.blocks, task.run);
        let Room {
            sums,
            finish,
            mask: Mask(mask),
            ..
        } = room;
        // A narrower answer's coefficients are the first of these.
        let sent = blocks.places(run);
        let sent_of = |answer| &sent[..blocks.sent_len(run, answer)];
        // In the place of sums, if the residual's term is all.
        let zeros = vec![
            0;
            if task.dense.is_none() {
                params.degree()
            } else {
                0
            }
        ];
        finish.start(params, group.len(), sent.len(), rng);
        for limb in 0..params.data_primes() {
            let sums = task.dense.map(|terms| {
                let made;
                let weights = match &self.source {
                    Source::Kept(groups) => &groups[index][limb],
                    Source::Streamed(weights) => {
                        made = self.encode(limb, group, &|r, c| weights.get(r, c).into());
                        &made
                    }
                    Source::Absent => unreachable!("there are no ciphertexts without weights"),
                };
                sums.multiply(params, weights, terms.limb(limb))
            });
            for (i, answer) in group.clone().enumerate() {
                let halves =
                    [0, 1].map(|half| sums.map_or(&zeros[..], |sums| sums.values(i, half)));
                let sent = Sent::Part(&self.part, sent_of(answer));
                let more = task.residual.as_ref().map(|residual| {
                    move |half, to: &mut [u32]| residual.add(params, (limb, half), answer, to)
                });
                let more = more.as_ref().map(|more| more as More<'_>);
                finish.limb(task.public, i, limb, sent, halves, more);
            }
        }
        for (i, answer) in group.clone().enumerate() {
            let rows = blocks.lanes.of_run(run);
            let outputs = blocks.outputs_of(answer);
            let entries = outputs.flat_map(|o| rows.clone().map(move |t| task.mask.get(t, o)));
            let mask = sized(mask, blocks.sent_len(run, answer));
            mask.iter_mut().zip(entries).for_each(|(to, x)| *to = x);
            let (now, later) = out.split_at_mut(task.len(params, blocks, answer));
            finish.write(params, task.margins, i, mask, rng, now);
            out = later;
        }
        out
    }

    /// The ciphertexts of the dense term and of the residual's, if the product has them.
    #[allow(clippy::type_complexity)]
    fn split<'a>(
        &self,
        queries: &[&'a [SeededCiphertext]],
    ) -> Result<
        (
            Option<&'a [SeededCiphertext]>,
            Option<&'a [SeededCiphertext]>,
        ),
        HeError,
    > {
        let absent = matches!(self.source, Source::Absent);
        let wanted = usize::from(!absent) + usize::from(self.residual.is_some());
        agree("queries of the product", queries.len(), wanted)?;
        let mut queries = queries.iter().copied();
        let dense = if absent { None } else { queries.next() };
        let residual = self.residual.as_ref().and_then(|_| queries.next());
        let runs = self.blocks.lanes.runs();
        let check = |list: Option<&[SeededCiphertext]>, terms: usize| {
            list.map_or(Ok(()), |list| {
                agree("ciphertexts of the query", list.len(), runs * terms)
            })
        };
        check(dense, self.blocks.queries())?;
        check(residual, self.residual.as_ref().map_or(0, Centring::terms))?;
        Ok((dense, residual))
    }
}

/// What the answers of one run have in common.
struct Task<'a> {
    public: &'a PublicKey,
    margins: &'a Margins,
    run: usize,
    /// The ciphertexts of the dense term.
    dense: Option<&'a Terms>,
    residual: Option<Centred<'a>>,
    mask: &'a Matrix<u64>,
}

impl Task<'_> {
    /// Bytes of an answer.
    fn len(&self, params: &Params, blocks: &Blocks, answer: usize) -> usize {
        let sent = blocks.sent_len(self.run, answer);
        self.margins.answer_len(params.degree(), sent)
    }
}
