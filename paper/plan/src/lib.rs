//! What the schemes as published compute: the encoder's graph with whole functions in circuits.
//!
//! The steps, the shape, the functions and the checks of a plan are those of `primer_plan`. What is
//! here is where these schemes differ from the product, as two designs ([`Form`]):
//!
//! * **Functions are whole.** Softmax is one stop for each layer and an activation is a circuit,
//!   while the product takes both apart into look-ups of short indices. So nothing is gained by
//!   wider values: each has as many bits as in the paper, and no room beyond its margin.
//! * **Products are exact.** They are made by homomorphic encryption and not by hints, so columns
//!   of weights may be of any length, a diagonal's gains and means have scales of their own, and
//!   outputs are as fine as their range allows.
//! * **Positions are a weight of their own**, which the server adds to what the table makes of the
//!   one-hot rows.
//! * **Queries and keys may be merged** ([`Form::Merged`]). With `Q = X·A + 1·aᵀ` and
//!   `K = X·B + 1·bᵀ` for a head, `A`, `B` and the biases folded as `primer_plan::encoder` says,
//!
//!   ```text
//!   Q·Kᵀ = X·(A·Bᵀ)·Xᵀ + 1·(X·B·a)ᵀ + (X·A·b)·1ᵀ + (a·b)·1·1ᵀ
//!   ```
//!
//!   The last two terms are the same for every key of a query, and softmax does not depend on what
//!   is added to a whole row, so they are dropped. What is left is `(X·W + 1·uᵀ)·Xᵀ` with
//!   `W = A·Bᵀ` and `u = B·a`: one step with one rounding instead of two projections, two
//!   requantisations and a product. A padded key is a column like any other.
//!
//! A model is loaded as the product loads it; [`Form::weights`] rewrites its weights, and from
//! there on calibration, integers and plans follow the form by themselves.
#![forbid(unsafe_code)]

mod design;
mod scales;
mod weights;

use primer_plan::design::Design;
use primer_plan::graph::Graph;
use primer_plan::shape::Shape;

/// One of the graphs of the paper's schemes, which compute the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Queries and keys are projected, requantised and multiplied.
    Separate,
    /// Both projections are one matrix for each head, between the input and itself.
    Merged,
}

impl Form {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Separate, Self::Merged];

    /// Returns the name in messages and in what is said of a recipe.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Merged => "merged",
        }
    }

    /// Returns the form as what plans and models are made by.
    pub const fn design(self) -> &'static dyn Design {
        match self {
            Self::Separate => &Self::Separate,
            Self::Merged => &Self::Merged,
        }
    }

    /// Makes the graph of an encoder over a padded number of tokens.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn graph(self, shape: &Shape, tokens: usize) -> Graph {
        Graph::by(&self, shape, tokens)
    }
}
