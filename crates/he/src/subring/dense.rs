//! Dense matrices by coefficients, and the residual's term in the same answer.
//!
//! The weight polynomial of input block `I` and output block `R` is
//! `Σ_o Σ_i w[Ik + i][Rm + o]·Y^(ok + k-1-i)`. Weights of a model are transformed once and kept,
//! one 32-bit number for each weight and prime, in groups of answers; or they are kept as they are
//! and transformed group by group when they are used.

use super::finish::finish;
use super::noise::Margins;
use super::query::each_limb;
use super::residual::Centring;
use super::shape::Blocks;
use super::transform::Transforms;
use super::workspace::{Workspace, sized};
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::keys::PublicKey;
use crate::params::Params;
use primer_lattice::kernel::points::{PointWeights, Points, multiply};
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::ops::Range;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Answers whose sums are computed before they are finished: what stays close to the processor.
const GROUP: usize = 48;

/// Weights of one product.
pub(crate) struct DenseWeights {
    params: Arc<Params>,
    blocks: Blocks,
    transforms: Transforms,
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

    fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let answers = self.blocks.answers();
        (0..answers)
            .step_by(GROUP)
            .map(move |first| first..(first + GROUP).min(answers))
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
                        let last = self.blocks.power(o);
                        for (i, input) in (first..inputs.min(first + stride)).enumerate() {
                            polynomial[last - i] = prime.from_signed_wide(entry(input, output));
                        }
                    }
                    self.transforms.forward(limb, polynomial);
                }
            }
            out.write(self.params.simd(), block, values);
        }
        out
    }

    /// The product, masked and finished: appended to a message.
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
        out: &mut Vec<u8>,
    ) -> Result<Counters, HeError> {
        let (params, blocks) = (&*self.params, &self.blocks);
        let margins = Margins::of(params)?;
        let runs = blocks.lanes.runs();
        let (dense, residual) = self.split(queries)?;
        let mut counters = Counters::default();
        for run in 0..runs {
            if let Some(dense) = dense {
                let terms = blocks.queries();
                self.load(work, &dense[run * terms..][..terms]);
                counters.inputs += terms;
            }
            let centring = match (&self.residual, residual) {
                (Some(centring), Some(list)) => {
                    let terms = centring.terms();
                    let list = &list[run * terms..][..terms];
                    Some(centring.over(params, list))
                }
                _ => None,
            };
            for (index, group) in self.groups().enumerate() {
                self.multiply(work, index, &group);
                counters.products += if dense.is_some() {
                    group.len() * blocks.queries()
                } else {
                    0
                };
                for answer in group.clone() {
                    let Workspace { sums, scratch, .. } = &mut *work;
                    let sent = blocks.sent(run, answer);
                    let mask = self.mask_of(run, answer, mask);
                    let values = |limb: usize, half: usize, to: &mut [u32]| {
                        if dense.is_some() {
                            sums[limb].take(answer - group.start, half, to);
                        } else {
                            to.fill(0);
                        }
                        if let Some(centring) = &centring {
                            centring.add(params, (limb, half), answer, to);
                        }
                    };
                    finish(public, &margins, scratch, &sent, &mask, values, rng, out);
                    counters.answers += 1;
                }
            }
        }
        Ok(counters)
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

    /// Brings ciphertexts into the order of the kernel.
    fn load(&self, work: &mut Workspace, list: &[SeededCiphertext]) {
        work.terms(&self.params, self.points(), list.len());
        let Workspace { terms, scratch, .. } = work;
        let second = sized(&mut scratch.limb, self.params.degree());
        for (term, ciphertext) in list.iter().enumerate() {
            each_limb(&self.params, ciphertext, second, |limb, halves| {
                for (half, values) in halves.into_iter().enumerate() {
                    terms[limb].put(self.params.simd(), term, half, values);
                }
            });
        }
    }

    /// The sums of a group of answers modulo all primes.
    fn multiply(&self, work: &mut Workspace, index: usize, group: &Range<usize>) {
        let (simd, limbs) = (self.params.simd(), 0..self.params.data_primes());
        work.sums(&self.params, self.points(), group.len());
        match &self.source {
            Source::Absent => {}
            Source::Kept(groups) => limbs.for_each(|i| {
                multiply(
                    simd,
                    &groups[index][i],
                    &work.terms[i],
                    &mut work.sums[i],
                    false,
                );
            }),
            Source::Streamed(weights) => limbs.for_each(|i| {
                let made = self.encode(i, group, &|r, c| weights.get(r, c).into());
                multiply(simd, &made, &work.terms[i], &mut work.sums[i], false);
            }),
        }
    }

    /// The mask of one answer, in the order of what is sent.
    fn mask_of(&self, run: usize, answer: usize, mask: &Matrix<u64>) -> Zeroizing<Vec<u64>> {
        let rows = self.blocks.lanes.of_run(run);
        let outputs = self.blocks.outputs_of(answer);
        let entries = outputs.flat_map(|o| rows.clone().map(move |t| mask.get(t, o)));
        Zeroizing::new(entries.collect())
    }
}
