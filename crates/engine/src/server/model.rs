//! The server's weights.

use crate::error::{ProtocolError, Result};
use crate::linear::Scaling;
use crate::program::Program;
use crate::share::power;
use primer_hint::multipliers::Multipliers;
use primer_plan::graph::WeightId;
use primer_plan::weights::{IntWeight, ModelWeights};
use primer_ring::matrix::{Matrix, Packed};
use primer_ring::modulus;
use std::sync::Arc;

/// A model ready to be multiplied with the client's masks of one program.
pub struct ServerModel {
    model: Arc<dyn ModelWeights>,
    program: Program,
    multipliers: Option<Arc<Multipliers>>,
}

impl ServerModel {
    /// Makes a model ready for a program. Bundles are prepared with the multipliers of the
    /// program's hint; spending them takes none.
    ///
    /// # Errors
    /// [`ProtocolError::OtherBundle`] if the model or the hint is not the program's.
    pub fn new(
        model: Arc<impl ModelWeights + 'static>,
        program: &Program,
        multipliers: Option<Arc<Multipliers>>,
    ) -> Result<Self> {
        let plan = program.plan();
        let graph = plan.graph();
        if graph.shape != *model.shape() || plan.scales() != model.scales() {
            return Err(ProtocolError::OtherBundle { what: "model" });
        }
        if let Some(multipliers) = &multipliers
            && program.hint() != Some(multipliers.identity())
        {
            return Err(ProtocolError::OtherBundle { what: "hint" });
        }
        for (id, weight) in graph.weight_ids().zip(model.weights()) {
            if matches!(weight, IntWeight::Dense(_)) {
                // The online phase should not wait for it.
                model.packed(id);
            }
        }
        Ok(Self {
            model,
            program: program.clone(),
            multipliers,
        })
    }

    /// Returns the multipliers.
    ///
    /// # Errors
    /// [`ProtocolError::HintMissing`] if there are none.
    pub(crate) fn multipliers(&self) -> Result<&Multipliers> {
        let multipliers = self.multipliers.as_deref();
        multipliers.ok_or(ProtocolError::HintMissing)
    }

    /// Returns the program that it is for.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn weight(&self, id: WeightId) -> &IntWeight {
        &self.model.weights()[id.index()]
    }

    /// Returns a matrix.
    pub(crate) fn dense(&self, id: WeightId) -> &Matrix<i16> {
        match self.weight(id) {
            IntWeight::Dense(matrix) => matrix,
            _ => unreachable!("a checked model has a matrix here"),
        }
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
        let (IntWeight::Diagonal { gain, mean }, Scaling::Diagonal { gain: g, mean: h }) =
            (self.weight(id), scaling)
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
}
