//! Layouts: which slot holds which feature of which token.
//!
//! A ciphertext has two rows of `N/2` slots. A row is cut into *cells* of `period` slots; a cell holds
//! consecutive features of one token (a *chunk* of its columns), the rest of the cell is unused.
//!
//! * **Tokens-first**: each of the `T` cells of a ciphertext belongs to another token, so one
//!   ciphertext holds one chunk of all tokens. `T` is the number of tokens rounded up to a power
//!   of two, and the period is `N/T`. More than 256 tokens are cut into runs of that many, each with its own
//!   ciphertexts.
//! * **Features-first**: all cells hold the same chunk of one token, so each token has its own
//!   ciphertexts. The period is the width of the model rounded up to a power of two (`N/2` at
//!   most), so that one token's features fill a ciphertext; wider matrices take several.
//!
//! In both, weights do not depend on the cell: they are periodic along the rows and equal in both
//! rows, which makes them polynomials of a small subring ([`crate::packing::weights`]).
//!
//! A rotation by `r` brings feature `f + r` to where feature `f` was. Features-first cells are copies, so
//! the rotation is cyclic and `period` diagonals of the matrix do. In tokens-first a rotation
//! carries the features that leave a cell into the neighbour's; there, diagonals `r` and
//! `r - period` complete each other, and about `2·period` do.

use crate::error::HeError;
use crate::params::Params;
use std::ops::Range;

/// Fewest tokens that a tokens-first ciphertext is made for: with fewer the cells would be wider
/// than the matrices are.
const MIN_CELLS: usize = 16;
/// The smallest period: twice that is the smallest transform.
const MIN_PERIOD: usize = 32;
/// Most tokens of a matrix.
const MAX_TOKENS: usize = 1 << 16;

/// The two packings of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One token's features fill a ciphertext.
    FeaturesFirst,
    /// One feature of all tokens, then the next.
    TokensFirst,
}

/// Where matrices of a number of tokens lie in slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    packing: Packing,
    row: usize,
    tokens: usize,
    period: usize,
}

impl Layout {
    /// The tokens-first layout for a number of tokens.
    ///
    /// # Errors
    /// If there are no tokens or more than 65,536.
    pub fn tokens_first(params: &Params, tokens: usize) -> Result<Self, HeError> {
        in_range("number of tokens", tokens, MAX_TOKENS)?;
        let cells = tokens
            .next_power_of_two()
            .clamp(MIN_CELLS, params.degree() / MIN_PERIOD);
        Ok(Self {
            packing: Packing::TokensFirst,
            row: params.row(),
            tokens,
            period: params.degree() / cells,
        })
    }

    /// The features-first layout for a model of `width` features: the narrower side of its matrices.
    ///
    /// # Errors
    /// If there are no tokens or no columns.
    pub fn features_first(params: &Params, tokens: usize, width: usize) -> Result<Self, HeError> {
        in_range("number of tokens", tokens, MAX_TOKENS)?;
        in_range("width", width, 1 << 24)?;
        Ok(Self {
            packing: Packing::FeaturesFirst,
            row: params.row(),
            tokens,
            period: width.next_power_of_two().clamp(MIN_PERIOD, params.row()),
        })
    }

    /// Which packing.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Slots of a cell.
    pub fn period(&self) -> usize {
        self.period
    }

    /// Cells of a ciphertext.
    pub fn cells(&self) -> usize {
        2 * self.row / self.period
    }

    /// The first slot of a token's cell; in features-first, of the first copy.
    pub(crate) fn cell(&self, token: usize) -> usize {
        match self.packing {
            Packing::TokensFirst => token % self.cells() * self.period,
            Packing::FeaturesFirst => 0,
        }
    }

    /// The ciphertexts of a message that hold a token: one run of chunks for each.
    pub(crate) fn runs(&self) -> usize {
        match self.packing {
            Packing::TokensFirst => self.tokens.div_ceil(self.cells()),
            Packing::FeaturesFirst => self.tokens,
        }
    }

    /// The tokens of one run.
    pub(crate) fn tokens_of_run(&self, run: usize) -> Range<usize> {
        match self.packing {
            Packing::TokensFirst => {
                let cells = self.cells();
                run * cells..((run + 1) * cells).min(self.tokens)
            }
            Packing::FeaturesFirst => run..run + 1,
        }
    }

    /// Baby steps: rotations of the inputs, 0 among them.
    pub fn baby_steps(&self) -> usize {
        let diagonals = match self.packing {
            Packing::TokensFirst => 2 * self.period,
            Packing::FeaturesFirst => self.period,
        };
        1 << diagonals.trailing_zeros().div_ceil(2)
    }

