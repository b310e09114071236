//! FHGS: the product of two shared values, with no homomorphic operation online.
//!
//! **Relation.** The server holds `x̂ = x - r` and `ŷ = y - s`, the client `r` and `s`. They want shares of
//! `x∘y`, where `∘` is bilinear ([`Factors`]): scores, mixing, row-wise squares, rows times factors.
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
//! `z - S - S' = r∘s + x̂∘s + r∘ŷ`, so the server ends with `x∘y - t` and the client holds `t`: the invariant is
//! kept. **Bytes online:** 41 bits for each element of `x` and `y` that was not opened before (down) and of the
//! result (up). **Rounds:** one. **Learned:** nothing: `D` and `E` are uniform to the client,
//! which does not know `U` and `V`; `z - t` is uniform to the server, which does not know `t`. A value is opened
//! with one mask only and only once, in however many products it appears.
//!
//! **Deviation from the paper.** There, `x̂∘Enc(s)` and `Enc(r)∘ŷ` are computed online on ciphertexts sent offline.
//! Opening against `U` and `V` moves that work offline and leaves kilobytes of plain residues.

use crate::client::{self, Masks};
use crate::error::Result;
use crate::kinds::{OPENED, RESHARED};
use crate::scheme::{Form, Program};
use crate::server::{self, Walk};
use crate::share::{Share, dot};
use primer_he::packing::layout::{Chunks, Layout, Shape};
use primer_he::packing::weights::PreparedWeights;
use primer_net::Channel;
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_ring::fixed::exp2;
use primer_ring::matrix::{Matrix, product_residues};
use primer_ring::modulus::{self, K, P};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use zeroize::Zeroize;

/// A mask that is encrypted: of which value, in which form, and its columns.
pub(crate) type Offered = (ValueId, Form, usize);
/// How an answer lies in its ciphertexts.
pub(crate) type Answered = (Layout, Chunks);

/// The two factors of a product, and what it is.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    left: ValueId,
    right: ValueId,
    kind: Bilinear,
}

#[derive(Clone, Copy)]
enum Bilinear {
    /// Per head, `left · rightᵀ`, heads on top of each other.
    Scores,
    /// Per head, `left · right`, heads of the left on top of each other, of the rest side by side.
    Mix,
    /// The inner product of each row with the same row of the other; both are the same value.
    Squares,
    /// Each row of the left times the one element of the right.
    ScaleRows,
}

impl Factors {
    /// Of a step; none unless it is a product of two secrets.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let (left, right, kind) = match step.op {
            Op::Scores { query, key, .. } => (query, key, Bilinear::Scores),
            Op::Mix {
                probabilities,
                value,
                ..
            } => (probabilities, value, Bilinear::Mix),
            Op::SquareSum { input, .. } => (input, input, Bilinear::Squares),
            Op::ScaleRows { input, factor, .. } => (input, factor, Bilinear::ScaleRows),
            Op::Embed { .. }
            | Op::Linear { .. }
            | Op::MergedScores { .. }
            | Op::Stop { .. } => return None,
        };
        Some(Self { left, right, kind })
    }

    /// The distinct values, in the order in which they are opened.
    pub(crate) fn values(self) -> impl Iterator<Item = ValueId> {
        let second = (self.left != self.right).then_some(self.right);
        std::iter::once(self.left).chain(second)
    }

    /// The masks that are encrypted, with their columns, and the layout and chunks of the answers.
    pub(crate) fn messages(self, program: &Program) -> Result<(Vec<Offered>, Vec<Answered>)> {
        let graph = program.plan().graph();
        let sizes = Heads::of(graph);
        let (n, heads, width) = (sizes.tokens, sizes.heads, sizes.width);
        let cols = graph.value(self.left).cols;
        let even = |cols: usize| -> Result<Answered> {
            let layout = program.layout(n)?;
            Ok((layout, Chunks::even(&layout, cols)))
        };
        let blocks = |rows: usize, inputs: usize, outputs: usize| -> Result<Answered> {
            let layout = program.layout(rows)?;
            let shape = Shape::blocks(heads, inputs, outputs);
            Ok((layout, shape.output_chunks(&layout)))
        };
        let (left, right) = (self.left, self.right);
        Ok(match self.kind {
            Bilinear::Scores => {
                let form = Form::Heads { outputs: n };
                let answers = vec![blocks(n, width, n)?, blocks(n, width, n)?];
                (vec![(right, form, cols), (left, form, cols)], answers)
            }
            Bilinear::Mix => {
                let form = Form::Heads { outputs: width };
                let answers = vec![blocks(width, n, n)?, blocks(n, n, width)?];
                let offered = vec![
                    (right, Form::Transposed, heads * n),
                    (left, form, heads * n),
                ];
                (offered, answers)
            }
            Bilinear::Squares => (vec![(left, Form::Rows, cols)], vec![even(1)?]),
            Bilinear::ScaleRows => (
                vec![(left, Form::Rows, cols), (right, Form::Repeated, 1)],
                vec![even(cols)?],
            ),
        })
    }

    /// Bits by which the product is shifted left.
    fn shift(self, plan: &Plan, output: ValueId) -> u32 {
        let fraction = |id: ValueId| plan.scale(id).fraction();
        plan.shift(fraction(self.left) + fraction(self.right), output)
    }

    /// `x∘y` in the clear.
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
        }
    }
}

