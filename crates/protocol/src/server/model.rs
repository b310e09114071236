//! The server's weights, as integers and encoded for products with ciphertexts.

use crate::error::{ProtocolError, Result};
use crate::exchange::Exchange;
use crate::hgs::Scaling;
use crate::program::Program;
use crate::secrets::SecretProduct;
use crate::share::power;
use crate::work::Work;
use primer_he::product::{EncodedWeights, Weights};
use primer_model::quantise::{IntModel, IntWeight};
use primer_plan::graph::WeightId;
use primer_ring::matrix::{Matrix, Packed};
use primer_ring::modulus;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of encoded weights that a server keeps. Those beyond are encoded anew for every product.
const KEEP_BYTES: usize = 4 << 30;

/// A model ready to be multiplied with encrypted masks of one program.
pub struct ServerModel {
    model: Arc<IntModel>,
    program: Program,
    /// By weight; none for biases, which are never multiplied.
    encoded: Vec<Option<EncodedWeights>>,
}

/// What an encrypted mask is multiplied with.
pub(crate) enum Multiplier<'a> {
    /// A weight of the model.
    OfModel(&'a EncodedWeights),
    /// Drawn or computed for one inference.
    Fresh(EncodedWeights),
}

impl Deref for Multiplier<'_> {
    type Target = EncodedWeights;

    fn deref(&self) -> &EncodedWeights {
        match self {
            Self::OfModel(encoded) => encoded,
            Self::Fresh(encoded) => encoded,
        }
    }
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
            encoded: graph.weights.iter().map(|_| None).collect(),
        };
        let mut room = KEEP_BYTES;
        for index in 0..graph.steps.len() {
            let exchanges = program.exchanges(index);
            match program.work(index) {
                Work::Linear(linear) => {
                    for (term, exchange) in linear.terms.iter().zip(exchanges) {
                        this.encode(exchange, term.weight, term.scaling, &mut room)?;
                    }
                }
                Work::Product(SecretProduct::Merged(merged)) => {
                    let scaling = Scaling::Dense(0);
                    this.encode(&exchanges[0], merged.weight, scaling, &mut room)?;
                }
                Work::Product(SecretProduct::Factors(_)) | Work::Stop(_) => {}
            }
        }
        Ok(this)
    }

    fn encode(
        &mut self,
        Exchange { product, .. }: &Exchange,
        id: WeightId,
        scaling: Scaling,
        room: &mut usize,
    ) -> Result<()> {
        let encoded = match self.weight(id) {
            IntWeight::Dense(matrix) => {
                // The online phase should not wait for it.
                self.packed(id);
                product.prepare_within(matrix, room)?
            }
            IntWeight::Diagonal { .. } => {
                let (gain, mean) = self.diagonal(id, scaling);
                product.prepare(Weights::Centred {
                    gain: &gain,
                    mean: &mean,
                })?
            }
            IntWeight::Bias(_) => unreachable!("a bias is not a term"),
        };
        self.encoded[id.index()] = Some(encoded);
        Ok(())
    }

    /// The program that the weights were encoded for.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn weight(&self, id: WeightId) -> &IntWeight {
        &self.model.weights()[id.index()]
    }

    pub(crate) fn encoded(&self, id: WeightId) -> &EncodedWeights {
        let encoded = self.encoded[id.index()].as_ref();
        encoded.expect("every weight that is multiplied was encoded")
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
