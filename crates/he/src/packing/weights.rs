//! Weights prepared for products: diagonals of the matrix, encoded and transformed once.
//!
//! Diagonal `r` of a chunk pair has at feature `f` the weight from input feature `f + r` to output
//! feature `f`. It is periodic along the rows and the same in both, so as a polynomial it lives in
//! the subring of `X^(N/2·period)`: a transform of length `2·period` modulo p gives its
//! coefficients, one of that length modulo each prime its values, and those are mirror images, so
//! `period` numbers for each prime are kept. For 30 tokens that is 1/32 of the whole transform.
//!
//! Baby-step giant-step: `r = g·B + b`. The product is `Σ_g rot_gB(Σ_b w_gb ⊙ rot_b(x))` with `w_gb` the
//! diagonal rotated back by `gB`. The outer sum's rotations are the giant steps.
//!
//! Numbers are laid out as [`crate::kernel::weighted`] reads them, for groups of input chunks. The
//! prepared form takes `4·(L+1)·period` bytes a diagonal: 33 MB for 768×768 and 30 tokens, 1.3 GB for
//! the embedding. Where that does not fit, [`PreparedWeights::streamed`] keeps the matrix itself (two
//! bytes a weight) and encodes each group when it is used, which about triples the time of a product.

use crate::error::{HeError, agree};
use crate::kernel::elementwise;
use crate::kernel::weighted::Runs;
use crate::noise;
use crate::ntt::Ntt;
use crate::packing::layout::{Chunks, Layout, Packing, Part, Shape, in_range};
use crate::params::Params;
use crate::slots::Slots;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Terms (rotated inputs) that are summed at once: both halves of a block of them fill half of the
/// first-level cache.
const GROUP_TERMS: usize = 128;

/// A weight matrix ready for products in one layout.
pub struct PreparedWeights {
    pub(crate) params: Arc<Params>,
    pub(crate) layout: Layout,
    pub(crate) shape: Shape,
    pub(crate) inputs: Chunks,
    pub(crate) outputs: Chunks,
    pub(crate) parts: Vec<PreparedPart>,
    noise: f64,
    /// The matrix, if its diagonals are encoded at every use.
    streamed: Option<Matrix<i16>>,
}

pub(crate) struct PreparedPart {
    pub(crate) part: Part,
    pub(crate) giants: Range<i32>,
    pub(crate) groups: Vec<Group>,
}

/// Some input chunks with their weights: `[prime][kernel group][output, giant][input, baby][…]`;
/// none if they are encoded when used.
pub(crate) struct Group {
    pub(crate) inputs: Range<usize>,
    weights: Vec<u32>,
}

impl PreparedWeights {
    /// A dense matrix of small signed weights: `inputs` rows, `outputs` columns.
    ///
    /// # Errors
    /// If the noise of the product would not fit.
    pub fn dense(
        params: &Arc<Params>,
        layout: &Layout,
        weights: &Matrix<i16>,
    ) -> Result<Self, HeError> {
        let shape = Shape::dense(weights.rows(), weights.cols());
        Self::new(params, layout, shape, |_, r, c| residue(weights, r, c))
    }

    /// A dense matrix of small signed weights that is encoded anew for each product.
    ///
    /// # Errors
    /// If the noise of the product would not fit.
    pub fn streamed(
        params: &Arc<Params>,
        layout: &Layout,
        weights: Matrix<i16>,
    ) -> Result<Self, HeError> {
        let shape = Shape::dense(weights.rows(), weights.cols());
        let mut prepared = Self::plan(params, layout, shape)?;
        prepared.streamed = Some(weights);
        Ok(prepared)
    }

    /// Blocks along the diagonal, entries any residues modulo p: a head each, for products with
    /// the server's masks. Slot-packed weights cost the same noise whatever their size.
    ///
    /// # Errors
    /// If the blocks differ in shape or the noise of the product would not fit.
    pub fn blocks(
        params: &Arc<Params>,
        layout: &Layout,
        blocks: &[Matrix<u64>],
    ) -> Result<Self, HeError> {
        let first = blocks.first().ok_or(HeError::Range {
            what: "number of blocks",
            value: 0,
            max: usize::MAX,
        })?;
        for block in blocks {
            agree("rows of the blocks", block.rows(), first.rows())?;
            agree("columns of the blocks", block.cols(), first.cols())?;
        }
        let shape = Shape::blocks(blocks.len(), first.rows(), first.cols());
        Self::new(params, layout, shape, |b, r, c| blocks[b].get(r, c))
    }

