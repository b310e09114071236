//! HGS: a shared value times the server's weights, with nothing to say online.
//!
//! **Relation.** The server holds `x̂ = x - r`, the client `r`. For a sum of terms with weights `W`
//! and a bias `b`, they want shares of `y = Σ x·W + b`, the client's known offline again.
//!
//! ```text
//! offline   client -> server   Enc(r), once for each value and form
//!           server -> client   Enc(r·W + S), S uniform, circuit-private
//! online    client             holds r·W + S
//!           server             computes x̂·W + b - S
//! ```
//!
//! The two add up to `(x̂ + r)·W + b`. **Bytes:** those of a query and an answer of `he::product`,
//! offline; none online. **Rounds:** one offline for each term, none online. **Learned:** nothing:
//! the server sees ciphertexts under the client's key; the client decrypts a uniform matrix, noise
//! flooded.
//!
//! **Terms.** The one-hot input times the embedding table is a term like any other; its position
//! embeddings are the bias. A diagonal weight `g⊙x - ⟨h, x⟩` (a LayerNorm's gain on the residual
//! path) has its two scales put into the weights; those of a dense one are applied to both shares
//! as a shift, which is linear.
//!
//! **Deviations from the paper.** Weights stay 15-bit integers and shifts happen on shares, so that
//! noise grows with the weight, not with p; one encryption of a mask serves all products that read
//! it.

use crate::error::Result;
use crate::exchange::{Exchange, Owner};
use crate::scheme::Recipe;
use crate::seeds::{Seeds, Use};
use crate::server::{OnlineServer, ServerModel};
use crate::share::{Share, dot};
use primer_he::product::{Product, Relation};
use primer_model::quantise::IntWeight;
use primer_plan::graph::{Graph, Op, Step, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::scales::WeightScale;
use primer_ring::matrix::product_mod;
use primer_ring::modulus;

/// The products of a linear step and its bias.
pub(crate) struct Linear {
    pub(crate) terms: Vec<Term>,
    bias: WeightId,
}

/// One product of a linear step.
pub(crate) struct Term {
    /// Whose mask is encrypted.
    owner: Owner,
    /// The weight.
    pub(crate) weight: WeightId,
    /// Columns of the value.
    cols: usize,
    /// How the product reaches the scale of the sum.
    pub(crate) scaling: Scaling,
}

/// Bits to the left, for each part of a weight.
#[derive(Clone, Copy)]
pub(crate) enum Scaling {
    /// Applied to the product.
    Dense(u32),
    /// Applied to the weight.
    Diagonal { gain: u32, mean: u32 },
}

impl Linear {
    /// Of a step; none unless it is linear.
    pub(crate) fn of(plan: &Plan, step: &Step) -> Option<Self> {
        let (terms, bias) = terms(plan, step)?;
        Some(Self { terms, bias })
    }
}

fn terms(plan: &Plan, step: &Step) -> Option<(Vec<Term>, WeightId)> {
    let graph = plan.graph();
    let shift = |fraction: i32| plan.shift(fraction, step.output());
    match &step.op {
        Op::Embed {
            table, positions, ..
        } => {
            let term = Term {
                owner: None,
                weight: *table,
                cols: graph.shape.vocab + graph.shape.types,
                // A one-hot row has no fractional bits.
                scaling: Scaling::Dense(shift(plan.weight_scale(*table).fraction())),
            };
            Some((vec![term], *positions))
        }
        Op::Linear { terms, bias, .. } => {
            let terms = terms.iter().map(|term| {
                let (first, second) = plan.term_fractions(term);
                let scaling = match plan.weight_scale(term.weight) {
                    WeightScale::Diagonal { .. } => Scaling::Diagonal {
                        gain: shift(first),
                        mean: shift(second),
                    },
                    WeightScale::Dense { .. } | WeightScale::Bias => Scaling::Dense(shift(first)),
                };
                Term {
                    owner: Some(term.input),
                    weight: term.weight,
                    cols: graph.value(term.input).cols,
                    scaling,
                }
            });
            Some((terms.collect(), *bias))
        }
        _ => None,
    }
}

/// One exchange for each term.
pub(crate) fn exchanges(
    graph: &Graph,
    recipe: &Recipe,
    linear: &Linear,
    output: ValueId,
) -> Result<Vec<Exchange>> {
    let method = recipe.linear.method(graph.shape.hidden);
    let value = graph.value(output);
    let exchange = |term: &Term| -> Result<Exchange> {
        let relation = match term.scaling {
            Scaling::Dense(_) => Relation::Dense {
                rows: value.rows,
                inputs: term.cols,
                outputs: value.cols,
            },
            Scaling::Diagonal { .. } => Relation::Centred {
                rows: value.rows,
                cols: value.cols,
            },
        };
        Ok(Exchange::new(
            Product::new(&method, relation)?,
            [term.owner],
        ))
    };
    linear.terms.iter().map(exchange).collect()
}

/// Offline, the client: its share of the result.
pub(crate) fn client_offline(linear: &Linear, answers: Vec<Share>) -> Share {
    let scaled = answers.into_iter().zip(&linear.terms);
    let scaled = scaled.map(|(mut answer, term)| {
        if let Scaling::Dense(shift) = term.scaling {
            answer.shift(shift);
        }
        answer
    });
    let sum = scaled.reduce(|mut sum, answer| {
        sum.add(&answer);
        sum
    });
    sum.expect("a linear step has a term")
}

/// What the server adds to its own product: the bias minus the masks of its answers.
fn correction(
    model: &ServerModel,
    linear: &Linear,
    (index, output): (usize, ValueId),
    seeds: &Seeds,
) -> Share {
    let value = model.program().plan().graph().value(output);
    let bias = model.bias(linear.bias);
    let mut correction = Share::from_fn(value.rows, value.cols, |t, j| {
        // One row for all tokens, or one for each.
        let row = if bias.rows() == 1 { 0 } else { t };
        modulus::from_signed(bias.get(row, j))
    });
    for (part, term) in linear.terms.iter().enumerate() {
        let what = Use::Answer { step: index, part };
        let mut mask = seeds.share(what, value.rows, value.cols);
        if let Scaling::Dense(shift) = term.scaling {
            mask.shift(shift);
        }
        correction.sub(&mask);
    }
    correction
}

/// Online, the server: its share of the result, in the clear.
pub(crate) fn server_online(
    online: &mut OnlineServer<'_>,
    linear: &Linear,
    (index, output): (usize, ValueId),
) -> Share {
    let model = online.model;
    let mut sum = correction(model, linear, (index, output), &online.seeds);
    for term in &linear.terms {
        let x = match term.owner {
            None => &online.input,
            Some(id) => online.values.get(&id).expect("steps come in order"),
        };
        let x = x.first_rows(sum.rows());
        match (model.weight(term.weight), term.scaling) {
            (IntWeight::Dense(_), Scaling::Dense(shift)) => {
                let weight = model.packed(term.weight);
                let mut product = Share::from(product_mod(&x, weight, &mut online.scratch));
                product.shift(shift);
                sum.add(&product);
            }
            (_, scaling) => {
                let (gain, mean) = model.diagonal(term.weight, scaling);
                for t in 0..sum.rows() {
                    let shared = dot(x.row(t), &mean);
                    for ((s, v), g) in sum.row_mut(t).iter_mut().zip(x.row(t)).zip(&gain) {
                        *s = modulus::add(*s, modulus::sub(modulus::mul(*v, *g), shared));
                    }
                }
            }
        }
    }
    sum
}
