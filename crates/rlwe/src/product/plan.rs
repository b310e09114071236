//! How relations are laid out: heads by slots of the subring, row sums, scaled rows and products of
//! elements by slots of the ring.
//!
//! Answers are split: the server ends with a share instead of choosing a mask. How, and why that
//! tells the client nothing, is in [`crate::split`]. The weights are masks of one inference,
//! uniform modulo p; that is what the odds of a wrong share are computed for.

use super::relation::Relation;
use crate::params::Params;
use crate::split::Split;
use crate::split::heads::HeadShape;
use crate::split::slots::SlotShape;

/// How a relation is laid out.
pub(super) enum Plan {
    Heads(HeadShape),
    Sums(SlotShape),
    /// The number of products in each element of the answer.
    Products(SlotShape, usize),
}

impl Plan {
    /// Returns the plan of a relation.
    pub(super) fn of(params: &Params, relation: &Relation) -> Self {
        match *relation {
            Relation::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => Self::Heads(HeadShape::choose(params, rows, (heads, inputs, outputs))),
            Relation::RowSums { rows, cols } => Self::Sums(SlotShape::new(params, rows, cols)),
            Relation::Hadamard { rows, cols } => {
                Self::Products(SlotShape::new(params, rows, cols), 1)
            }
            Relation::ScaledRows { rows, cols } => {
                Self::Products(SlotShape::new(params, rows, cols), 2)
            }
        }
    }

    /// Returns what the odds of its shares depend on.
    pub(super) fn split(&self, params: &Params) -> Split {
        match self {
            Self::Heads(shape) => shape.split(),
            Self::Sums(shape) => shape.split_sums(params),
            Self::Products(shape, products) => shape.split_products(params, *products),
        }
    }
}
