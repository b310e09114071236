//! FHGS: the product of two shared values, with no homomorphic operation online.
//!
//! **Relation.** The server holds `x̂ = x - r` and `ŷ = y - s`, the client `r` and `s`. They want
//! shares of `x∘y`, where `∘` is bilinear ([`Factors`]): scores, mixing, row-wise squares, rows
//! times factors, the sum of rows times factors.
//!
//! ```text
//! offline   client -> server   Enc(r), Enc(s), unless the server has them
//!           server             draws U and V, the masks that x̂ and ŷ will be opened with
//!           server -> client   Enc(U∘s + S), Enc(r∘V + S'), circuit-private
//! online    server -> client   D = x̂ - U, E = ŷ - V; once for each value
//!           client             z = r∘s + (U∘s + S) + (r∘V + S') + D∘s + r∘E
//!           client -> server   z - t, t drawn offline
//!           server             x̂∘ŷ - S - S' + (z - t)
//! ```
//!
//! `z - S - S' = r∘s + x̂∘s + r∘ŷ`, so the server ends with `x∘y - t` and the client holds `t`: the
//! invariant is kept. **Bytes online:** 41 bits for each element of `x` and `y` that was not opened
//! before (down) and of the result (up). **Rounds:** one. **Learned:** nothing: `D` and `E` are
//! uniform to the client, which does not know `U` and `V`; `z - t` is uniform to the server, which
//! does not know `t`. A value is opened with one mask only and only once, in however many products
//! it appears.
//!
//! **The paper's form** computes `x̂∘Enc(s)` and `Enc(r)∘ŷ` online, on ciphertexts. It is the same
//! exchange with `U = x̂` and `V = ŷ`, after which there is nothing to open; scheme `base` uses it.
//! Opening against `U` and `V` moves that work offline and leaves kilobytes of plain residues.

use crate::client::OnlineClient;
use crate::compiled::StoredMatrices;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::scheme::{Products, Recipe};
use crate::seeds::Use;
use crate::server::OnlineServer;
use primer_engine::share::{Share, dot};
use primer_paper_he::product::{EncodedWeights, Operand, Product, Relation, Weights};
use primer_plan::graph::{Graph, Op, Step, Value, ValueId};
use primer_plan::plan::Plan;
use primer_ring::matrix::{Matrix, product_residues};
use primer_ring::modulus;
use std::sync::Arc;
use zeroize::Zeroize;

/// The two factors of a product, and what it is.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    pub(crate) left: ValueId,
    pub(crate) right: ValueId,
    kind: Bilinear,
    form: Products,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bilinear {
    /// Per head, `left · rightᵀ`, heads on top of each other.
    Scores,
    /// Per head, `left · right`, heads of the left on top of each other, of the rest side by side.
    Mix,
    /// The inner product of each row with the same row of the other; both are the same value.
    Squares,
    /// Each row of the left times the one element of the right.
    ScaleRows,
    /// The sum of the rows of the left, each times the one element of the right.
    Pool,
}

impl Factors {
    /// Reads them off a step; none unless it is a product of two secrets.
    pub(crate) fn of(recipe: &Recipe, step: &Step) -> Option<Self> {
        let (left, right, kind) = match step.op {
            Op::Scores { query, key, .. } => (query, key, Bilinear::Scores),
            Op::Mix {
                probabilities,
                value,
                ..
            } => (probabilities, value, Bilinear::Mix),
            Op::SquareSum { input, .. } => (input, input, Bilinear::Squares),
            Op::ScaleRows { input, factor, .. } => (input, factor, Bilinear::ScaleRows),
            Op::Pool { input, kept, .. } => (input, kept, Bilinear::Pool),
            Op::Embed { .. }
            | Op::Linear { .. }
            | Op::MergedScores { .. }
            | Op::Exponents { .. }
            | Op::RowSum { .. }
            | Op::Kept { .. }
            | Op::Stop { .. } => return None,
        };
        Some(Self {
            left,
            right,
            kind,
            form: recipe.products,
        })
    }

    /// Returns the distinct values, in the order in which they are opened; none in the paper's
    /// form.
    pub(crate) fn opens(self) -> Vec<ValueId> {
        match self.form {
            Products::Encrypted => vec![],
            Products::Opened if self.left == self.right => vec![self.left],
            Products::Opened => vec![self.left, self.right],
        }
    }

    /// Counts the bits by which the product is shifted left.
    fn shift(self, plan: &Plan, output: ValueId) -> u32 {
        let fraction = |id: ValueId| plan.scale(id).fraction();
        plan.shift(fraction(self.left) + fraction(self.right), output)
    }

