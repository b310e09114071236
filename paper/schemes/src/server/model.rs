//! The server's weights.

use super::encoded::Encoded;
use crate::error::{ProtocolError, Result};
use crate::linear::Scaling;
use crate::program::Program;
use primer_engine::share::power;
use primer_plan::graph::WeightId;
use primer_plan::weights::{IntWeight, ModelWeights};
use primer_ring::matrix::{Matrix, Packed};
use primer_ring::modulus;
use std::sync::Arc;

/// A model ready to be multiplied with the client's masks of one program.
pub struct ServerModel {
    model: Arc<dyn ModelWeights>,
    program: Program,
    encoded: Encoded,
}

impl ServerModel {
    /// Encodes a model's weights for a program, as far as products on ciphertexts need them.
    ///
    /// # Errors
    /// [`ProtocolError`] if the model is not the program's, or its weights do not fit the
    /// homomorphic parameters.
    pub fn new(model: Arc<dyn ModelWeights>, program: &Program) -> Result<Self> {
        let plan = program.plan();
        let graph = plan.graph();
        if graph.shape != *model.shape() || plan.scales() != model.scales() {
            return Err(ProtocolError::OtherBundle { what: "model" });
        }
        for (id, weight) in graph.weight_ids().zip(model.weights()) {
            if matches!(weight, IntWeight::Dense(_)) {
                // The online phase should not wait for it.
                model.packed(id);
            }
        }
        Ok(Self {
            encoded: Encoded::new(&*model, program)?,
            model,
            program: program.clone(),
        })
    }

    /// Returns the bytes that encoded weights take.
    pub fn encoded_bytes(&self) -> usize {
        self.encoded.memory()
    }

    /// Returns the weights that were encoded for products on ciphertexts.
    pub(crate) fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    /// Returns the program that the weights were encoded for.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn weight(&self, id: WeightId) -> &IntWeight {
        &self.model.weights()[id.index()]
    }

    pub(crate) fn dense(&self, id: WeightId) -> &Matrix<i16> {
        dense(&*self.model, id)
    }

    /// Returns the same as the online products read it.
    pub(crate) fn packed(&self, id: WeightId) -> &Packed {
        self.model.packed(id)
    }

    pub(crate) fn bias(&self, id: WeightId) -> &Matrix<i64> {
        match self.weight(id) {
            IntWeight::Bias(bias) => bias,
            _ => unreachable!("a checked model has a bias here"),
        }
    }

    /// Returns gains and means of a diagonal weight as residues, at the scale of the accumulator.
    pub(crate) fn diagonal(&self, id: WeightId, scaling: Scaling) -> (Vec<u64>, Vec<u64>) {
        diagonal(&*self.model, id, scaling)
    }
}

/// Returns a matrix of a model.
pub(super) fn dense(model: &dyn ModelWeights, id: WeightId) -> &Matrix<i16> {
    match &model.weights()[id.index()] {
        IntWeight::Dense(matrix) => matrix,
        _ => unreachable!("a checked model has a matrix here"),
    }
}

/// Returns gains and means of a diagonal weight of a model, as [`ServerModel::diagonal`].
pub(super) fn diagonal(
    model: &dyn ModelWeights,
    id: WeightId,
    scaling: Scaling,
) -> (Vec<u64>, Vec<u64>) {
    let (IntWeight::Diagonal { gain, mean }, Scaling::Diagonal { gain: g, mean: h }) =
        (&model.weights()[id.index()], scaling)
    else {
        unreachable!("a checked model has a diagonal here");
    };
    let scaled = |values: &[i16], by: u32| -> Vec<u64> {
        let by = power(by);
        values
            .iter()
            .map(|v| modulus::mul(modulus::from_signed((*v).into()), by))
            .collect()
    };
    (scaled(gain, g), scaled(mean, h))
}
