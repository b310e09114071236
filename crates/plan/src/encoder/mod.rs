//! An encoder as a graph.
//!
//! BERT, DistilBERT, RoBERTa and ELECTRA are one network with small differences, and the shape says
//! which of these a model has: token types or none, a projection after the embeddings or none, and
//! what stands on top.
//!
//! Several transformations turn Hugging Face's encoders into steps that suit the protocol. All are
//! exact in real arithmetic and are carried out once, on the weights:
//!
//! * **LayerNorm is split.** Its gain γ and shift β belong to the server: they are folded into the
//!   weights that read the normalised value, and, since the residual connection reads it too, into
//!   a diagonal term there. Its centring (subtracting the mean over features) is linear and is
//!   folded into the weights that *produce* its input. What is left of LayerNorm is: requantise,
//!   sum of squares, reciprocal root, product, requantise.
//! * **Scores are in units of log 2.** The factor `log2(e)/√d_head` is folded into the query
//!   weights, so that softmax is a power of two.
//! * **Functions are looked up.** A look-up is cheap for an index of at most ten bits and any
//!   function, so functions are decomposed until only such indices are left. Softmax becomes, for a
//!   row `s`,
//!
//!   ```text
//!   o_j = a public offset of the head  in heads that are measured, a coarse maximum of the row
//!   e_j = 2^(s_j - o_j)                looked up; zero where s_j is far below the maximum
//!   p_j = e_j · (1 / Σ e_j)            one reciprocal a row
//!   ```
//!
//!   and an activation is looked up at a coarse index of its argument, among as many entries as the
//!   range of its feature needs (`function/sorted.rs`). Features of the wide layer may be in any
//!   order, as long as the maps on both sides use the same; the server sorts them by their ranges,
//!   so that a plan only has to say how many need how many entries.
//! * **An embedding is one product.** Positions are rows of the table, so that a one-hot row stands
//!   for a whole embedding. The client sends these rows as bits, which flips the sign of some of
//!   them ([`Graph::signed`]), and LayerNorm removes the sign again.
//! * **A mean is a sum.** The mean over a text's tokens is taken over as many rows as the text has,
//!   which only the client may know. The rows are multiplied by the client's secret ones and zeros
//!   ([`Op::Kept`], [`Op::Pool`]); the client learns their sum and divides by the length of its
//!   text. The sum tells it no more than the mean.
//!
//! The paper's schemes compute some of these otherwise (`paper/plan`). Where graphs may differ,
//! this module asks a [`Design`]; everything else is the same in all of them.

mod builder;
mod head;
mod softmax;

pub use builder::Builder;

use crate::design::{Design, LookedUp};
use crate::graph::{Graph, Op, PaperStep, StopFunction, ValueId};
use crate::role::{LinearMap, ValueRole};
use crate::shape::Shape;

impl Builder {
    /// Adds a layer.
    fn layer<D: Design + ?Sized>(&mut self, design: &D, x: ValueId) -> ValueId {
        let n = self.graph.tokens;
        let shape = self.graph.shape.clone();
        let (scores, value) = design.scores(self, x);
        self.paper = PaperStep::Softmax;
        let probabilities = design.probabilities(self, scores);
        self.paper = PaperStep::AttentionValue;
        let mixed = self.value("attention.sum", ValueRole::Mixed, n, shape.hidden);
        self.push(Op::Mix {
            probabilities,
            value,
            output: mixed,
        });
        let mixed = self.requantise("attention", mixed);
        self.paper = PaperStep::Others;
        let narrow = (n, shape.hidden);
        let map = LinearMap::AttentionOutput;
        let sum = self.linear(map, ValueRole::Centred, mixed, narrow, Some(x));
        let x = self.norm("attention_norm", sum);
        let (map, role) = (LinearMap::Intermediate, ValueRole::Intermediate);
        let inner = self.linear(map, role, x, (n, shape.ffn), None);
        let active = self.stop("intermediate", role, StopFunction::Activation, inner);
        let map = LinearMap::Output;
        let sum = self.linear(map, ValueRole::Centred, active, narrow, Some(x));
        self.norm("output_norm", sum)
    }

    /// Adds the steps from one-hot rows to what the first layer reads.
    fn embeddings<D: Design + ?Sized>(&mut self, design: &D) -> ValueId {
        let (tokens, shape) = (self.graph.tokens, self.graph.shape.clone());
        let width = shape.embedding;
        let (table, positions) = design.table(self);
        let sum = self.value("embeddings.sum", ValueRole::Centred, tokens, width);
        self.push(Op::Embed {
            table,
            positions,
            output: sum,
        });
        let x = self.norm("embeddings_norm", sum);
        if !shape.is_projected() {
            return x;
        }
        let (map, size) = (LinearMap::Projection, (tokens, shape.hidden));
        let sum = self.linear(map, ValueRole::Projected, x, size, None);
        self.requantise(map.name(), sum)
    }
}

impl Graph {
    /// Makes the graph of an encoder over a padded number of tokens.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn new(shape: &Shape, tokens: usize) -> Self {
        Self::by(&LookedUp, shape, tokens)
    }

    /// Makes the graph of an encoder by another design.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn by<D: Design + ?Sized>(design: &D, shape: &Shape, tokens: usize) -> Self {
        assert!(
            (1..=shape.max_tokens()).contains(&tokens),
            "{tokens} tokens in an encoder"
        );
        let mut b = Builder::new(shape, tokens);
        let mut x = b.embeddings(design);
        for layer in 0..shape.layers {
            b.layer = Some(layer);
            x = b.layer(design, x);
        }
        b.layer = None;
        b.head(x);
        b.graph
    }
}
