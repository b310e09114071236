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
//! as a shift, which is linear. Without rotations, all terms of a step share one answer: the plan
//! gives their products one scale, and the shift is that of the sum.
//!
//! **Deviations from the paper.** Weights stay 15-bit integers and shifts happen on shares, so that
//! noise grows with the weight, not with p; one encryption of a mask serves all products that read
//! it.

use crate::error::Result;
use crate::exchange::{Exchange, Joined, Mask, Owner};
use crate::scheme::{Packing, Recipe};
use crate::seeds::{Seeds, Use};
use crate::server::{OnlineServer, ServerModel};
use crate::share::{Share, dot};
use primer_he::product::{Method, Product, Query, Relation, WeightSize};
use primer_model::quantise::IntWeight;
use primer_plan::graph::{Graph, Op, Step, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::scales::{COLUMN_LENGTH, TABLE_COLUMN_LENGTH, WeightScale};
use primer_ring::matrix::product_mod;
use primer_ring::modulus;
use std::ops::Range;

/// The products of a linear step and its bias.
pub(crate) struct Linear {
    pub(crate) terms: Vec<Term>,
    /// What comes in one answer each.
    pub(crate) answers: Vec<Together>,
    bias: WeightId,
}

/// Terms that come in one answer.
pub(crate) struct Together {
    pub(crate) terms: Range<usize>,
    /// Bits to the left, from the answer to the sum.
    pub(crate) shift: u32,
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

impl Scaling {
    /// What is left to do for a weight whose answer will be shifted.
    pub(crate) const fn within(self, shift: u32) -> Self {
        match self {
            Self::Dense(by) => Self::Dense(by - shift),
            Self::Diagonal { gain, mean } => Self::Diagonal {
                gain: gain - shift,
                mean: mean - shift,
            },
        }
    }
}

impl Linear {
    /// Of a step; none unless it is linear.
    pub(crate) fn of(plan: &Plan, recipe: &Recipe, step: &Step) -> Option<Self> {
        let (terms, bias) = terms(plan, step)?;
        let answers = match (recipe.linear, &step.op) {
            (Packing::Subring(_), Op::Linear { terms, output, .. }) => {
                let shift = plan.shift(plan.common_fraction(terms), *output);
                let terms = 0..terms.len();
                vec![Together { terms, shift }]
            }
            _ => {
                let alone = terms.iter().enumerate().map(|(index, term)| Together {
                    terms: index..index + 1,
                    shift: match term.scaling {
                        Scaling::Dense(shift) => shift,
                        Scaling::Diagonal { .. } => 0,
                    },
                });
                alone.collect()
            }
        };
        Some(Self {
            terms,
            answers,
            bias,
        })
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
                cols: graph.shape.one_hot(),
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

/// One exchange for each answer, for some bundles together. `earlier` are those of the steps before
/// it: a residual is read from a query that one of them has already.
pub(crate) fn exchanges(
    graph: &Graph,
    recipe: &Recipe,
    (linear, output): (&Linear, ValueId),
    bundles: usize,
    earlier: &[Vec<Exchange>],
) -> Result<Vec<Exchange>> {
    let value = graph.value(output);
    let rows = bundles * value.rows;
    let method = |term: &Term| -> Method {
        let length = match term.owner {
            None => TABLE_COLUMN_LENGTH,
            Some(_) => COLUMN_LENGTH,
        };
        let size = WeightSize::Columns(length);
        recipe.linear.method(graph.shape.hidden, size)
    };
    let alone = |term: &Term| -> Result<Product> {
        let relation = match term.scaling {
            Scaling::Dense(_) => Relation::Dense {
                rows,
                inputs: term.cols,
                outputs: value.cols,
            },
            Scaling::Diagonal { .. } => Relation::Centred {
                rows,
                cols: value.cols,
            },
        };
        Ok(Product::new(&method(term), relation)?)
    };
    let mask = |term: &Term| Mask {
        owner: term.owner,
        rows: value.rows,
        joined: Joined::Rows,
    };
    let exchange = |together: &Together| -> Result<Exchange> {
        let terms = &linear.terms[together.terms.clone()];
        let product = match terms {
            [term] => alone(term)?,
            [dense, diagonal] => with_residual(&alone(dense)?, diagonal.owner, earlier)?,
            _ => unreachable!("a linear step has one term or two"),
        };
        let masks = terms.iter().map(mask).collect();
        Ok(Exchange::new(product, masks, Joined::Rows))
    };
    linear.answers.iter().map(exchange).collect()
}

/// A dense product with a residual, by a query that the server has, if there is one that fits.
fn with_residual(product: &Product, of: Owner, earlier: &[Vec<Exchange>]) -> Result<Product> {
    let offers = earlier.iter().rev().flatten().flat_map(Exchange::offers);
    let mut queries = offers.filter(|(mask, _)| mask.owner == of);
    let shared =
        queries.find_map(|(_, query): (_, &Query)| product.with_residual(Some(query)).ok());
    shared.map_or_else(|| Ok(product.with_residual(None)?), Ok)
}

/// Offline, the client: its share of the result.
pub(crate) fn client_offline(linear: &Linear, answers: Vec<Share>) -> Share {
    let shifted = answers.into_iter().zip(&linear.answers);
    let shifted = shifted.map(|(mut answer, together)| {
        answer.shift(together.shift);
        answer
    });
    let sum = shifted.reduce(|mut sum, answer| {
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
    for (part, together) in linear.answers.iter().enumerate() {
        let what = Use::Answer { step: index, part };
        let mut mask = seeds.share(what, value.rows, value.cols);
        mask.shift(together.shift);
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