    /// Computes `x∘y` in the clear.
    fn product(self, heads: usize, x: &Share, y: &Share) -> Share {
        match self.kind {
            Bilinear::Scores => {
                let (n, width) = (x.rows(), x.cols() / heads);
                let blocks = (0..heads).map(|h| {
                    let y = y.block(h, width).transposed();
                    Share::from(product_residues(&x.block(h, width), &y))
                });
                let blocks: Vec<Share> = blocks.collect();
                Share::from_fn(heads * n, y.rows(), |r, c| blocks[r / n].get(r % n, c))
            }
            Bilinear::Mix => {
                let (n, width) = (y.rows(), y.cols() / heads);
                let blocks = (0..heads).map(|h| {
                    let x = x.row_block(h, n);
                    Share::from(product_residues(&x, &y.block(h, width)))
                });
                let blocks: Vec<Share> = blocks.collect();
                Share::from_fn(n, y.cols(), |r, c| blocks[c / width].get(r, c % width))
            }
            Bilinear::Squares => Share::from_fn(x.rows(), 1, |t, _| dot(x.row(t), y.row(t))),
            Bilinear::ScaleRows => Share::from_fn(x.rows(), x.cols(), |t, c| {
                modulus::mul(x.get(t, c), y.get(t, 0))
            }),
            Bilinear::Pool => sum_of_rows(&Share::from_fn(x.rows(), x.cols(), |t, c| {
                modulus::mul(x.get(t, c), y.get(t, 0))
            })),
        }
    }
}

/// Adds up all rows.
fn sum_of_rows(x: &Share) -> Share {
    Share::from_fn(1, x.cols(), |_, c| {
        (0..x.rows()).fold(0, |sum, t| modulus::add(sum, x.get(t, c)))
    })
}

/// Lists one exchange for each mixed term, or one for both.
pub(crate) fn exchanges(graph: &Graph, recipe: &Recipe, factors: Factors) -> Result<Vec<Exchange>> {
    let method = recipe.packing.method(graph.shape.hidden);
    let Heads {
        tokens: n,
        heads,
        width,
    } = Heads::of(graph);
    let Factors { left, right, .. } = factors;
    let Value { rows, cols, .. } = *graph.value(left);
    let exchange = |relation, ids: &[ValueId]| -> Result<Exchange> {
        let product = Product::new(&method, relation)?;
        Ok(Exchange::new(
            product,
            ids.iter().copied().map(Some).collect(),
        ))
    };
    let by_head = |operand, (rows, inputs, outputs), id: ValueId| {
        let relation = Relation::Heads {
            heads,
            operand,
            rows,
            inputs,
            outputs,
        };
        exchange(relation, &[id])
    };
    match factors.kind {
        Bilinear::Scores => Ok(vec![
            by_head(Operand::Columns, (n, width, n), right)?,
            by_head(Operand::Columns, (n, width, n), left)?,
        ]),
        Bilinear::Mix => Ok(vec![
            by_head(Operand::Turned, (width, n, n), right)?,
            by_head(Operand::Rows, (n, n, width), left)?,
        ]),
        Bilinear::Squares => {
            let relation = Relation::RowSums { rows, cols };
            Ok(vec![exchange(relation, &[left])?])
        }
        // What is pooled is scaled first; each party adds up the rows of its own.
        Bilinear::ScaleRows | Bilinear::Pool => {
            let relation = Relation::ScaledRows { rows, cols };
            Ok(vec![exchange(relation, &[left, right])?])
        }
    }
}

/// Returns what the bundles keep: the client the terms that it knows offline.
pub(crate) fn kept(graph: &Graph, output: ValueId) -> StoredMatrices {
    let value = graph.value(output);
    StoredMatrices {
        client: vec![(value.rows, value.cols)],
        server: vec![],
    }
}

/// What the client needs online.
struct ClientProduct {
    left: Arc<Share>,
    right: Arc<Share>,
    /// The terms known offline.
    constant: Share,
    /// What its share of the result is to be.
    mask: Arc<Share>,
}

impl ClientProduct {
    /// Computes what goes to the server: the client's share minus the mask.
    fn reshare(
        self,
        factors: Factors,
        heads: usize,
        opened: Option<(&Share, &Share)>,
        shift: u32,
    ) -> Share {
        let mut share = self.constant;
        if let Some((d, e)) = opened {
            share.add(&factors.product(heads, d, &self.right));
            share.add(&factors.product(heads, &self.left, e));
        }
        share.shift(shift);
        share.sub(&self.mask);
        share
    }
}

/// Sizes that head-wise products are cut by.
struct Heads {
    tokens: usize,
    heads: usize,
    width: usize,
}

impl Heads {
    fn of(graph: &Graph) -> Self {
        Self {
            tokens: graph.tokens,
            heads: graph.shape.heads,
            width: graph.shape.head_size(),
        }
    }

    /// Puts the two mixed terms of scores together. `by_right` comes transposed, a row for each
    /// key.
    fn scores(&self, by_right: &Share, by_left: &Share) -> Share {
        let n = self.tokens;
        Share::from_fn(self.heads * n, n, |r, j| {
            let (h, i) = (r / n, r % n);
            modulus::add(by_right.get(j, h * n + i), by_left.get(i, h * n + j))
        })
    }

    /// Puts the two mixed terms of mixing together. `by_right` comes transposed, a row for each
    /// feature.
    fn mix(&self, by_right: &Share, by_left: &Share) -> Share {
        let (n, width) = (self.tokens, self.width);
        Share::from_fn(n, self.heads * width, |i, at| {
            let (h, feature) = (at / width, at % width);
            modulus::add(by_right.get(feature, h * n + i), by_left.get(i, at))
        })
    }
}

