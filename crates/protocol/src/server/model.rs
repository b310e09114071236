//! The server's weights.

use super::encoded::{Encoded, Shelf};
use crate::error::{ProtocolError, Result};
use crate::hgs::Scaling;
use crate::program::Program;
use crate::share::power;
use primer_model::quantise::{IntModel, IntWeight};
use primer_plan::graph::WeightId;
use primer_ring::matrix::{Matrix, Packed};
use primer_ring::modulus;
use std::sync::Arc;

/// A model ready to be multiplied with encrypted masks of one program.
pub struct ServerModel {
    model: Arc<IntModel>,
    program: Program,
    encoded: Shelf,
}

impl ServerModel {
    /// Encodes a model's weights for a program, for bundles that are prepared one at a time.
    ///
    /// # Errors
    /// [`ProtocolError`] if the model is not the program's or its weights do not fit the
    /// homomorphic parameters.
    pub fn new(model: Arc<IntModel>, program: &Program) -> Result<Self> {
        Self::for_bundles(model, program, 1)
    }

    /// The same for so many bundles together. For other numbers weights are encoded when they are
    /// asked for first.
    ///
    /// # Errors
    /// As [`Self::new`], and [`ProtocolError::Bundles`] if the scheme does not prepare so many
    /// together.
    pub fn for_bundles(model: Arc<IntModel>, program: &Program, bundles: usize) -> Result<Self> {
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
        let this = Self {
            model,
            program: program.clone(),
            encoded: Shelf::default(),
        };
        this.encoded(bundles)?;
        Ok(this)
    }

    /// Encodes the weights for some bundles together, unless that was done before. Whoever is about
    /// to answer so many does not wait for it then.
    ///
    /// # Errors
    /// As [`Self::for_bundles`].
    pub fn encode(&self, bundles: usize) -> Result<()> {
        self.encoded(bundles).map(drop)
    }

    /// Bytes of encoded weights that are kept for all numbers of bundles together. Weights beyond
    /// are kept as they are, two bytes each for every number of bundles, and encoded when they are
    /// used.
    pub const KEEP_BYTES: usize = super::encoded::KEEP_BYTES;

    /// Bytes that the encoded weights take now, for all numbers of bundles that were asked for.
    pub fn encoded_bytes(&self) -> usize {
        self.encoded.memory()
    }

    /// Weights for some bundles together, with the exchanges that they answer.
    pub(crate) fn encoded(&self, bundles: usize) -> Result<Arc<Encoded>> {
        self.encoded.get(self, bundles)
    }

    /// The program that the weights were encoded for.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn weight(&self, id: WeightId) -> &IntWeight {
        &self.model.weights()[id.index()]
    }

    pub(crate) fn dense(&self, id: WeightId) -> &Matrix<i16> {
        match self.weight(id) {
            IntWeight::Dense(matrix) => matrix,
            _ => unreachable!("a checked model has a matrix here"),
        }
    }

    /// The same as the online products read it.
    pub(crate) fn packed(&self, id: WeightId) -> &Packed {
        self.model.packed(id)
    }

    pub(crate) fn bias(&self, id: WeightId) -> &Matrix<i64> {
        match self.weight(id) {
            IntWeight::Bias(bias) => bias,
            _ => unreachable!("a checked model has a bias here"),
        }
    }

    /// Gains and means of a diagonal weight as residues, at the scale of the accumulator.
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
