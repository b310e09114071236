//! CHGS: the scores of all heads straight from a layer's input, without queries and keys.
//!
//! **Relation.** The server holds `x̂ = x - r`, the client `r`. For every head they want shares of
//! `(x·W + u)·xᵀ`, where `W` and the row `u` are the server's: queries and keys, merged
//! (`primer_plan::encoder`). The first product `y = x·W + u` is shared as HGS does, the second is
//! opened as FHGS does; nothing is rounded between them.
//!
//! ```text
//! offline   client -> server   Enc(r), unless the server has it: other steps read x too
//!           server -> client   a = r·W + S, all heads side by side
//!           server             draws V and U, to open its shares of x and y with
//!           server -> client   r·(W·Vᵀ) + T and r·Uᵀ + T', all heads, one answer
//! online    server             ŷ = x̂·W + u - S, its share of y
//!           server -> client   E = x̂ - V, D = ŷ - U
//!           client             z = a·rᵀ + a·Eᵀ + D·rᵀ + (r·(W·Vᵀ) + T) + (r·Uᵀ + T')ᵀ
//!           client -> server   z - t, t drawn offline
//!           server             ŷ·x̂ᵀ + S·Vᵀ - T - T'ᵀ + (z - t)
//! ```
//!
//! Why it adds up: `y = ŷ + a` and `x = x̂ + r`, so `y·xᵀ = ŷ·x̂ᵀ + ŷ·rᵀ + a·x̂ᵀ + a·rᵀ`. With
//! `ŷ = D + U` the second term is `D·rᵀ + (r·Uᵀ)ᵀ`; with `x̂ = E + V` the third is `a·Eᵀ + a·Vᵀ`,
//! and `a·Vᵀ = r·(W·Vᵀ) + S·Vᵀ`. Both products with an unknown are linear in `r`, so the encryption
//! of `r` that HGS needs anyway is enough: the image `a` is never encrypted. Only the scores have
//! to fit `Z_p`; `y` may wrap.
//!
//! **Bytes online:** 41 bits for each element of `x` (unless opened before) and of `y` down, of the
//! scores up. **Rounds:** one, where separate projections take three. **Learned:** nothing. Every
//! answer is circuit-private and has its own uniform mask (`S`, `T`, `T'`); `E` and `D` are uniform
//! to the client, which does not know `V` and `U`; `z - t` is uniform to the server. `S` and `U`
//! cannot be one mask: the client has `r·W + S`, and a difference to `S` would show it `y`.
//!
//! **Deviation from the paper.** There the product is computed online on ciphertexts and the
//! embedding is merged as well, which a real BERT's LayerNorm forbids: see `paper/docs/schemes.md`.

use crate::client::OnlineClient;
use crate::compiled::StoredMatrices;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::scheme::Recipe;
use crate::seeds::{Seeds, Use};
use crate::server::{OnlineServer, ServerModel};
use primer_engine::share::Share;
use primer_paper_he::product::{EncodedWeights, Product, Relation, Weights};
use primer_plan::graph::{Graph, Op, Step, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_ring::matrix::{Matrix, Packed, Scratch, product_mod, product_residues};
use primer_ring::modulus::{self, K, P};
use primer_wire::Channel;
use primer_wire::kind::protocol::OPENED;
use std::sync::Arc;

/// The merged scores of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Merged {
    /// `x`.
    pub(crate) input: ValueId,
    /// `W` of all heads side by side.
    pub(crate) weight: WeightId,
    bias: WeightId,
    /// Bits by which the product is shifted left.
    shift: u32,
}

impl Merged {
    /// Reads them off a step; none unless it has merged scores.
    pub(crate) fn of(plan: &Plan, step: &Step) -> Option<Self> {
        let Op::MergedScores {
            input,
            weight,
            bias,
            output,
        } = step.op
        else {
            return None;
        };
        let fraction = plan.merged_fraction(input, weight) + plan.scale(input).fraction();
        Some(Self {
            input,
            weight,
            bias,
            shift: plan.shift(fraction, output),
        })
    }
}

/// Sizes of one step: `x` is `tokens` by `width`, `y` has `width` columns for each head.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    tokens: usize,
    heads: usize,
    width: usize,
}