/// Puts shares of the mixed terms, or their masks, together: `U∘s + r∘V`.
fn mixed(graph: &Graph, factors: Factors, mut parts: Vec<Share>) -> Share {
    let sizes = Heads::of(graph);
    match (factors.kind, parts.as_mut_slice()) {
        (Bilinear::Scores, [by_right, by_left]) => sizes.scores(by_right, by_left),
        (Bilinear::Mix, [by_right, by_left]) => sizes.mix(by_right, by_left),
        (Bilinear::Pool, [both]) => sum_of_rows(both),
        (kind, [both]) => {
            if kind == Bilinear::Squares {
                // U∘r and r∘U are the same.
                both.shift(1);
            }
            parts.swap_remove(0)
        }
        _ => unreachable!("products have one answer or two"),
    }
}

/// Computes the terms of the client's share that it knows offline.
pub(crate) fn client_offline(
    graph: &Graph,
    factors: Factors,
    (r, s): (&Share, &Share),
    answers: Vec<Share>,
) -> Share {
    let mut constant = mixed(graph, factors, answers);
    constant.add(&factors.product(graph.shape.heads, r, s));
    constant
}

/// Encodes what the server multiplies the client's masks with in one exchange: its masks `u` and
/// `v` or, in the paper's form, its shares.
pub(crate) fn multiplier(
    graph: &Graph,
    factors: Factors,
    part: usize,
    (u, v): (&Share, &Share),
    product: &Product,
) -> Result<EncodedWeights> {
    let Heads {
        tokens: n,
        heads,
        width,
    } = Heads::of(graph);
    let by_head = |block: &dyn Fn(usize) -> Matrix<u64>| {
        let blocks = Blocks((0..heads).map(block).collect());
        Ok(product.prepare(Weights::Heads(&blocks.0))?)
    };
    match (factors.kind, part) {
        (Bilinear::Scores, 0) => by_head(&|h| u.block(h, width).transpose()),
        (Bilinear::Scores, _) => by_head(&|h| v.block(h, width).transpose()),
        (Bilinear::Mix, 0) => by_head(&|h| u.row_block(h, n).transpose()),
        (Bilinear::Mix, _) => by_head(&|h| v.columns(h * width, width)),
        (Bilinear::Squares, _) => Ok(product.prepare(Weights::RowSums(u))?),
        (Bilinear::ScaleRows | Bilinear::Pool, _) => {
            let v = &Share::from_fn(product.rows(), product.cols(), |t, _| v.get(t, 0));
            Ok(product.prepare(Weights::ScaledRows { u, v })?)
        }
    }
}

/// Returns what the server adds to its own product: the masks of its answers with their sign
/// turned.
fn correction(online: &OnlineServer<'_>, factors: Factors, index: usize) -> Share {
    let program = online.model.program();
    let parts = program.exchanges().of_step(index).iter().enumerate();
    let parts = parts.map(|(part, exchange)| {
        let (rows, cols) = exchange.answer_size();
        let what = Use::Answer { step: index, part };
        online.seeds.share(what, rows, cols)
    });
    mixed(program.plan().graph(), factors, parts.collect()).negated()
}

/// Parts of a mask as one matrix for each head; wiped like the mask.
struct Blocks(Vec<Matrix<u64>>);

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|b| b.data_mut().zeroize());
    }
}

/// Computes what the client owes the server online, after what the server opened: its share minus
/// the mask.
pub(crate) fn client_share(
    online: &mut OnlineClient<'_>,
    (factors, output): (Factors, ValueId),
    constant: Share,
) -> Share {
    let plan = online.program.plan();
    let product = ClientProduct {
        left: online.masks.get(factors.left),
        right: online.masks.get(factors.right),
        constant,
        mask: online.masks.get(output),
    };
    let opened = match factors.form {
        Products::Encrypted => None,
        Products::Opened => {
            let (d, e) = (online.opened(factors.left), online.opened(factors.right));
            Some((d, e))
        }
    };
    let heads = plan.graph().shape.heads;
    product.reshare(factors, heads, opened, factors.shift(plan, output))
}

/// Computes the server's own part of the result online, after it has opened its shares.
pub(crate) fn server_part(online: &OnlineServer<'_>, (factors, index): (Factors, usize)) -> Share {
    let program = online.model.program();
    let (plan, output) = (program.plan(), program.step(index).output());
    let (x, y) = (online.get(factors.left), online.get(factors.right));
    let mut sum = factors.product(plan.graph().shape.heads, x, y);
    sum.add(&correction(online, factors, index));
    sum.shift(factors.shift(plan, output));
    if factors.kind == Bilinear::Squares {
        // LayerNorm's ε, once for each feature that was summed.
        let epsilon = modulus::from_signed(plan.epsilon(output));
        let sums = sum.data_mut().iter_mut();
        sums.for_each(|v| *v = modulus::add(*v, epsilon));
    }
    sum
}

#[cfg(test)]
mod tests;
