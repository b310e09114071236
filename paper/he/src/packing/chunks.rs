//! Chunks: how the columns of a matrix are cut into ciphertexts.
//!
//! A cell holds `period` features and no more, so wider matrices take several ciphertexts, a
//! *chunk* of columns each. Columns are cut evenly, as narrow chunks have fewer diagonals. Matrices
//! with heads are cut so that a head meets as few chunks as possible: heads that fit a cell share
//! one, and a head that does not has chunks of its own.

use crate::packing::layout::Layout;
use primer_rlwe::error::{HeError, agree};
use std::ops::Range;

/// Columns of a matrix cut into the chunks that ciphertexts hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunks {
    columns: Vec<Range<usize>>,
}

impl Chunks {
    /// Cuts `cols` columns into the fewest chunks, all about as wide: narrow chunks have fewer
    /// diagonals.
    pub(crate) fn even(layout: &Layout, cols: usize) -> Self {
        let count = cols.div_ceil(layout.period()).max(1);
        let width = cols.div_ceil(count);
        let columns = (0..count)
            .map(|i| (i * width).min(cols)..((i + 1) * width).min(cols))
            .filter(|r| !r.is_empty())
            .collect();
        Self { columns }
    }

    /// Cuts `blocks` groups of `cols` columns, `together` groups in a chunk.
    fn grouped(blocks: usize, cols: usize, together: usize) -> Self {
        let columns = (0..blocks)
            .step_by(together)
            .map(|b| b * cols..(b + together).min(blocks) * cols)
            .collect();
        Self { columns }
    }

    /// Cuts `blocks` groups of `cols` columns, each in chunks of its own.
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

    /// Counts the chunks.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns the columns of one chunk.
    pub(crate) fn columns(&self, i: usize) -> Range<usize> {
        self.columns[i].clone()
    }

    /// Counts all columns.
    pub(crate) fn total(&self) -> usize {
        self.columns.last().map_or(0, |r| r.end)
    }

    /// Fails unless columns are cut in the same way.
    pub(crate) fn agree(&self, other: &Self) -> Result<(), HeError> {
        agree("columns of the input", self.total(), other.total())?;
        agree("chunks of the input", self.len(), other.len())?;
        for (ours, theirs) in self.columns.iter().zip(&other.columns) {
            agree("end of a chunk of the input", ours.end, theirs.end)?;
        }
        Ok(())
    }

    /// Returns the columns of the widest chunk of some.
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
pub(crate) struct BlockShape {
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

impl BlockShape {
    /// Returns the shape of a dense matrix.
    pub(crate) const fn dense(inputs: usize, outputs: usize) -> Self {
        Self {
            blocks: 1,
            inputs,
            outputs,
        }
    }

    /// Returns the shape of equal blocks along the diagonal.
    pub(crate) const fn blocks(blocks: usize, inputs: usize, outputs: usize) -> Self {
        Self {
            blocks,
            inputs,
            outputs,
        }
    }

    /// Blocks that share a chunk, if they fit one.
    fn together(&self, layout: &Layout) -> usize {
        layout.period() / self.inputs.max(self.outputs).max(1)
    }

    /// Cuts the columns of the input.
    pub(crate) fn input_chunks(&self, layout: &Layout) -> Chunks {
        self.chunks(layout, self.inputs)
    }

    /// Cuts the columns of the output.
    pub(crate) fn output_chunks(&self, layout: &Layout) -> Chunks {
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

    /// Returns the block entry at an input and an output column of the whole matrix: block, row,
    /// column.
    pub(crate) fn entry(&self, input: usize, output: usize) -> Option<(usize, usize, usize)> {
        if self.blocks == 1 {
            return Some((0, input, output));
        }
        let (block, row) = (input / self.inputs, input % self.inputs);
        (output / self.outputs == block).then(|| (block, row, output % self.outputs))
    }
}
