//! How a relation is laid out, and what flooding has to hide in its answers.

use super::super::method::WeightSize;
use super::super::relation::Relation;
use super::SubringPacker;
use crate::params::Params;
use crate::subring::heads::HeadShape;
use crate::subring::noise::Hidden;
use crate::subring::shape::Blocks;
use crate::subring::slots::SlotShape;
use primer_ring::modulus::P;

/// How a relation is laid out.
pub(super) enum Plan {
    /// By coefficients; the features of a residual's ciphertext, if there is one.
    Blocks(Blocks, Option<usize>),
    Heads(HeadShape),
    Slots(SlotShape),
}

impl SubringPacker {
    pub(super) fn plan(&self, params: &Params, relation: &Relation) -> Plan {
        match *relation {
            Relation::Dense {
                rows,
                inputs,
                outputs,
            } => Plan::Blocks(Blocks::choose(params, rows, inputs, outputs), None),
            Relation::Residual {
                rows,
                inputs,
                cols,
                block,
            } => Plan::Blocks(Blocks::choose(params, rows, inputs, cols), Some(block)),
            Relation::Centred { rows, cols } => {
                let blocks = Blocks::choose(params, rows, cols, cols);
                Plan::Blocks(blocks, Some(blocks.stride))
            }
            Relation::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => Plan::Heads(HeadShape::choose(params, rows, (heads, inputs, outputs))),
            Relation::RowSums { rows, cols }
            | Relation::ScaledRows { rows, cols }
            | Relation::Elementwise { rows, cols } => {
                Plan::Slots(SlotShape::new(params, rows, cols))
            }
        }
    }

    /// What flooding has to hide.
    pub(super) fn hidden(&self, params: &Params, relation: &Relation) -> Hidden {
        let (rows, cols) = relation.size();
        match self.plan(params, relation) {
            Plan::Blocks(blocks, _) => {
                let inputs = match *relation {
                    Relation::Dense { inputs, .. } => inputs,
                    Relation::Residual { inputs, cols, .. } => inputs + cols,
                    _ => cols,
                };
                // Noise of all inputs times the weights of all outputs of a block.
                let energy = blocks.width as f64 * self.size.column_energy(inputs);
                Hidden::new(params, rows * cols, energy)
            }
            Plan::Heads(shape) => {
                let sent = shape.answers() * shape.sent(0).len();
                Hidden::new(params, sent, shape.energy())
            }
            Plan::Slots(shape) => {
                let (answers, products) = match relation {
                    Relation::RowSums { .. } => (shape.lanes.runs(), shape.chunks()),
                    _ => (shape.count(), 2),
                };
                let energy = shape.energy(params, products);
                Hidden::new(params, answers * params.degree(), energy)
            }
        }
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