/// What the client needs online.
pub(crate) struct ClientProduct {
    left: Arc<Share>,
    right: Arc<Share>,
    /// The terms known offline.
    constant: Share,
    /// The client's share of the result.
    mask: Arc<Share>,
}

impl ClientProduct {
    /// What goes to the server: the client's share less the mask.
    fn reshare(self, factors: Factors, heads: usize, d: &Share, e: &Share, shift: u32) -> Share {
        let mut share = self.constant;
        share.add(&factors.product(heads, d, &self.right));
        share.add(&factors.product(heads, &self.left, e));
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

    /// A mask as it is encrypted.
    fn arrange(&self, kind: Bilinear, form: Form, mask: &Share) -> Share {
        let (n, width) = (self.tokens, self.width);
        match (kind, form) {
            (_, Form::Transposed) => Share::from_fn(width, self.heads * n, |c, at| {
                mask.get(at % n, (at / n) * width + c)
            }),
            // Probabilities have their heads on top of each other.
            (Bilinear::Mix, _) => Share::from_fn(n, self.heads * n, |i, at| {
                mask.get((at / n) * n + i, at % n)
            }),
            _ => mask.first_rows(n),
        }
    }

    /// Puts the two mixed terms of scores together. `by_right` comes transposed, a row for each key.
    fn scores(&self, by_right: &Share, by_left: &Share) -> Share {
        let n = self.tokens;
        Share::from_fn(self.heads * n, n, |r, j| {
            let (h, i) = (r / n, r % n);
            modulus::add(by_right.get(j, h * n + i), by_left.get(i, h * n + j))
        })
    }

    /// Puts the two mixed terms of mixing together. `by_right` comes transposed, a row for each feature.
    fn mix(&self, by_right: &Share, by_left: &Share) -> Share {
        let (n, width) = (self.tokens, self.width);
        Share::from_fn(n, self.heads * width, |i, at| {
            let (h, feature) = (at / width, at % width);
            modulus::add(by_right.get(feature, h * n + i), by_left.get(i, at))
        })
    }
}

/// Offline, the client: its material and the mask that becomes its share.
pub(crate) fn client_offline(
    preparation: &mut client::Preparation<'_>,
    channel: &mut Channel,
    factors: Factors,
    output: ValueId,
    masks: &Masks,
) -> Result<(Arc<Share>, ClientProduct)> {
    let graph = preparation.program.plan().graph();
    let (x, y) = (masks.get(factors.left), masks.get(factors.right));
    let mut constant = client_mixed(preparation, channel, factors, x, y)?;
    constant.add(&factors.product(graph.shape.heads, x, y));
    let value = graph.value(output);
    let mask = Arc::new(Share::random(value.rows, value.cols, preparation.rng));
    let product = ClientProduct {
        left: Arc::clone(x),
        right: Arc::clone(y),
        constant,
        mask: Arc::clone(&mask),
    };
    Ok((mask, product))
}

/// `U∘s + r∘V`, masked.
fn client_mixed(
    preparation: &mut client::Preparation<'_>,
    channel: &mut Channel,
    factors: Factors,
    x: &Share,
    y: &Share,
) -> Result<Share> {
    let program = preparation.program;
    let sizes = Heads::of(program.plan().graph());
    let (offered, answered) = factors.messages(program)?;
    let mut offered = offered.into_iter();
    let mut answers = Vec::new();
    for (layout, chunks) in &answered {
        // One mask for each answer, or both for the only one.
        let ahead = if answered.len() == 1 { 2 } else { 1 };
        for (id, form, _) in offered.by_ref().take(ahead) {
            let mask = if id == factors.left { x } else { y };
            preparation.offer(channel, Some(id), form, || {
                sizes.arrange(factors.kind, form, mask)
            })?;
        }
        answers.push(preparation.asker.answer(channel, layout, chunks)?);
    }
    Ok(match (factors.kind, answers.as_mut_slice()) {
        (Bilinear::Scores, [by_right, by_left]) => sizes.scores(by_right, by_left),
        (Bilinear::Mix, [by_right, by_left]) => sizes.mix(by_right, by_left),
        (_, [mixed]) => {
            if let Bilinear::Squares = factors.kind {
                // U∘r and r∘U are the same.
                mixed.shift(1);
            }
            answers.swap_remove(0)
        }
        _ => unreachable!("products have one answer or two"),
    })
}

/// Offline, the server: what it adds to its own product.
pub(crate) fn server_offline(
    preparation: &mut server::Preparation<'_>,
    channel: &mut Channel,
    factors: Factors,
) -> Result<Share> {
    let graph = preparation.program.plan().graph();
    let sizes = Heads::of(graph);
    let Heads {
        tokens: n,
        heads,
        width,
    } = sizes;
    let cols = graph.value(factors.left).cols;
    let (u, v) = (
        preparation.opening(factors.left),
        preparation.opening(factors.right),
    );
    let (left, right) = (Some(factors.left), Some(factors.right));
    let masks = match factors.kind {
        Bilinear::Scores => {
            let form = Form::Heads { outputs: n };
            let blocks = Blocks::new(heads, |h| u.block(h, width).transpose());
            let by_right = server_heads(preparation, channel, factors.right, form, n, &blocks)?;
            let blocks = Blocks::new(heads, |h| v.block(h, width).transpose());
            let by_left = server_heads(preparation, channel, factors.left, form, n, &blocks)?;
            sizes.scores(&by_right, &by_left)
        }
        Bilinear::Mix => {
            let blocks = Blocks::new(heads, |h| u.row_block(h, n).transpose());
            let form = Form::Transposed;
            let by_right = server_heads(preparation, channel, factors.right, form, width, &blocks)?;
            let blocks = Blocks::new(heads, |h| v.columns(h * width, width));
            let form = Form::Heads { outputs: width };
            let by_left = server_heads(preparation, channel, factors.left, form, n, &blocks)?;
            sizes.mix(&by_right, &by_left)
        }
        Bilinear::Squares => {
            let answerer = &mut preparation.answerer;
            answerer.accept(channel, left, Form::Rows, cols)?;
            let mut mask = Share::random(n, 1, preparation.rng);
            let (evaluator, input) = answerer.with(left, Form::Rows);
            let (answer, _) = evaluator.row_sums(input, &u, &mask, preparation.rng)?;
            answerer.reply(channel, &answer)?;
            mask.shift(1);
            mask
        }
        Bilinear::ScaleRows => {
            let answerer = &mut preparation.answerer;
            answerer.accept(channel, left, Form::Rows, cols)?;
            answerer.accept(channel, right, Form::Repeated, 1)?;
            let v = Share::from_fn(n, cols, |t, _| v.get(t, 0));
            let mask = Share::random(n, cols, preparation.rng);
            let layout = preparation.program.layout(n)?;
            let (evaluator, r, s) = answerer.with_two((left, Form::Rows), (right, Form::Repeated));
            let terms = [(s, &**u), (r, &*v)];
            let (answer, _) = evaluator.slotwise(&layout, &terms, &mask, preparation.rng)?;
            answerer.reply(channel, &answer)?;
            mask
        }
    };
    Ok(masks.negated())
}

/// Parts of a mask as one matrix for each head; wiped like the mask.
struct Blocks(Vec<Matrix<u64>>);

impl Blocks {
    fn new(heads: usize, block: impl Fn(usize) -> Matrix<u64>) -> Self {
        Self((0..heads).map(block).collect())
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|b| b.data_mut().zeroize());
    }
}

