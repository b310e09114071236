//! A model's weights, encoded for products with ciphertexts.
//!
//! Encoding depends on how many bundles are prepared together, so a server keeps one set of encoded
//! weights for each number that was asked for, as far as memory goes: weights beyond are encoded
//! anew for every product.

use crate::batch::Exchanges;
use crate::error::Result;
use crate::hgs::{Linear, Scaling, Together};
use crate::secrets::SecretProduct;
use crate::server::ServerModel;
use crate::work::{ProductWork, Work};
use primer_he::product::{EncodedWeights, Product, Weights};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of encoded weights that a server keeps of one program.
pub(super) const KEEP_BYTES: usize = 4 << 30;

/// Encoded weights by the number of bundles that are prepared together.
pub(super) struct Shelf {
    inner: Mutex<Inner>,
}

struct Inner {
    room: usize,
    by_bundles: HashMap<usize, Arc<Encoded>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner {
                room: KEEP_BYTES,
                by_bundles: HashMap::new(),
            }),
        }
    }
}

impl Shelf {
    /// The encoded weights for some bundles, made when they are asked for first.
    pub(super) fn get(&self, model: &ServerModel, bundles: usize) -> Result<Arc<Encoded>> {
        // Whoever waits here wants weights that are being encoded. If that fails, nothing is kept.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = inner.by_bundles.get(&bundles) {
            return Ok(Arc::clone(found));
        }
        let exchanges = model.program().exchanges_for(bundles)?;
        let mut room = inner.room;
        let made = Arc::new(Encoded::new(model, exchanges, &mut room)?);
        inner.room = room;
        inner.by_bundles.insert(bundles, Arc::clone(&made));
        Ok(made)
    }

    /// Bytes that all of them take.
    pub(super) fn memory(&self) -> usize {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let weights = inner.by_bundles.values().flat_map(|e| &e.weights);
        let each = weights.flatten().flatten();
        each.map(EncodedWeights::memory).sum()
    }
}

/// The exchanges of some bundles and the weights that answer them.
pub(crate) struct Encoded {
    pub(crate) exchanges: Arc<Exchanges>,
    /// By step and exchange; none where weights are made for one inference.
    weights: Vec<Vec<Option<EncodedWeights>>>,
}

impl Encoded {
    fn new(model: &ServerModel, exchanges: Arc<Exchanges>, room: &mut usize) -> Result<Self> {
        let program = model.program();
        let mut weights = Vec::new();
        for index in 0..program.plan().graph().steps.len() {
            let parts = exchanges.of_step(index);
            let made = match program.work(index) {
                Work::Linear(linear) => {
                    let answers = linear.answers.iter().zip(parts);
                    let made = answers.map(|(answer, part)| {
                        encode(model, (linear, answer), &part.product, room).map(Some)
                    });
                    made.collect::<Result<_>>()?
                }
                Work::Product(ProductWork {
                    product: SecretProduct::Merged(merged),
                    ..
                }) => {
                    let first = &parts[0].product;
                    let first = first.prepare_within(model.dense(merged.weight), room)?;
                    vec![Some(first), None]
                }
                Work::Product(_) | Work::Local(_) | Work::Stop(_) | Work::Joined => {
                    parts.iter().map(|_| None).collect()
                }
            };
            weights.push(made);
        }
        Ok(Self { exchanges, weights })
    }

    /// What an exchange is answered with, unless it is made for one inference.
    pub(crate) fn of(&self, index: usize, part: usize) -> Option<&EncodedWeights> {
        self.weights[index][part].as_ref()
    }
}

/// The weights of one answer of a linear step.
fn encode(
    model: &ServerModel,
    (linear, answer): (&Linear, &Together),
    product: &Product,
    room: &mut usize,
) -> Result<EncodedWeights> {
    let terms = &linear.terms[answer.terms.clone()];
    let diagonal = |weight, scaling: Scaling| model.diagonal(weight, scaling.within(answer.shift));
    Ok(match terms {
        [term] if matches!(term.scaling, Scaling::Dense(_)) => {
            product.prepare_within(model.dense(term.weight), room)?
        }
        [term] => {
            let (gain, mean) = diagonal(term.weight, term.scaling);
            product.prepare(Weights::Centred {
                gain: &gain,
                mean: &mean,
            })?
        }
        [dense, residual] => {
            let (gain, mean) = diagonal(residual.weight, residual.scaling);
            let dense = model.dense(dense.weight);
            product.prepare_residual_within(dense, (&gain, &mean), room)?
        }
        _ => unreachable!("a linear step has one term or two"),
    })
}