    /// Giant steps for chunks of these widths: multiples of [`Layout::baby_steps`] by which sums
    /// are rotated.
    pub(crate) fn giant_steps(&self, width_in: usize, width_out: usize) -> Range<i32> {
        let baby = self.baby_steps();
        match self.packing {
            // Diagonals -(width_out - 1) to width_in - 1.
            Packing::TokensFirst => {
                -((width_out - 1).div_ceil(baby) as i32)..((width_in - 1) / baby) as i32 + 1
            }
            Packing::FeaturesFirst => 0..(self.period / baby) as i32,
        }
    }

    /// The input feature that diagonal `r` brings to output feature `f`, if any.
    pub(crate) fn source(&self, f: usize, r: i32) -> Option<usize> {
        let from = f as i32 + r;
        match self.packing {
            Packing::TokensFirst => (0..self.period as i32)
                .contains(&from)
                .then_some(from as usize),
            Packing::FeaturesFirst => Some(from.rem_euclid(self.period as i32) as usize),
        }
    }

    /// Output features that diagonal `r` may bring something to, for chunks of these widths.
    pub(crate) fn reached(&self, r: i32, width_in: usize, width_out: usize) -> Range<usize> {
        match self.packing {
            Packing::TokensFirst => {
                let end = (width_in as i32 - r).clamp(0, width_out as i32) as usize;
                (-r).clamp(0, end as i32) as usize..end
            }
            Packing::FeaturesFirst => 0..width_out,
        }
    }

    /// Every rotation that products in this layout use: what the client makes keys for.
    pub fn rotations(&self) -> Vec<i32> {
        let baby = self.baby_steps() as i32;
        let giants = self.giant_steps(self.period, self.period);
        (1..baby)
            .chain(giants.filter(|&g| g != 0).map(|g| g * baby))
            .collect()
    }
}

/// Columns of a matrix cut into the chunks that ciphertexts hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    columns: Vec<Range<usize>>,
}

impl Chunks {
    /// `cols` columns in the fewest chunks, all about as wide: narrow chunks have fewer diagonals.
    pub fn even(layout: &Layout, cols: usize) -> Self {
        let count = cols.div_ceil(layout.period).max(1);
        let width = cols.div_ceil(count);
        let columns = (0..count)
            .map(|i| (i * width).min(cols)..((i + 1) * width).min(cols))
            .filter(|r| !r.is_empty())
            .collect();
        Self { columns }
    }

    /// `blocks` groups of `cols` columns, `together` groups in a chunk.
    fn grouped(blocks: usize, cols: usize, together: usize) -> Self {
        let columns = (0..blocks)
            .step_by(together)
            .map(|b| b * cols..(b + together).min(blocks) * cols)
            .collect();
        Self { columns }
    }

    /// `blocks` groups of `cols` columns, each in chunks of its own.
    fn separate(layout: &Layout, blocks: usize, cols: usize) -> Self {
        let one = Self::even(layout, cols);
        let columns = (0..blocks)
            .flat_map(|b| {
                one.columns
                    .iter()
                    .map(move |r| b * cols + r.start..b * cols + r.end)
            })
            .collect();
        Self { columns }
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns of one chunk.
    pub fn columns(&self, i: usize) -> Range<usize> {
        self.columns[i].clone()
    }

    /// Columns in all.
    pub fn total(&self) -> usize {
        self.columns.last().map_or(0, |r| r.end)
    }

    /// Fails unless columns are cut in the same way.
    pub(crate) fn agree(&self, other: &Self) -> Result<(), HeError> {
        crate::error::agree("columns of the input", self.total(), other.total())?;
        crate::error::agree("chunks of the input", self.len(), other.len())?;
        for (ours, theirs) in self.columns.iter().zip(&other.columns) {
            crate::error::agree("end of a chunk of the input", ours.end, theirs.end)?;
        }
        Ok(())
    }

    /// The widest chunk of some.
    pub(crate) fn widest(&self, chunks: Range<usize>) -> usize {
        self.columns[chunks]
            .iter()
            .map(Range::len)
            .max()
            .unwrap_or(0)
    }
}

/// The shape of a weight matrix: `blocks` matrices along the diagonal, one for a dense matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along the diagonal (heads).
    pub blocks: usize,
    /// Rows of a block: columns of the input that it reads.
    pub inputs: usize,
    /// Columns of a block: columns of the output that it writes.
    pub outputs: usize,
}

/// Chunks that belong together: each output chunk is a sum over all input chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) inputs: Range<usize>,
    pub(crate) outputs: Range<usize>,
}