    /// Weights given by a function of block, row and column.
    ///
    /// # Errors
    /// If the shape is empty or the noise of the product would not fit.
    pub fn new(
        params: &Arc<Params>,
        layout: &Layout,
        shape: Shape,
        weight: impl Fn(usize, usize, usize) -> u64,
    ) -> Result<Self, HeError> {
        let mut prepared = Self::plan(params, layout, shape)?;
        let mut encoder = Encoder::new(params, layout);
        let mut parts = std::mem::take(&mut prepared.parts);
        for part in &mut parts {
            for i in 0..part.groups.len() {
                part.groups[i].weights = encoder.group(&prepared, part, i, &weight);
            }
        }
        prepared.parts = parts;
        Ok(prepared)
    }

    /// The structure of a product, with its noise checked and no weights yet.
    fn plan(params: &Arc<Params>, layout: &Layout, shape: Shape) -> Result<Self, HeError> {
        in_range("number of blocks", shape.blocks, 1 << 16)?;
        in_range("rows of a block", shape.inputs, 1 << 24)?;
        in_range("columns of a block", shape.outputs, 1 << 24)?;
        let (inputs, outputs) = (shape.input_chunks(layout), shape.output_chunks(layout));
        let per_group = (GROUP_TERMS / layout.baby_steps()).max(1);
        let mut noise = 0.0f64;
        let mut parts = Vec::new();
        for part in shape.parts(layout) {
            let (width_in, width_out) = (
                inputs.widest(part.inputs.clone()),
                outputs.widest(part.outputs.clone()),
            );
            let giants = layout.giant_steps(width_in, width_out);
            noise = noise.max(bound(params, layout, &part, giants.len()));
            let end = part.inputs.end;
            let groups = part.inputs.clone().step_by(per_group);
            let groups = groups.map(|first| Group {
                inputs: first..(first + per_group).min(end),
                weights: Vec::new(),
            });
            parts.push(PreparedPart {
                groups: groups.collect(),
                part,
                giants,
            });
        }
        noise::check(params, noise)?;
        Ok(Self {
            params: params.clone(),
            layout: *layout,
            shape,
            inputs,
            outputs,
            parts,
            noise,
            streamed: None,
        })
    }

    /// The weights of a group, encoded now if they are not kept.
    pub(crate) fn group<'a>(
        &'a self,
        encoder: &mut Option<Encoder>,
        part: &'a PreparedPart,
        index: usize,
    ) -> Cow<'a, [u32]> {
        match &self.streamed {
            None => Cow::Borrowed(&part.groups[index].weights),
            Some(matrix) => {
                let encoder =
                    encoder.get_or_insert_with(|| Encoder::new(&self.params, &self.layout));
                Cow::Owned(encoder.group(self, part, index, &|_, r, c| residue(matrix, r, c)))
            }
        }
    }

    /// Bytes of the prepared form.
    pub fn memory(&self) -> usize {
        let numbers: usize = self
            .parts
            .iter()
            .flat_map(|p| &p.groups)
            .map(|g| g.weights.len())
            .sum();
        4 * numbers + self.streamed.as_ref().map_or(0, |m| 2 * m.data().len())
    }

    /// The worst-case noise of a product, at all data primes.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How inputs have to be cut: what the client encrypts by.
    pub fn input_chunks(&self) -> &Chunks {
        &self.inputs
    }
}

fn residue(matrix: &Matrix<i16>, r: usize, c: usize) -> u64 {
    modulus::from_signed(matrix.get(r, c).into())
}

/// Worst-case noise of a part: every term grows by the weight, every giant step is switched.
fn bound(params: &Params, layout: &Layout, part: &Part, giants: usize) -> f64 {
    let terms = (part.inputs.len() * layout.baby_steps() * giants) as f64;
    let switched = noise::key_switch(params);
    terms * noise::growth(2 * layout.period()) * (noise::fresh() + switched)
        + giants as f64 * (switched + noise::rounding(params))
        + noise::rounding(params)
}

/// How the kernel sees weights of a layout.
pub(crate) fn runs(params: &Params, layout: &Layout) -> Runs {
    Runs::new(params.degree(), params.degree() / (2 * layout.period()))
}

/// Encodes diagonals, with the tables and buffers for it.
pub(crate) struct Encoder {
    params: Arc<Params>,
    slots: Slots,
    ntts: Vec<Ntt>,
    runs: Runs,
    values: Vec<u64>,
    coefficients: Vec<u64>,
    signed: Vec<i64>,
    limb: Vec<u32>,
    /// The diagonals of one giant step: `[baby][prime][period]`.
    tile: Vec<u32>,
}