/// Answers a product of a mask with one matrix for each head; the mask of the answer.
fn server_heads(
    preparation: &mut server::Preparation<'_>,
    channel: &mut Channel,
    id: ValueId,
    form: Form,
    rows: usize,
    Blocks(blocks): &Blocks,
) -> Result<Share> {
    let (inputs, outputs) = (blocks[0].rows(), blocks[0].cols());
    let answerer = &mut preparation.answerer;
    answerer.accept(channel, Some(id), form, blocks.len() * inputs)?;
    let layout = preparation.program.layout(rows)?;
    let weights = PreparedWeights::blocks(preparation.program.params(), &layout, blocks)?;
    let mask = Share::random(rows, blocks.len() * outputs, preparation.rng);
    let (evaluator, input) = answerer.with(Some(id), form);
    let (answer, _) = evaluator.linear(input, &weights, Some(&mask), preparation.rng)?;
    answerer.reply(channel, &answer)?;
    Ok(mask)
}

/// Online, the client. `opened` keeps the differences for products that read the same value.
pub(crate) fn client_online(
    channel: &mut Channel,
    plan: &Plan,
    output: ValueId,
    (factors, product): (Factors, ClientProduct),
    opened: &mut HashMap<ValueId, Share>,
) -> Result<()> {
    let graph = plan.graph();
    for id in factors.values() {
        if let Entry::Vacant(place) = opened.entry(id) {
            let value = graph.value(id);
            let mut difference = Share::zeros(value.rows, value.cols);
            channel.recv_residues(OPENED, K, P, difference.data_mut())?;
            place.insert(difference);
        }
    }
    let (d, e) = (&opened[&factors.left], &opened[&factors.right]);
    let shift = factors.shift(plan, output);
    let share = product.reshare(factors, graph.shape.heads, d, e, shift);
    channel.send_residues(RESHARED, K, share.data().iter().copied())?;
    Ok(channel.flush()?)
}

