//! Products of two secrets: of two shared values, with no homomorphic operation online.
//!
//! **Relation.** The server holds `x̂ = x - r` and `ŷ = y - s`, the client `r` and `s`. They want
//! shares of `x∘y`, where `∘` is bilinear ([`Factors`]): scores, mixing, row-wise squares, rows
//! times factors, the sum of rows times factors.
//!
//! ```text
//! offline   client -> server   Enc(r), Enc(s), unless the server has them
//!           server             draws U and V, the masks that x̂ and ŷ will be opened with
//!           server -> client   one half of Enc(U∘s) and of Enc(r∘V), the server keeps the other
//!           both               round theirs: Mc and Ms, shares of U∘s + r∘V
//! online    server -> client   D = x̂ - U, E = ŷ - V; once for each value
//!           client             z = r∘s + Mc + D∘s + r∘E
//!           client -> server   z - t, t drawn offline
//!           server             x̂∘ŷ + Ms + (z - t)
//! ```
//!
//! `z + Ms = r∘s + x̂∘s + r∘ŷ`, so the server ends with `x∘y - t` and the client holds `t`: the
//! invariant is kept. **Bytes online:** 41 bits for each element of `x` and `y` that was not opened
//! before (down) and of the result (up). **Rounds:** one. **Learned:** nothing: `D` and `E` are
//! uniform to the client, which does not know `U` and `V`; `z - t` is uniform to the server, which
//! does not know `t`. What the client gets offline is pseudorandom no matter what it encrypted
//! (`primer_rlwe::product::Product::split`). The server's share `Ms` is kept in its bundle, since
//! no seed gives it again. A value is opened with one mask only and only once, in however many
//! products it appears.
//!
//! **Without the last message.** A product that is requantised next need not be shared anew. The
//! parties hold `x∘y` as it is, the client's share being `z`, and a stop for which the client's
//! share may come late takes both (`primer_stops::late`): its request joins `D` and `E`, its answer
//! comes instead of `z - t`. Product and requantisation are one round trip then. `z` is uniform
//! because of the client's half of the answers, for any `x∘y`, so truncation rounds by the same
//! coin.
//!
//! **Before its factors are answered.** A stop may give the server `x̂ = x̂' + a`, with `x̂'` known
//! when it asks and `a` the client's answer (`primer_stops::Stop::is_provisional`). The server then
//! opens `D' = x̂' - U` beside its request, and the client adds the `a` that it is about to send:
//! `D = D' + a`. The product takes no round trip of its own. The server computes `x̂∘ŷ` when `a` is
//! there, so the product must be one that is shared anew: a stop would want that part sooner. To
//! the client `D'` is as uniform as `D`, and the server gets the same `a` and `z - t` as without.
//!
//! **Late by one bit.** A factor may be one of which the client's share follows from its mask and
//! bits that the server says ([`lifted`]): what is prepared then is affine in these bits.
//!
//! **The paper's form** (FHGS) computes `x̂∘Enc(s)` and `Enc(r)∘ŷ` online, on ciphertexts. Opening
//! against `U` and `V` moves that work offline and leaves kilobytes of plain residues.

mod lifted;

pub(crate) use lifted::{is_lifted, second_part};

use crate::client::OnlineClient;
use crate::compiled::StoredMatrices;
use crate::error::Result;
use crate::exchange::{Exchange, Joined, Mask, MaskSource};
use crate::masks::Masks;
use crate::server::OnlineServer;
use crate::share::{Share, dot};
use primer_plan::graph::{Graph, Op, Step, Value, ValueId};
use primer_plan::plan::Plan;
use primer_ring::matrix::{Matrix, product_residues};
use primer_ring::modulus;
use primer_rlwe::product::{EncodedWeights, Operand, Product, Relation, Weights};
use primer_wire::Channel;
use std::sync::Arc;
use zeroize::Zeroize;

