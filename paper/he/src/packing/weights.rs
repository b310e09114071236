//! Weights prepared for products: diagonals of the matrix, and when they are encoded.
//!
//! Diagonal `r` of a chunk pair has at feature `f` the weight from input feature `f + r` to output
//! feature `f`. It is periodic along the rows and the same in both, so as a polynomial it lives in
//! the subring of `X^(N/2·period)` and is fixed by `X -> X^-1`: `period` coefficients and, for each
//! prime, `period` values, 1/32 of a whole transform for 30 tokens (`folded`).
//!
//! Baby-step giant-step: `r = g·B + b`. The product is `Σ_g rot_gB(Σ_b w_gb ⊙ rot_b(x))` with
//! `w_gb` the diagonal rotated back by `gB`. The outer sum's rotations are the giant steps.
//!
//! Values of all primes take `4·(L+1)·period` bytes a diagonal: 33 MB for 768×768 and 30 tokens,
//! 1.3 GB for the embedding. Where that does not fit, [`PreparedWeights::streamed`] keeps the
//! matrix itself (two bytes a weight) and encodes each group when it is used (`encode`), which
//! makes a product 1.4 to 1.9 times as long.

use crate::error::HeError;
use crate::noise;
use crate::packing::chunks::{BlockShape, Chunks, Part};
use crate::packing::encode::{Coefficients, Encoder};
use crate::packing::layout::Layout;
use crate::params::Params;
use primer_lattice::kernel::weighted::Runs;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_rlwe::error::{HeError as Common, agree, in_range};
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroize;

/// Terms (rotated inputs) that are summed at once: both halves of a block of them fill half of the
/// first-level cache.
const GROUP_TERMS: usize = 128;

/// A weight matrix ready for products in one layout.
pub(crate) struct PreparedWeights {
    pub(crate) params: Arc<Params>,
    pub(crate) layout: Layout,
    pub(crate) shape: BlockShape,
    pub(crate) inputs: Chunks,
    pub(crate) outputs: Chunks,
    pub(crate) parts: Vec<PreparedPart>,
    pub(crate) stored: Stored,
    noise: f64,
}

/// Where the numbers of a product come from.
pub(crate) enum Stored {
    /// Values of each part and group, `[prime][kernel group][output, giant][input, baby][…]`.
    Values(Vec<Vec<Vec<u32>>>),
    /// The matrix, whose diagonals are encoded at every use.
    Matrix(Matrix<i16>),
}

impl Drop for Stored {
    fn drop(&mut self) {
        // Weights are the server's secret, and blocks may be masks of one inference.
        match self {
            Self::Values(parts) => parts.iter_mut().flatten().for_each(|group| group.zeroize()),
            Self::Matrix(matrix) => matrix.data_mut().zeroize(),
        }
    }
}

pub(crate) struct PreparedPart {
    pub(crate) part: Part,
    pub(crate) giants: Range<i32>,
    /// Input chunks that are rotated and summed at once.
    pub(crate) groups: Vec<Range<usize>>,
}

impl PreparedWeights {
    /// Prepares a dense matrix of small signed weights: `inputs` rows, `outputs` columns.
    ///
    /// # Errors
    /// If the noise of the product would not fit.
    pub(crate) fn dense(
        params: &Arc<Params>,
        layout: &Layout,
        weights: &Matrix<i16>,
    ) -> Result<Self, HeError> {
        let shape = BlockShape::dense(weights.rows(), weights.cols());
        Self::new(params, layout, shape, |_, r, c| residue(weights, r, c))
    }

    /// Keeps a dense matrix of small signed weights that is encoded anew for each product.
    ///
    /// # Errors
    /// If the noise of the product would not fit.
    pub(crate) fn streamed(
        params: &Arc<Params>,
        layout: &Layout,
        weights: Matrix<i16>,
    ) -> Result<Self, HeError> {
        let shape = BlockShape::dense(weights.rows(), weights.cols());
        let mut prepared = Self::plan(params, layout, shape)?;
        prepared.stored = Stored::Matrix(weights);
        Ok(prepared)
    }

