//! Linear steps: sums of products with the server's weights, and a bias.
//!
//! The server holds `x̂ = x - r`, the client `r`, and they want shares of `y = Σ x·W + b`, the
//! client's known offline again. Offline the parties get shares of `Σ r·W` ([`crate::hgs`]); online
//! the server adds `Σ x̂·W + b` to its own, in the clear, and the parties say nothing.
//!
//! **Terms.** The one-hot input times the embedding table is a term like any other; its position
//! embeddings are the bias. A product reaches the scale of
//! the sum by a shift, which each party applies to its own share.

use crate::exchange::Owner;
use crate::server::OnlineServer;
use primer_engine::share::{Share, dot};
use primer_plan::graph::{Op, Step, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::scales::WeightScale;
use primer_plan::weights::IntWeight;
use primer_ring::matrix::product_mod;
use primer_ring::modulus;

/// The products of a linear step and its bias.
pub(crate) struct Linear {
    pub(crate) terms: Vec<Term>,
    bias: WeightId,
}

/// One product of a linear step.
pub(crate) struct Term {
    /// Whose mask is multiplied.
    pub(crate) owner: Owner,
    /// The weight.
    pub(crate) weight: WeightId,
    /// Columns of the value.
    pub(crate) cols: usize,
    /// How the product reaches the scale of the sum.
    pub(crate) scaling: Scaling,
}

/// Bits to the left, for each part of a weight.
#[derive(Clone, Copy)]
pub(crate) enum Scaling {
    Dense(u32),
    Diagonal { gain: u32, mean: u32 },
}

impl Linear {
    /// Compiles a step; none unless it is linear.
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
                cols: graph.one_hot(),
                scaling: Scaling::Dense(shift(plan.weight_scale(*table).fraction())),
            };
            let positions = positions.expect("plans of these forms add positions");
            Some((vec![term], positions))
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

/// Computes the server's share of the result, online: its share of the masks' products, which it
/// has from the offline phase, and those of its own shares in the clear.
pub(crate) fn server_online(
    online: &mut OnlineServer<'_>,
    linear: &Linear,
    mut sum: Share,
) -> Share {
    let model = online.model;
    let bias = model.bias(linear.bias);
    for t in 0..sum.rows() {
        // One row for all tokens, or one for each.
        let bias = bias.row(if bias.rows() == 1 { 0 } else { t });
        for (s, &b) in sum.row_mut(t).iter_mut().zip(bias) {
            *s = modulus::add(*s, modulus::from_signed(b));
        }
    }
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

/// Returns the size of a step's result, which both parties' shares have.
pub(crate) fn size(plan: &Plan, output: ValueId) -> (usize, usize) {
    let value = plan.graph().value(output);
    (value.rows, value.cols)
}
