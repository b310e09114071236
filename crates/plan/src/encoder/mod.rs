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
//! * **Queries and keys may be merged** ([`Form::Merged`]). With `Q = X·A + 1·aᵀ` and
//!   `K = X·B + 1·bᵀ` for a head, `A`, `B` and the biases folded as above,
//!
//!   ```text
//!   Q·Kᵀ = X·(A·Bᵀ)·Xᵀ + 1·(X·B·a)ᵀ + (X·A·b)·1ᵀ + (a·b)·1·1ᵀ
//!   ```
//!
//!   The last two terms are the same for every key of a query, and softmax does not depend on what
//!   is added to a whole row, so they are dropped. What is left is `(X·W + 1·uᵀ)·Xᵀ` with
//!   `W = A·Bᵀ` and `u = B·a`: one step with one rounding instead of two projections, two
//!   requantisations and a product. A padded key is a column like any other.
//! * **Functions may be looked up** ([`Form::LookedUp`]). A look-up is cheap for an index of eight
//!   or nine bits and any function, so functions are decomposed until only such indices are left.
//!   Softmax becomes, for a row `s`,
//!
//!   ```text
//!   o_j = a number near max(s)         a coarse maximum; far below the maximum, near s_j instead
//!   e_j = 2^(s_j - o_j)                looked up; zero where s_j is far below the maximum
//!   p_j = e_j · (1 / Σ e_j)            one reciprocal a row
//!   ```
//!
//!   and an activation is looked up at a coarse index of its argument, among as many entries as the
//!   range of its feature needs (`function/sorted.rs`). Features of the wide layer may be in any
//!   order, as long as the maps on both sides use the same; the server sorts them by their ranges,
//!   so that a plan only has to say how many need how many entries. In this form the client may
//!   send its one-hot rows as bits, which flips the sign of some of them ([`Graph::signed`]):
//!   positions are rows of the table, so that a whole embedding is flipped, and LayerNorm removes
//!   the sign again.
//! * **A mean is a sum.** The mean over a text's tokens is taken over as many rows as the text has,
//!   which only the client may know. The rows are multiplied by the client's secret ones and zeros
//!   ([`Op::Kept`], [`Op::Pool`]); the client learns their sum and divides by the length of its
//!   text. The sum tells it no more than the mean.

mod head;

use crate::graph::{
    Form, Graph, Op, PaperStep, Step, StopFunction, Term, Value, ValueId, Weight, WeightId,
    WeightKind,
};
use crate::role::{LinearMap, ValueRole};
use crate::shape::Shape;

struct Builder {
    graph: Graph,
    paper: PaperStep,
    layer: Option<usize>,
}

impl Builder {
    fn name(&self, name: &str) -> String {
        match self.layer {
            Some(layer) => format!("layer{layer}.{name}"),
            None => name.to_owned(),
        }
    }

    fn value(&mut self, name: &str, role: ValueRole, rows: usize, cols: usize) -> ValueId {
        self.graph.values.push(Value {
            name: self.name(name),
            role,
            rows,
            cols,
        });
        ValueId(self.graph.values.len() - 1)
    }

    fn weight(&mut self, map: LinearMap, kind: WeightKind, rows: usize, cols: usize) -> WeightId {
        self.graph.weights.push(Weight {
            name: self.name(&map.weight_name(kind)),
            layer: self.layer,
            map,
            kind,
            rows,
            cols,
        });
        WeightId(self.graph.weights.len() - 1)
    }

    fn push(&mut self, op: Op) {
        self.graph.steps.push(Step {
            paper: self.paper,
            layer: self.layer,
            op,
        });
    }

    fn rows(&self, id: ValueId) -> usize {
        self.graph.value(id).rows
    }

    fn cols(&self, id: ValueId) -> usize {
        self.graph.value(id).cols
    }

    /// Adds the step `input · W + bias`, with the residual connection if there is one.
    fn linear(
        &mut self,
        map: LinearMap,
        role: ValueRole,
        input: ValueId,
        (rows, cols): (usize, usize),
        residual: Option<ValueId>,
    ) -> ValueId {
        let weight = self.weight(map, WeightKind::Dense, self.cols(input), cols);
        let mut terms = vec![Term { input, weight }];
        if let Some(skipped) = residual {
            let weight = self.weight(map, WeightKind::Diagonal, 1, cols);
            terms.push(Term {
                input: skipped,
                weight,
            });
        }
        let bias = self.weight(map, WeightKind::Bias, 1, cols);
        let output = self.value(&format!("{}.sum", map.name()), role, rows, cols);
        self.push(Op::Linear {
            terms,
            bias,
            output,
        });
        output
    }

    fn stop(
        &mut self,
        name: &str,
        role: ValueRole,
        function: StopFunction,
        input: ValueId,
    ) -> ValueId {
        let output = self.value(name, role, self.rows(input), self.cols(input));
        self.push(Op::Stop {
            function,
            input,
            output,
        });
        output
    }

    /// Adds a stop without a function, which leaves the value what it is.
    fn requantise(&mut self, name: &str, input: ValueId) -> ValueId {
        let role = self.graph.value(input).role;
        self.stop(name, role, StopFunction::Requantise, input)
    }