/// Online, the server: its share of the result.
pub(crate) fn server_online(
    walk: &mut Walk<'_>,
    channel: &mut Channel,
    step: &Step,
    factors: Factors,
    correction: &Share,
    opening: &HashMap<ValueId, Arc<Share>>,
) -> Result<Share> {
    for id in factors.values() {
        if walk.opened.insert(id) {
            let mask = opening.get(&id).expect("drawn when the step was prepared");
            let mut difference = walk.get(id).first_rows(mask.rows());
            difference.sub(mask);
            channel.send_residues(OPENED, K, difference.data().iter().copied())?;
        }
    }
    channel.flush()?;
    let plan = walk.program.plan();
    let shape = &plan.graph().shape;
    let output = step.output();
    let (x, y) = (walk.get(factors.left), walk.get(factors.right));
    let mut sum = factors.product(shape.heads, x, y);
    sum.add(correction);
    sum.shift(factors.shift(plan, output));
    if let Bilinear::Squares = factors.kind {
        // LayerNorm's ε, once for each feature that was summed.
        let epsilon = shape.epsilon * shape.hidden as f64 * exp2(plan.scale(output).fraction());
        let epsilon = modulus::from_signed(epsilon.round() as i64);
        let sums = sum.data_mut().iter_mut();
        sums.for_each(|v| *v = modulus::add(*v, epsilon));
    }
    let mut reshared = Share::zeros(sum.rows(), sum.cols());
    channel.recv_residues(RESHARED, K, P, reshared.data_mut())?;
    sum.add(&reshared);
    Ok(sum)
}

#[cfg(test)]
mod tests;