impl Sizes {
    pub(crate) fn of(graph: &Graph) -> Self {
        Self {
            tokens: graph.tokens,
            heads: graph.shape.heads,
            width: graph.shape.hidden,
        }
    }

    /// Returns the rows and columns of `y`.
    pub(crate) const fn image(self) -> (usize, usize) {
        (self.tokens, self.heads * self.width)
    }

    /// Returns the rows and columns of both mixed terms in their answer.
    const fn mixed(self) -> (usize, usize) {
        (self.tokens, 2 * self.heads * self.tokens)
    }

    /// Computes `left · rightᵀ` for each head of the left, heads on top of each other.
    fn scores(self, left: &Share, right: &Share) -> Share {
        let right = right.transposed();
        let mut scores = Share::zeros(self.heads * self.tokens, self.tokens);
        for h in 0..self.heads {
            let block = Share::from(product_residues(&left.block(h, self.width), &right));
            let size = block.data().len();
            scores.data_mut()[h * size..][..size].copy_from_slice(block.data());
        }
        scores
    }

    /// Makes the two mixed terms, or their masks, into scores: the first by queries, the second, by
    /// keys, turned.
    fn add_up(self, parts: &Share) -> Share {
        let n = self.tokens;
        Share::from_fn(self.heads * n, n, |r, j| {
            let (h, i) = (r / n, r % n);
            let by_key = parts.get(j, (self.heads + h) * n + i);
            modulus::add(parts.get(i, h * n + j), by_key)
        })
    }

    /// Computes what `r` is multiplied with for the mixed terms: `W·Vᵀ` of each head, then `Uᵀ` of
    /// each.
    fn fresh(self, weight: &Matrix<i16>, v: &Share, u: &Share) -> Share {
        let (n, d) = (self.tokens, self.width);
        let mut scratch = Scratch::default();
        let mut fresh = Share::zeros(d, 2 * self.heads * n);
        for h in 0..self.heads {
            let turned = Packed::new(&weight.columns(h * d, d).transpose());
            let image = Share::from(product_mod(v, &turned, &mut scratch));
            for r in 0..d {
                let row = fresh.row_mut(r);
                for t in 0..n {
                    row[h * n + t] = image.get(t, r);
                    row[(self.heads + h) * n + t] = u.get(t, h * d + r);
                }
            }
        }
        fresh
    }
}

/// Lists both: they read the mask that every linear step reads.
pub(crate) fn exchanges(graph: &Graph, recipe: &Recipe, merged: Merged) -> Result<Vec<Exchange>> {
    let sizes = Sizes::of(graph);
    let method = recipe.packing.method(graph.shape.hidden);
    let exchange = |(rows, outputs): (usize, usize)| -> Result<Exchange> {
        let relation = Relation::Dense {
            rows,
            inputs: sizes.width,
            outputs,
        };
        let product = Product::new(&method, relation)?;
        Ok(Exchange::new(product, vec![Some(merged.input)]))
    };
    Ok(vec![exchange(sizes.image())?, exchange(sizes.mixed())?])
}

/// Returns what the bundles keep: the client the terms that it knows offline and its share of `y`,
/// the server what it adds to its own product.
pub(crate) fn kept(graph: &Graph, output: ValueId) -> StoredMatrices {
    let value = graph.value(output);
    let result = (value.rows, value.cols);
    StoredMatrices {
        client: vec![result, Sizes::of(graph).image()],
        server: vec![result],
    }
}

/// What the client needs online.
struct ClientMerged {
    /// Its share of `x`.
    input: Arc<Share>,
    /// Its share of `y`.
    image: Share,
    /// The terms known offline.
    constant: Share,
    /// Its share of the result.
    mask: Arc<Share>,
}

impl ClientMerged {
    /// Computes what goes to the server: the client's share minus the mask.
    fn reshare(self, sizes: Sizes, (e, d): (&Share, &Share), shift: u32) -> Share {
        let mut share = self.constant;
        share.add(&sizes.scores(&self.image, e));
        share.add(&sizes.scores(d, &self.input));
        share.shift(shift);
        share.sub(&self.mask);
        share
    }
}