impl Encoder {
    fn new(params: &Arc<Params>, layout: &Layout) -> Self {
        let degree = 2 * layout.period();
        let ntts = (0..params.all_primes())
            .map(|j| Ntt::new(params.prime(j), degree, params.simd()))
            .collect();
        Self {
            params: params.clone(),
            slots: Slots::new(degree),
            ntts,
            runs: runs(params, layout),
            values: vec![0; degree],
            coefficients: vec![0; degree],
            signed: vec![0; degree],
            limb: vec![0; degree],
            tile: vec![0; layout.baby_steps() * params.all_primes() * layout.period()],
        }
    }

    /// The weights of one group.
    fn group(
        &mut self,
        plan: &PreparedWeights,
        part: &PreparedPart,
        index: usize,
        weight: &impl Fn(usize, usize, usize) -> u64,
    ) -> Vec<u32> {
        let (layout, range) = (&plan.layout, part.groups[index].inputs.clone());
        let (baby, period, giants) = (layout.baby_steps(), layout.period(), part.giants.len());
        let (count, terms) = (part.part.outputs.len() * giants, range.len() * baby);
        let mut weights = vec![0; self.params.all_primes() * period * count * terms];
        for (i, input) in range.enumerate() {
            for (o, output) in part.part.outputs.clone().enumerate() {
                let (ins, outs) = (plan.inputs.columns(input), plan.outputs.columns(output));
                for (g, giant) in part.giants.clone().enumerate() {
                    let step = giant * baby as i32;
                    for b in 0..baby {
                        self.diagonal(b, period, step, |f| {
                            let from = layout.source(f, step + b as i32)?;
                            if from >= ins.len() || f >= outs.len() {
                                return None;
                            }
                            let (block, r, c) =
                                plan.shape.entry(ins.start + from, outs.start + f)?;
                            Some(weight(block, r, c))
                        });
                    }
                    let place = Place {
                        output: o * giants + g,
                        outputs: count,
                        term: i * baby,
                        terms,
                    };
                    self.place(baby, period, place, &mut weights);
                }
            }
        }
        weights
    }

    /// Encodes one diagonal, rotated back by `step`, as baby step `b` of the tile.
    fn diagonal(
        &mut self,
        b: usize,
        period: usize,
        step: i32,
        entry: impl Fn(usize) -> Option<u64>,
    ) {
        let all = self.ntts.len();
        let tile = &mut self.tile[b * all * period..][..all * period];
        self.values.fill(0);
        let (row0, row1) = self.values.split_at_mut(period);
        let mut any = false;
        for f in 0..period {
            if let Some(w) = entry(f) {
                any = true;
                row0[(f as i32 + step).rem_euclid(period as i32) as usize] = w;
            }
        }
        if !any {
            tile.fill(0);
            return;
        }
        row1.copy_from_slice(row0);
        self.slots.encode(&self.values, &mut self.coefficients);
        for (s, &c) in self.signed.iter_mut().zip(&self.coefficients) {
            *s = modulus::to_signed(c);
        }
        for (ntt, out) in self.ntts.iter().zip(tile.chunks_exact_mut(period)) {
            let prime = ntt.prime();
            let unit = prime.shoup(prime.to_montgomery(1));
            elementwise::lift(
                self.params.simd(),
                prime,
                &mut self.limb,
                &self.signed,
                unit,
            );
            ntt.forward(&mut self.limb);
            out.copy_from_slice(&self.limb[..period]);
        }
    }

    /// Copies a tile of baby steps to where the kernel reads it: neighbours in memory for each
    /// value, so that whole cache lines are written.
    fn place(&self, baby: usize, period: usize, place: Place, out: &mut [u32]) {
        let (per, groups, all) = (self.runs.per_block(), self.runs.groups(), self.ntts.len());
        for j in 0..all {
            for group in 0..groups {
                let at = (((j * groups + group) * place.outputs + place.output) * place.terms
                    + place.term)
                    * per;
                let out = &mut out[at..at + baby * per];
                for (b, out) in out.chunks_exact_mut(per).enumerate() {
                    let from = (b * all + j) * period + group * per;
                    out.copy_from_slice(&self.tile[from..from + per]);
                }
            }
        }
    }
}

/// Where the diagonals of a giant step go among those of their group.
#[derive(Clone, Copy)]
struct Place {
    output: usize,
    outputs: usize,
    term: usize,
    terms: usize,
}

/// Rotations of a direct product, without baby and giant steps, for each input ciphertext: one for
/// each diagonal that is not the main one. This is the count of the paper's claim.
pub fn direct_rotations(layout: &Layout, width_in: usize, width_out: usize) -> usize {
    match layout.packing() {
        Packing::TokensFirst => width_in + width_out - 2,
        Packing::FeaturesFirst => layout.period() - 1,
    }
}