impl Shape {
    /// A dense matrix.
    pub const fn dense(inputs: usize, outputs: usize) -> Self {
        Self {
            blocks: 1,
            inputs,
            outputs,
        }
    }

    /// Equal blocks along the diagonal.
    pub const fn blocks(blocks: usize, inputs: usize, outputs: usize) -> Self {
        Self {
            blocks,
            inputs,
            outputs,
        }
    }

    /// Blocks that share a chunk, if they fit one.
    fn together(&self, layout: &Layout) -> usize {
        layout.period / self.inputs.max(self.outputs).max(1)
    }

    /// How the columns of the input are cut.
    pub fn input_chunks(&self, layout: &Layout) -> Chunks {
        self.chunks(layout, self.inputs)
    }

    /// How the columns of the output are cut.
    pub fn output_chunks(&self, layout: &Layout) -> Chunks {
        self.chunks(layout, self.outputs)
    }

    fn chunks(&self, layout: &Layout, cols: usize) -> Chunks {
        match self.together(layout) {
            _ if self.blocks == 1 => Chunks::even(layout, cols),
            0 => Chunks::separate(layout, self.blocks, cols),
            together => Chunks::grouped(self.blocks, cols, together),
        }
    }

    pub(crate) fn parts(&self, layout: &Layout) -> Vec<Part> {
        let (inputs, outputs) = (
            self.input_chunks(layout).len(),
            self.output_chunks(layout).len(),
        );
        let parts = if self.blocks > 1 && self.together(layout) > 0 {
            inputs
        } else {
            self.blocks
        };
        let (ins, outs) = (inputs / parts, outputs / parts);
        (0..parts)
            .map(|i| Part {
                inputs: i * ins..(i + 1) * ins,
                outputs: i * outs..(i + 1) * outs,
            })
            .collect()
    }

    /// The block entry at an input and an output column of the whole matrix: block, row, column.
    pub(crate) fn entry(&self, input: usize, output: usize) -> Option<(usize, usize, usize)> {
        if self.blocks == 1 {
            return Some((0, input, output));
        }
        let (block, row) = (input / self.inputs, input % self.inputs);
        (output / self.outputs == block).then(|| (block, row, output % self.outputs))
    }
}

pub(crate) fn in_range(what: &'static str, value: usize, max: usize) -> Result<(), HeError> {
    if (1..=max).contains(&value) {
        Ok(())
    } else {
        Err(HeError::Range { what, value, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bert_base_shapes() {
        let params = Params::products();
        let layout = Layout::tokens_first(&params, 30).unwrap();
        assert_eq!(
            (layout.period(), layout.cells(), layout.baby_steps()),
            (256, 32, 32)
        );
        assert_eq!(layout.giant_steps(256, 256), -8..8);
        assert_eq!(layout.rotations().len(), 31 + 15);
        let shape = Shape::dense(768, 3072);
        assert_eq!(shape.input_chunks(&layout).len(), 3);
        assert_eq!(shape.output_chunks(&layout).len(), 12);
        assert_eq!(Chunks::even(&layout, 30522).len(), 120);
        assert_eq!(Chunks::even(&layout, 384).columns(1), 192..384);
        // Heads of attention share chunks: four of 64 columns.
        let heads = Shape::blocks(12, 64, 30);
        assert_eq!(heads.input_chunks(&layout), Chunks::even(&layout, 768));
        assert_eq!(heads.output_chunks(&layout).columns(1), 120..240);
        assert_eq!(heads.parts(&layout).len(), 3);
        // At 128 tokens a head is wider than a cell.
        let wide = Layout::tokens_first(&params, 128).unwrap();
        let heads = Shape::blocks(12, 64, 128);
        assert_eq!(heads.parts(&wide).len(), 12);
        assert_eq!(heads.output_chunks(&wide).len(), 24);
        let features = Layout::features_first(&params, 30, 768).unwrap();
        assert_eq!((features.period(), features.baby_steps()), (1024, 32));
        assert_eq!(features.rotations().len(), 31 + 31);
        assert!(Layout::tokens_first(&params, 0).is_err());
        assert!(Layout::tokens_first(&params, MAX_TOKENS + 1).is_err());
        // Beyond 256 tokens a matrix is cut into runs of rows.
        for (tokens, runs) in [(256, 1), (257, 2), (512, 2), (513, 3)] {
            let layout = Layout::tokens_first(&params, tokens).unwrap();
            assert_eq!((layout.period(), layout.runs()), (MIN_PERIOD, runs));
            let rows = (0..runs).flat_map(|run| layout.tokens_of_run(run));
            assert!(rows.eq(0..tokens));
        }
    }
}