/// The two factors of a product, and what it is.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    pub(crate) left: ValueId,
    pub(crate) right: ValueId,
    kind: Bilinear,
    /// Whether the left one is lifted.
    lifted: bool,
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
    pub(crate) fn of(graph: &Graph, step: &Step) -> Option<Self> {
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
            lifted: is_lifted(graph, left),
        })
    }

    /// Returns the distinct values, in the order in which they are opened.
    pub(crate) fn opens(self) -> Vec<ValueId> {
        match self.left == self.right {
            true => vec![self.left],
            false => vec![self.left, self.right],
        }
    }

    /// Returns the factor that is lifted, if one is.
    pub(crate) fn lifted(self) -> Option<ValueId> {
        self.lifted.then_some(self.left)
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

/// Lists one exchange for each mixed term, or one for both, and one more for a lifted factor; for
/// some bundles together. Heads of bundles are more heads, everything else has more rows.
pub(crate) fn exchanges(graph: &Graph, factors: Factors, bundles: usize) -> Result<Vec<Exchange>> {
    let Heads {
        tokens: n,
        heads,
        width,
    } = Heads::of(graph);
    let Value { rows, cols, .. } = *graph.value(factors.left);
    let mask = |source: MaskSource, joined| Mask {
        source,
        rows: graph.value(source.owner()).rows,
        joined,
    };
    let by_head = |operand, (rows, inputs, outputs), id: ValueId| -> Result<Exchange> {
        let relation = Relation::Heads {
            heads: bundles * heads,
            operand,
            rows,
            inputs,
            outputs,
        };
        let joined = match operand {
            Operand::Columns | Operand::Turned => Joined::Columns,
            Operand::Rows => Joined::Rows,
        };
        let product = Product::new(relation)?;
        Ok(Exchange::new(
            product,
            vec![mask(MaskSource::Mask(id), joined)],
            Joined::Columns,
        ))
    };
    let exchange = |relation: Relation, sources: &[MaskSource]| -> Result<Exchange> {
        let masks = sources.iter().map(|source| mask(*source, Joined::Rows));
        let product = Product::new(relation)?;
        Ok(Exchange::new(product, masks.collect(), Joined::Rows))
    };
    let Factors { left, right, .. } = factors;
    let rows = bundles * rows;
    let by_row = |relation: Relation, ids: &[ValueId]| -> Result<Vec<Exchange>> {
        let sources: Vec<MaskSource> = ids.iter().map(|id| MaskSource::Mask(*id)).collect();
        let mut all = vec![exchange(relation, &sources)?];
        if factors.lifted {
            let relation = Relation::Hadamard { rows, cols };
            all.push(exchange(relation, &[MaskSource::Second(left)])?);
        }
        Ok(all)
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
        Bilinear::Squares => by_row(Relation::RowSums { rows, cols }, &[left]),
        // What is pooled is scaled first; each party adds up the rows of its own.
        Bilinear::ScaleRows | Bilinear::Pool => {
            by_row(Relation::ScaledRows { rows, cols }, &[left, right])
        }
    }
}

/// Returns what the bundles keep: the client the terms that it knows offline, the server its share
/// of the mixed terms.
pub(crate) fn kept(graph: &Graph, factors: Factors, output: ValueId) -> StoredMatrices {
    let size = |id: ValueId| (graph.value(id).rows, graph.value(id).cols);
    let second = factors.lifted.then(|| size(factors.left));
    let client: Vec<_> = [size(output)].into_iter().chain(second).collect();
    StoredMatrices {
        server: client.clone(),
        client,
    }
}

/// What the client needs online.
struct ClientProduct<'a> {
    left: Arc<Share>,
    right: Arc<Share>,
    /// The terms known offline.
    constant: Share,
    /// Rows of the result that are negated.
    negated: &'a [bool],
    /// What its share of the result is to be, if it is shared anew.
    mask: Option<Arc<Share>>,
}