    /// Adds LayerNorm without gain and shift, of an accumulator that is already centred.
    fn norm(&mut self, name: &str, sum: ValueId) -> ValueId {
        let (rows, cols) = (self.rows(sum), self.cols(sum));
        let centred = self.requantise(&format!("{name}.centred"), sum);
        let squares = self.value(&format!("{name}.squares"), ValueRole::SquareSum, rows, 1);
        self.push(Op::SquareSum {
            input: centred,
            output: squares,
        });
        let root = format!("{name}.root");
        let root = self.stop(
            &root,
            ValueRole::InverseRoot,
            StopFunction::InverseRoot,
            squares,
        );
        let scaled = self.value(&format!("{name}.scaled"), ValueRole::Hidden, rows, cols);
        self.push(Op::ScaleRows {
            input: centred,
            factor: root,
            output: scaled,
        });
        self.requantise(name, scaled)
    }

    /// Adds a projection of the layer's input, requantised.
    fn projection(&mut self, map: LinearMap, role: ValueRole, x: ValueId) -> ValueId {
        self.paper = PaperStep::Qkv;
        let size = (self.graph.tokens, self.graph.shape.hidden);
        let sum = self.linear(map, role, x, size, None);
        self.requantise(map.name(), sum)
    }

    /// Adds the scores and the values, from queries and keys.
    fn separate_scores(&mut self, x: ValueId) -> (ValueId, ValueId) {
        let query = self.projection(LinearMap::Query, ValueRole::Query, x);
        let key = self.projection(LinearMap::Key, ValueRole::Key, x);
        let value = self.projection(LinearMap::Value, ValueRole::Value, x);
        let output = self.scores();
        self.push(Op::Scores { query, key, output });
        (output, value)
    }

    /// Adds the scores and the values, without queries and keys.
    fn merged_scores(&mut self, x: ValueId) -> (ValueId, ValueId) {
        let value = self.projection(LinearMap::Value, ValueRole::Value, x);
        let (hidden, heads) = (self.graph.shape.hidden, self.graph.shape.heads);
        let output = self.scores();
        let weight = self.weight(LinearMap::Scores, WeightKind::Dense, hidden, heads * hidden);
        let bias = self.weight(LinearMap::Scores, WeightKind::Bias, 1, heads * hidden);
        self.push(Op::MergedScores {
            input: x,
            weight,
            bias,
            output,
        });
        (output, value)
    }

    fn scores(&mut self) -> ValueId {
        self.paper = PaperStep::Qk;
        let (n, heads) = (self.graph.tokens, self.graph.shape.heads);
        self.value("scores", ValueRole::Scores, heads * n, n)
    }

    /// Adds the probabilities, from a coarse maximum and looked-up powers.
    fn looked_up_softmax(&mut self, scores: ValueId) -> ValueId {
        let (rows, cols) = (self.rows(scores), self.cols(scores));
        let coarse = StopFunction::CoarseMaximum;
        let reference = self.stop("references", ValueRole::Reference, coarse, scores);
        let exponents = self.value("exponents", ValueRole::Exponents, rows, cols);
        self.push(Op::Rest {
            scores,
            reference,
            output: exponents,
        });
        let powers = self.stop("powers", ValueRole::Powers, StopFunction::Power, exponents);
        let total = self.value("totals", ValueRole::Total, rows, 1);
        self.push(Op::RowSum {
            input: powers,
            output: total,
        });
        let function = StopFunction::Reciprocal;
        let factor = self.stop("reciprocals", ValueRole::Reciprocal, function, total);
        let scaled = "probabilities.scaled";
        let scaled = self.value(scaled, ValueRole::Probabilities, rows, cols);
        self.push(Op::ScaleRows {
            input: powers,
            factor,
            output: scaled,
        });
        self.requantise("probabilities", scaled)
    }

    fn layer(&mut self, x: ValueId) -> ValueId {
        let n = self.graph.tokens;
        let shape = self.graph.shape.clone();
        let form = self.graph.form;
        let (scores, value) = match form {
            Form::Separate | Form::LookedUp => self.separate_scores(x),
            Form::Merged => self.merged_scores(x),
        };
        self.paper = PaperStep::Softmax;
        let probabilities = match form {
            Form::Separate | Form::Merged => {
                let (role, softmax) = (ValueRole::Probabilities, StopFunction::Softmax);
                self.stop("probabilities", role, softmax, scores)
            }
            Form::LookedUp => self.looked_up_softmax(scores),
        };
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
    fn embeddings(&mut self) -> ValueId {
        let (tokens, shape) = (self.graph.tokens, self.graph.shape.clone());
        let (map, width) = (LinearMap::Embedding, shape.embedding);
        let table = self.weight(map, WeightKind::Dense, self.graph.one_hot(), width);
        let positions = match self.graph.form {
            Form::Separate | Form::Merged => {
                Some(self.weight(map, WeightKind::Bias, shape.positions, width))
            }
            Form::LookedUp => None,
        };
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
    /// Makes the graph of an encoder over a padded number of tokens, with queries and keys.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn bert(shape: &Shape, tokens: usize) -> Self {
        Self::with_form(shape, Form::Separate, tokens)
    }

    /// Makes the graph of an encoder over a padded number of tokens.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn with_form(shape: &Shape, form: Form, tokens: usize) -> Self {
        assert!(
            (1..=shape.max_tokens()).contains(&tokens),
            "{tokens} tokens in an encoder"
        );
        let graph = Self {
            shape: shape.clone(),
            form,
            tokens,
            values: Vec::new(),
            weights: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
        };
        let mut b = Builder {
            graph,
            paper: PaperStep::Embed,
            layer: None,
        };
        let mut x = b.embeddings();
        for layer in 0..shape.layers {
            b.layer = Some(layer);
            x = b.layer(x);
        }
        b.layer = None;
        b.head(x);
        b.graph
    }
}
