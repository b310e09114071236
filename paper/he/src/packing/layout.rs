//! Layouts: which slot holds which feature of which token.
//!
//! A ciphertext has two rows of `N/2` slots. A row is cut into *cells* of `period` slots; a cell
//! holds consecutive features of one token (a *chunk* of its columns), the rest of the cell is
//! unused.
//!
//! * **Tokens-first**: each of the `T` cells of a ciphertext belongs to another token, so one
//!   ciphertext holds one chunk of all tokens. `T` is the number of tokens rounded up to a power of
//!   two, and the period is `N/T`. More than 256 tokens are cut into runs of that many, each with
//!   its own ciphertexts.
//! * **Features-first**: all cells hold the same chunk of one token, so each token has its own
//!   ciphertexts. The period is the width of the model rounded up to a power of two (`N/2` at
//!   most), so that one token's features fill a ciphertext; wider matrices take several.
//!
//! In both, weights do not depend on the cell: they are periodic along the rows and equal in both
//! rows, which makes them polynomials of a small subring ([`crate::packing::weights`]).
//!
//! A rotation by `r` brings feature `f + r` to where feature `f` was. Features-first cells are
//! copies, so the rotation is cyclic and `period` diagonals of the matrix do. In tokens-first a
//! rotation carries the features that leave a cell into the neighbour's; there, diagonals `r` and
//! `r - period` complete each other, and about `2·period` do.

use crate::params::{Params, row};
use primer_rlwe::error::{HeError, in_range};
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
pub(crate) enum Packing {
    /// One token's features fill a ciphertext.
    FeaturesFirst,
    /// One feature of all tokens, then the next.
    TokensFirst,
}

/// Where matrices of a number of tokens lie in slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    packing: Packing,
    row: usize,
    tokens: usize,
    period: usize,
}

impl Layout {
    /// Returns the tokens-first layout for a number of tokens.
    ///
    /// # Errors
    /// If there are no tokens or more than 65,536.
    pub(crate) fn tokens_first(params: &Params, tokens: usize) -> Result<Self, HeError> {
        in_range("number of tokens", tokens, MAX_TOKENS)?;
        let cells = tokens
            .next_power_of_two()
            .clamp(MIN_CELLS, params.degree() / MIN_PERIOD);
        Ok(Self {
            packing: Packing::TokensFirst,
            row: row(params),
            tokens,
            period: params.degree() / cells,
        })
    }

    /// Returns the features-first layout for a model of `width` features: the narrower side of its
    /// matrices.
    ///
    /// # Errors
    /// If there are no tokens or no columns.
    pub(crate) fn features_first(
        params: &Params,
        tokens: usize,
        width: usize,
    ) -> Result<Self, HeError> {
        in_range("number of tokens", tokens, MAX_TOKENS)?;
        in_range("width", width, 1 << 24)?;
        Ok(Self {
            packing: Packing::FeaturesFirst,
            row: row(params),
            tokens,
            period: width.next_power_of_two().clamp(MIN_PERIOD, row(params)),
        })
    }

    /// Returns the packing.
    pub(crate) fn packing(&self) -> Packing {
        self.packing
    }

    /// Counts the tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Counts the slots of a cell.
    pub(crate) fn period(&self) -> usize {
        self.period
    }

    /// Counts the cells of a ciphertext.
    pub(crate) fn cells(&self) -> usize {
        2 * self.row / self.period
    }

    /// Returns the first slot of a token's cell; in features-first, of the first copy.
    pub(crate) fn cell(&self, token: usize) -> usize {
        match self.packing {
            Packing::TokensFirst => token % self.cells() * self.period,
            Packing::FeaturesFirst => 0,
        }
    }

    /// Counts the runs of a message: ciphertexts, one for each chunk, that hold the same tokens.
    pub(crate) fn runs(&self) -> usize {
        match self.packing {
            Packing::TokensFirst => self.tokens.div_ceil(self.cells()),
            Packing::FeaturesFirst => self.tokens,
        }
    }

    /// Returns the tokens of one run.
    pub(crate) fn tokens_of_run(&self, run: usize) -> Range<usize> {
        match self.packing {
            Packing::TokensFirst => {
                let cells = self.cells();
                run * cells..((run + 1) * cells).min(self.tokens)
            }
            Packing::FeaturesFirst => run..run + 1,
        }
    }

    /// Counts the baby steps: rotations of the inputs, 0 among them.
    pub(crate) fn baby_steps(&self) -> usize {
        let diagonals = match self.packing {
            Packing::TokensFirst => 2 * self.period,
            Packing::FeaturesFirst => self.period,
        };
        1 << diagonals.trailing_zeros().div_ceil(2)
    }

    /// Returns the giant steps for chunks of these widths: multiples of [`Layout::baby_steps`] by
    /// which sums are rotated.
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

    /// Returns the input feature that diagonal `r` brings to output feature `f`, if any.
    pub(crate) fn source(&self, f: usize, r: i32) -> Option<usize> {
        let from = f as i32 + r;
        match self.packing {
            Packing::TokensFirst => (0..self.period as i32)
                .contains(&from)
                .then_some(from as usize),
            Packing::FeaturesFirst => Some(from.rem_euclid(self.period as i32) as usize),
        }
    }

    /// Returns the output features that diagonal `r` may bring something to, for chunks of these
    /// widths.
    pub(crate) fn reached(&self, r: i32, width_in: usize, width_out: usize) -> Range<usize> {
        match self.packing {
            Packing::TokensFirst => {
                let end = (width_in as i32 - r).clamp(0, width_out as i32) as usize;
                (-r).clamp(0, end as i32) as usize..end
            }
            Packing::FeaturesFirst => 0..width_out,
        }
    }

    /// Returns every rotation that products in this layout use: what the client makes keys for.
    pub(crate) fn rotations(&self) -> Vec<i32> {
        let baby = self.baby_steps() as i32;
        let giants = self.giant_steps(self.period, self.period);
        (1..baby)
            .chain(giants.filter(|&g| g != 0).map(|g| g * baby))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::chunks::{BlockShape, Chunks};
    use crate::params;

    #[test]
    fn bert_base_shapes() {
        let params = params::products();
        let layout = Layout::tokens_first(&params, 30).unwrap();
        assert_eq!(
            (layout.period(), layout.cells(), layout.baby_steps()),
            (256, 32, 32)
        );
        assert_eq!(layout.giant_steps(256, 256), -8..8);
        assert_eq!(layout.rotations().len(), 31 + 15);
        let shape = BlockShape::dense(768, 3072);
        assert_eq!(shape.input_chunks(&layout).len(), 3);
        assert_eq!(shape.output_chunks(&layout).len(), 12);
        assert_eq!(Chunks::even(&layout, 30522).len(), 120);
        assert_eq!(Chunks::even(&layout, 384).columns(1), 192..384);
        // Heads of attention share chunks: four of 64 columns.
        let heads = BlockShape::blocks(12, 64, 30);
        assert_eq!(heads.input_chunks(&layout), Chunks::even(&layout, 768));
        assert_eq!(heads.output_chunks(&layout).columns(1), 120..240);
        assert_eq!(heads.parts(&layout).len(), 3);
        // At 128 tokens a head is wider than a cell.
        let wide = Layout::tokens_first(&params, 128).unwrap();
        let heads = BlockShape::blocks(12, 64, 128);
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