impl ClientProduct<'_> {
    /// Computes the client's share from what was opened; minus the mask, which then goes to the
    /// server, if there is one.
    fn reshare(
        self,
        factors: Factors,
        heads: usize,
        (d, e): (&Share, &Share),
        shift: u32,
    ) -> Share {
        let mut share = self.constant;
        share.add(&factors.product(heads, d, &self.right));
        share.add(&factors.product(heads, &self.left, e));
        share.shift(shift);
        share.negate_rows(self.negated);
        if let Some(mask) = self.mask {
            share.sub(&mask);
        }
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

/// Puts shares of the mixed terms together: `U∘s + r∘V`.
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

/// Returns the terms of the client's share that it knows offline, from the decrypted answers.
pub(crate) fn client_offline(
    graph: &Graph,
    factors: Factors,
    masks: &mut Masks,
    answers: Vec<Share>,
) -> Vec<Share> {
    let (r, s) = (masks.get(factors.left), masks.get(factors.right));
    let second = factors.lifted().map(|id| masks.of(MaskSource::Second(id)));
    client_terms(graph, factors, (&r, &s), second.as_deref(), answers)
}

/// Computes the same of its masks; of a lifted factor, whose second part is given, also those that
/// are its own if the server says so.
fn client_terms(
    graph: &Graph,
    factors: Factors,
    (r, s): (&Share, &Share),
    second: Option<&Share>,
    mut answers: Vec<Share>,
) -> Vec<Share> {
    let second = second.map(|second| {
        let mixed = answers.pop().expect("products have an answer for it");
        factors.client_second((r, s), second, mixed)
    });
    let mut constant = mixed(graph, factors, answers);
    constant.add(&factors.product(graph.shape.heads, r, s));
    [constant].into_iter().chain(second).collect()
}

/// Returns what the server keeps of its shares of the mixed terms.
pub(crate) fn server_offline(
    graph: &Graph,
    factors: Factors,
    mut shares: Vec<Share>,
) -> Vec<Share> {
    let second = factors.lifted.then(|| shares.pop()).flatten();
    let second = second.map(|mixed| factors.second(mixed));
    let first = mixed(graph, factors, shares);
    [first].into_iter().chain(second).collect()
}

/// Encodes what the server multiplies the client's masks with in one exchange: the masks `u` and
/// `v` of each bundle.
pub(crate) fn multiplier(
    graph: &Graph,
    factors: Factors,
    part: usize,
    bundles: &[(Share, Share)],
    product: &Product,
) -> Result<EncodedWeights> {
    let Heads {
        tokens: n,
        heads,
        width,
    } = Heads::of(graph);
    let by_head = |block: &dyn Fn(usize, &Share, &Share) -> Matrix<u64>| {
        let all = bundles
            .iter()
            .flat_map(|(u, v)| (0..heads).map(move |h| (h, u, v)));
        let blocks = Blocks(all.map(|(h, u, v)| block(h, u, v)).collect());
        Ok(product.prepare(Weights::Heads(&blocks.0))?)
    };
    let stacked = |of: fn(&(Share, Share)) -> &Share| {
        let shares: Vec<&Share> = bundles.iter().map(of).collect();
        Joined::Rows.join(&shares, shares[0].rows())
    };
    let (u, v) = (|| stacked(|(u, _)| u), || stacked(|(_, v)| v));
    let repeated = || {
        let factor = v();
        Share::from_fn(product.rows(), product.cols(), |t, _| factor.get(t, 0))
    };
    match (factors.kind, part) {
        (Bilinear::Scores, 0) => by_head(&|h, u, _| u.block(h, width).transpose()),
        (Bilinear::Scores, _) => by_head(&|h, _, v| v.block(h, width).transpose()),
        (Bilinear::Mix, 0) => by_head(&|h, u, _| u.row_block(h, n).transpose()),
        (Bilinear::Mix, _) => by_head(&|h, _, v| v.columns(h * width, width)),
        (Bilinear::Squares, 0) => Ok(product.prepare(Weights::RowSums(&u()))?),
        (Bilinear::Squares, _) => Ok(product.prepare(Weights::Hadamard(&u()))?),
        (Bilinear::ScaleRows | Bilinear::Pool, 0) => {
            let (u, v) = (&u(), &repeated());
            Ok(product.prepare(Weights::ScaledRows { u, v })?)
        }
        (Bilinear::ScaleRows | Bilinear::Pool, _) => {
            Ok(product.prepare(Weights::Hadamard(&repeated()))?)
        }
    }
}

/// Parts of a mask as one matrix for each head; wiped like the mask.
struct Blocks(Vec<Matrix<u64>>);

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|b| b.data_mut().zeroize());
    }
}

/// Hears what the server opens, and computes the client's share online: minus the mask if there is
/// one, which is what it owes the server, or as it is.
pub(crate) fn client_share(
    channel: &mut Channel,
    online: &mut OnlineClient<'_>,
    (factors, output): (Factors, ValueId),
    known: Vec<Share>,
    masked: bool,
) -> Result<Share> {
    online.hear_opened(channel, &factors.opens())?;
    let mask = masked.then(|| online.masks.get(output));
    let plan = online.program.plan();
    let (left, right) = (
        online.masks.get(factors.left),
        online.masks.get(factors.right),
    );
    let constant = factors.constant(known, online.turned(factors.left));
    let product = ClientProduct {
        left,
        right,
        constant,
        negated: online.negated(output),
        mask,
    };
    let opened = (online.opened(factors.left), online.opened(factors.right));
    let heads = plan.graph().shape.heads;
    Ok(product.reshare(factors, heads, opened, factors.shift(plan, output)))
}

/// Computes the server's own part of the result online, of what it kept: after it has opened its
/// shares.
pub(crate) fn server_part(
    online: &OnlineServer<'_>,
    (factors, index): (Factors, usize),
    kept: Vec<Share>,
) -> Share {
    let program = online.model.program();
    let (plan, output) = (program.plan(), program.step(index).output());
    let (x, y) = (online.get(factors.left), online.get(factors.right));
    let mut sum = factors.product(plan.graph().shape.heads, x, y);
    sum.add(&factors.constant(kept, online.turned(factors.left)));
    sum.shift(factors.shift(plan, output));
    sum.negate_rows(online.negated(output));
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
