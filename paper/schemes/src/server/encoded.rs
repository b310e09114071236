//! A model's weights, encoded for products with ciphertexts.
//!
//! They are kept as far as memory goes; weights beyond are encoded anew for every product.

use super::model::{dense, diagonal};
use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::linear::{Scaling, Term};
use crate::program::Program;
use crate::secrets::SecretProduct;
use primer_paper_he::product::{EncodedWeights, Weights};
use primer_plan::weights::ModelWeights;

/// Bytes of encoded weights that a server keeps of one program.
const KEEP_BYTES: usize = 4 << 30;

/// The weights that answer exchanges.
pub(crate) struct Encoded {
    /// By step and exchange; none where weights are made for one inference.
    weights: Vec<Vec<Option<EncodedWeights>>>,
}

impl Encoded {
    pub(super) fn new(model: &dyn ModelWeights, program: &Program) -> Result<Self> {
        let (exchanges, mut room) = (program.exchanges(), KEEP_BYTES);
        let mut weights = Vec::new();
        for index in 0..program.plan().graph().steps.len() {
            let parts = exchanges.of_step(index);
            let made = match program.compiled(index) {
                CompiledStep::Linear(linear) => {
                    let terms = linear.terms.iter().zip(parts);
                    let made =
                        terms.map(|(term, part)| encode(model, term, part, &mut room).map(Some));
                    made.collect::<Result<_>>()?
                }
                CompiledStep::Product(SecretProduct::Merged(merged)) => {
                    let first = &parts[0].product;
                    let first = first.prepare_within(dense(model, merged.weight), &mut room)?;
                    vec![Some(first), None]
                }
                CompiledStep::Product(_) | CompiledStep::Kept | CompiledStep::Stop(_) => {
                    parts.iter().map(|_| None).collect()
                }
            };
            weights.push(made);
        }
        Ok(Self { weights })
    }

    /// Returns what an exchange is answered with, unless it is made for one inference.
    pub(crate) fn of(&self, index: usize, part: usize) -> Option<&EncodedWeights> {
        self.weights[index].get(part)?.as_ref()
    }

    /// Counts the bytes that all of them take.
    pub(super) fn memory(&self) -> usize {
        let each = self.weights.iter().flatten().flatten();
        each.map(EncodedWeights::memory).sum()
    }
}

/// Encodes the weights of a term.
fn encode(
    model: &dyn ModelWeights,
    term: &Term,
    exchange: &Exchange,
    room: &mut usize,
) -> Result<EncodedWeights> {
    let product = &exchange.product;
    Ok(match term.scaling {
        Scaling::Dense(_) => product.prepare_within(dense(model, term.weight), room)?,
        scaling @ Scaling::Diagonal { .. } => {
            let (gain, mean) = diagonal(model, term.weight, scaling);
            product.prepare(Weights::Centred {
                gain: &gain,
                mean: &mean,
            })?
        }
    })
}