/// Computes the terms of the client's share that it knows offline, and its share of `y`.
pub(crate) fn client_offline(sizes: Sizes, r: &Share, answers: Vec<Share>) -> [Share; 2] {
    let [image, parts] =
        <[Share; 2]>::try_from(answers).unwrap_or_else(|_| unreachable!("two exchanges"));
    let mut constant = sizes.add_up(&parts);
    constant.add(&sizes.scores(&image, r));
    [constant, image]
}

/// Encodes what the server multiplies the client's mask with in the second exchange.
pub(crate) fn multiplier(
    model: &ServerModel,
    merged: Merged,
    index: usize,
    seeds: &Seeds,
    product: &Product,
) -> Result<EncodedWeights> {
    let sizes = Sizes::of(model.program().plan().graph());
    let Openings { v, u } = Openings::of(sizes, merged, index, seeds);
    let fresh = sizes.fresh(model.dense(merged.weight), &v, &u);
    Ok(product.prepare(Weights::Dense(&fresh))?)
}

/// The masks that the server opens its shares with.
struct Openings {
    v: Share,
    u: Share,
}

impl Openings {
    fn of(sizes: Sizes, merged: Merged, index: usize, seeds: &Seeds) -> Self {
        let (rows, cols) = sizes.image();
        Self {
            v: seeds.share(Use::Value(merged.input), sizes.tokens, sizes.width),
            u: seeds.share(Use::Image { step: index }, rows, cols),
        }
    }
}

/// Computes what the server adds to its own product, offline: `S·Vᵀ` minus the masks of the mixed
/// terms.
pub(crate) fn correction(graph: &Graph, merged: Merged, index: usize, seeds: &Seeds) -> Share {
    let sizes = Sizes::of(graph);
    let drawn = |part, (rows, cols)| seeds.share(Use::Answer { step: index, part }, rows, cols);
    let v = seeds.share(Use::Value(merged.input), sizes.tokens, sizes.width);
    correct(
        sizes,
        &drawn(0, sizes.image()),
        &v,
        &drawn(1, sizes.mixed()),
    )
}

fn correct(sizes: Sizes, s: &Share, v: &Share, parts: &Share) -> Share {
    let mut correction = sizes.scores(s, v);
    correction.sub(&sizes.add_up(parts));
    correction
}

/// Hears online, after what the server opened of `x`, the rest of it: the client. Returns its share
/// minus the mask.
pub(crate) fn client_listen(
    channel: &mut Channel,
    online: &mut OnlineClient<'_>,
    (merged, output): (Merged, ValueId),
    [constant, image]: [Share; 2],
) -> Result<Share> {
    let sizes = Sizes::of(online.program.plan().graph());
    let material = ClientMerged {
        input: online.masks.get(merged.input),
        image,
        constant,
        mask: online.masks.get(output),
    };
    let (rows, cols) = sizes.image();
    let mut opened = Share::zeros(rows, cols);
    channel.recv_residues(OPENED, K, P, opened.data_mut())?;
    let opened = (online.opened(merged.input), &opened);
    Ok(material.reshare(sizes, opened, merged.shift))
}

/// Opens the server's share of `y` online, after that of `x`. Returns its own part of the result.
pub(crate) fn server_request(
    channel: &mut Channel,
    online: &mut OnlineServer<'_>,
    (merged, index): (Merged, usize),
    correction: &Share,
) -> Result<Share> {
    let model = online.model;
    let sizes = Sizes::of(model.program().plan().graph());
    let x = online.get(merged.input).first_rows(sizes.tokens);
    let product = product_mod(&x, model.packed(merged.weight), &mut online.scratch);
    let mut y = Share::from(product);
    let bias = model.bias(merged.bias);
    for t in 0..y.rows() {
        for (y, u) in y.row_mut(t).iter_mut().zip(bias.row(0)) {
            *y = modulus::add(*y, modulus::from_signed(*u));
        }
    }
    let (rows, cols) = sizes.image();
    let what = Use::Answer {
        step: index,
        part: 0,
    };
    y.sub(&online.seeds.share(what, rows, cols));
    let mut difference = y.first_rows(rows);
    difference.sub(&Openings::of(sizes, merged, index, &online.seeds).u);
    channel.send_residues(OPENED, K, difference.data().iter().copied())?;
    channel.flush()?;
    let mut sum = sizes.scores(&y, &x);
    sum.add(correction);
    sum.shift(merged.shift);
    Ok(sum)
}

#[cfg(test)]
mod tests;