    /// Counts the bytes that [`PreparedWeights::dense`] would take for a shape.
    ///
    /// # Errors
    /// If the shape is empty or the noise of the product would not fit.
    pub(crate) fn dense_bytes(
        params: &Arc<Params>,
        layout: &Layout,
        shape: BlockShape,
    ) -> Result<usize, HeError> {
        let plan = Self::plan(params, layout, shape)?;
        let diagonals = plan.parts.iter().map(|part| {
            let (part, giants) = (&part.part, part.giants.len());
            part.inputs.len() * layout.baby_steps() * part.outputs.len() * giants
        });
        Ok(4 * params.all_primes() * layout.period() * diagonals.sum::<usize>())
    }

    /// Prepares blocks along the diagonal, entries any residues modulo p: a head each, for products
    /// with the server's masks. Slot-packed weights cost the same noise at every size.
    ///
    /// # Errors
    /// If the blocks differ in shape or the noise of the product would not fit.
    pub(crate) fn blocks(
        params: &Arc<Params>,
        layout: &Layout,
        blocks: &[Matrix<u64>],
    ) -> Result<Self, HeError> {
        let first = blocks.first().ok_or(Common::Range {
            what: "number of blocks",
            value: 0,
            max: usize::MAX,
        })?;
        for block in blocks {
            agree("rows of the blocks", block.rows(), first.rows())?;
            agree("columns of the blocks", block.cols(), first.cols())?;
        }
        let shape = BlockShape::blocks(blocks.len(), first.rows(), first.cols());
        Self::new(params, layout, shape, |b, r, c| blocks[b].get(r, c))
    }

    /// Prepares weights given by a function of block, row and column.
    ///
    /// # Errors
    /// If the shape is empty or the noise of the product would not fit.
    pub(crate) fn new(
        params: &Arc<Params>,
        layout: &Layout,
        shape: BlockShape,
        weight: impl Fn(usize, usize, usize) -> u64,
    ) -> Result<Self, HeError> {
        let mut prepared = Self::plan(params, layout, shape)?;
        let mut encoder = Encoder::new(params, layout);
        let mut coefficients = Coefficients::default();
        let parts = prepared.parts.iter().map(|part| {
            let groups = (0..part.groups.len()).map(|index| {
                encoder.coefficients(&prepared, part, index, &weight, &mut coefficients);
                let terms = part.groups[index].len() * layout.baby_steps();
                let mut values = vec![0; params.all_primes() * encoder.len(&coefficients)];
                let limbs = values.chunks_exact_mut(encoder.len(&coefficients));
                for (j, values) in limbs.enumerate() {
                    encoder.modulo(j, &coefficients, terms, values);
                }
                values
            });
            groups.collect()
        });
        let values = parts.collect();
        coefficients.wipe();
        prepared.stored = Stored::Values(values);
        Ok(prepared)
    }

    /// Returns the structure of a product, with its noise checked and no weights yet.
    pub(crate) fn plan(
        params: &Arc<Params>,
        layout: &Layout,
        shape: BlockShape,
    ) -> Result<Self, HeError> {
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
            let groups = groups.map(|first| first..(first + per_group).min(end));
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
            stored: Stored::Values(Vec::new()),
            noise,
        })
    }

    /// Counts the bytes of the prepared form.
    pub(crate) fn memory(&self) -> usize {
        match &self.stored {
            Stored::Values(parts) => 4 * parts.iter().flatten().map(Vec::len).sum::<usize>(),
            Stored::Matrix(matrix) => 2 * matrix.data().len(),
        }
    }

    /// Returns the worst-case noise of a product, at all data primes.
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    /// Returns how inputs have to be cut: what the client encrypts by.
    pub(crate) fn input_chunks(&self) -> &Chunks {
        &self.inputs
    }
}

pub(crate) fn residue(matrix: &Matrix<i16>, r: usize, c: usize) -> u64 {
    modulus::from_signed(matrix.get(r, c).into())
}

/// Bounds the noise of a part: every term grows by the weight, every giant step is switched.
fn bound(params: &Params, layout: &Layout, part: &Part, giants: usize) -> f64 {
    let terms = (part.inputs.len() * layout.baby_steps() * giants) as f64;
    let switched = noise::key_switch(params);
    terms * noise::growth(2 * layout.period()) * (noise::fresh() + switched)
        + giants as f64 * (switched + noise::rounding(params))
        + noise::rounding(params)
}

/// Returns how the kernel sees weights of a layout.
pub(crate) fn runs(params: &Params, layout: &Layout) -> Runs {
    Runs::new(params.degree(), params.degree() / (2 * layout.period()))
}
