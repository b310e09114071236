//! The server's weights, as integers and encoded for products with ciphertexts.

use crate::chgs::Merged;
use crate::error::{ProtocolError, Result};
use crate::hgs::Scaling;
use crate::program::Program;
use crate::share::power;
use crate::work::Work;
use primer_he::packing::weights::PreparedWeights;
use primer_he::slotwise::PreparedCentred;
use primer_model::quantise::{IntModel, IntWeight};
use primer_plan::graph::WeightId;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use std::sync::Arc;

/// Dense weights larger than this are encoded anew for every product instead of being kept.
const KEEP_WEIGHTS: usize = 8 << 20;

/// A model ready to be multiplied with encrypted masks of one program.
pub struct ServerModel {
    model: Arc<IntModel>,
    program: Program,
    weights: Vec<HeWeight>,
}

/// A weight in its homomorphic form.
pub(crate) enum HeWeight {
    /// A matrix.
    Dense(PreparedWeights),
    /// `x ↦ g⊙x - ⟨h, x⟩`.
    Centred(PreparedCentred),
    /// A bias: never multiplied.
    None,
}

impl ServerModel {
    /// Encodes a model's weights for a program.
    ///
    /// # Errors
    /// [`ProtocolError`] if the model is not the program's or its weights do not fit the
    /// homomorphic parameters.
    pub fn new(model: Arc<IntModel>, program: &Program) -> Result<Self> {
        let plan = program.plan();
        let graph = plan.graph();
        if graph.shape != *model.shape() || plan.scales() != model.scales() {
            return Err(ProtocolError::OtherBundle { what: "model" });
        }
        let mut this = Self {
            model,
            program: program.clone(),
            weights: graph.weights.iter().map(|_| HeWeight::None).collect(),
        };
        for (index, step) in graph.steps.iter().enumerate() {
            match program.work(index) {
                Work::Linear(linear) => {
                    let rows = graph.value(step.output()).rows;
                    for term in &linear.terms {
                        let encoded = this.encode(rows, term.weight, term.scaling)?;
                        this.weights[term.weight.index()] = encoded;
                    }
                }
                Work::Merged(Merged { weight, .. }) => {
                    let encoded = this.encode(graph.tokens, *weight, Scaling::Dense(0))?;
                    this.weights[weight.index()] = encoded;
                }
                _ => {}
            }
        }
        Ok(this)
    }

    fn encode(&self, rows: usize, id: WeightId, scaling: Scaling) -> Result<HeWeight> {
        let layout = self.program.layout(rows)?;
        let params = self.program.params();
        Ok(match self.weight(id) {
            IntWeight::Dense(matrix) if matrix.data().len() > KEEP_WEIGHTS => {
                HeWeight::Dense(PreparedWeights::streamed(params, &layout, matrix.clone())?)
            }
            IntWeight::Dense(matrix) => {
                HeWeight::Dense(PreparedWeights::dense(params, &layout, matrix)?)
            }
            IntWeight::Diagonal { .. } => {
                let (gain, mean) = self.diagonal(id, scaling);
                HeWeight::Centred(PreparedCentred::new(params, &layout, &gain, &mean)?)
            }
            IntWeight::Bias(_) => unreachable!("a bias is not a term"),
        })
    }

    /// The program that the weights were encoded for.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn weight(&self, id: WeightId) -> &IntWeight {
        &self.model.weights()[id.index()]
    }

    pub(crate) fn encoded(&self, id: WeightId) -> &HeWeight {
        &self.weights[id.index()]
    }

    pub(crate) fn dense(&self, id: WeightId) -> &Matrix<i16> {
        match self.weight(id) {
            IntWeight::Dense(matrix) => matrix,
            _ => unreachable!("a checked model has a matrix here"),
        }
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
