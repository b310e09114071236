//! How a relation is cut, and what flooding has to hide in its answers.

use super::super::method::WeightSize;
use super::super::relation::Relation;
use super::SubringPacker;
use crate::error::HeError;
use crate::params::Params;
use crate::subring::noise::Hidden;
use crate::subring::shape::Blocks;
use primer_ring::modulus::P;

/// How a relation is cut.
pub(super) struct Cut {
    pub(super) blocks: Blocks,
    /// The features of a residual's ciphertext, if there is one.
    pub(super) residual: Option<usize>,
}

impl SubringPacker {
    pub(super) fn cut(&self, params: &Params, relation: &Relation) -> Result<Cut, HeError> {
        let cut = |rows, inputs, outputs| Blocks::choose(params, rows, inputs, outputs);
        let (blocks, residual) = match *relation {
            Relation::Dense {
                rows,
                inputs,
                outputs,
            } => (cut(rows, inputs, outputs), None),
            Relation::Residual {
                rows,
                inputs,
                cols,
                block,
            } => (cut(rows, inputs, cols), Some(block)),
            Relation::Centred { rows, cols } => {
                let blocks = cut(rows, cols, cols);
                (blocks, Some(blocks.stride))
            }
            Relation::Heads { .. }
            | Relation::RowSums { .. }
            | Relation::ScaledRows { .. }
            | Relation::Elementwise { .. } => {
                return Err(HeError::Unsupported {
                    relation: relation.to_string(),
                });
            }
        };
        Ok(Cut { blocks, residual })
    }

    /// What flooding has to hide.
    pub(super) fn hidden(&self, params: &Params, relation: &Relation) -> Result<Hidden, HeError> {
        let (rows, cols) = relation.size();
        let inputs = match *relation {
            Relation::Dense { inputs, .. } => inputs,
            Relation::Residual { inputs, cols, .. } => inputs + cols,
            _ => cols,
        };
        let Cut { blocks, .. } = self.cut(params, relation)?;
        // Noise of all inputs times the weights of all outputs of a block.
        let energy = blocks.width as f64 * self.size.column_energy(inputs);
        Ok(Hidden::new(params, rows * cols, energy))
    }
}

impl WeightSize {
    /// The mean square of a column's length, at most.
    pub(super) fn column_energy(self, inputs: usize) -> f64 {
        match self {
            Self::Columns(length) => (length as f64).powi(2),
            // Two entries of a diagonal term may fall together.
            Self::Residues => (inputs + 3) as f64 * (P as f64 / 2.0).powi(2),
        }
    }
}
