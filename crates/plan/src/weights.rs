//! A model's integer weights, as an engine asks for them.
//!
//! The plan numbers weights and gives them scales, but holds none. What holds them, a model that
//! was loaded and quantised, lends them as [`ModelWeights`]. So an engine knows nothing of files,
//! of folding or of calibration, and a client, which has no weights, is built without all that.

use crate::graph::WeightId;
use crate::scales::Scales;
use crate::shape::Shape;
use primer_ring::matrix::{Matrix, Packed};
use std::sync::Arc;

/// A weight of the graph in integers.
#[derive(Clone, PartialEq, Eq)]
pub enum IntWeight {
    /// Inputs by outputs, [`crate::scales::WEIGHT_BITS`] bits each.
    Dense(Matrix<i16>),
    /// Gains and means.
    Diagonal {
        /// `g`.
        gain: Vec<i16>,
        /// `h`.
        mean: Vec<i16>,
    },
    /// At the scale of the sum it is added to.
    Bias(Matrix<i64>),
}

/// A model's public numbers and its integer weights, checked to belong together.
pub trait ModelWeights: Send + Sync {
    /// Returns the model's shape.
    fn shape(&self) -> &Shape;

    /// Returns the model's scales.
    fn scales(&self) -> &Scales;

    /// Returns the weights in the graph's order.
    fn weights(&self) -> &[IntWeight];

    /// Returns a dense weight as products modulo p read it: a second copy, which is made when it is
    /// asked for the first time.
    ///
    /// # Panics
    /// If the weight is not dense.
    fn packed(&self, id: WeightId) -> &Packed;
}

impl<M: ModelWeights + ?Sized> ModelWeights for Arc<M> {
    fn shape(&self) -> &Shape {
        (**self).shape()
    }

    fn scales(&self) -> &Scales {
        (**self).scales()
    }

    fn weights(&self) -> &[IntWeight] {
        (**self).weights()
    }

    fn packed(&self, id: WeightId) -> &Packed {
        (**self).packed(id)
    }
}
