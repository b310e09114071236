//! BERT as a graph.
//!
//! Rewritings turn Hugging Face's BERT into steps that suit the protocol; all are exact in
//! real arithmetic and are carried out once, on the weights:
//!
//! * **LayerNorm is split.** Its gain γ and shift β belong to the server: they are folded into
//!   the weights that read the normalised value, and, since the residual connection reads it too, into a
//!   diagonal term there. Its centring (subtracting the mean over features) is linear and is folded into the
//!   weights that *produce* its input. What is left of LayerNorm is: requantise, sum of squares,
//!   reciprocal root, product, requantise.
//! * **Scores are in units of log 2.** The factor `log2(e)/√d_head` is folded into the query
//!   weights, so that softmax is a power of two.
//! * **Queries and keys may be merged** ([`Attention::Merged`]). With `Q = X·A + 1·aᵀ` and
//!   `K = X·B + 1·bᵀ` for a head, `A`, `B` and the biases folded as above,
//!
//!   ```text
//!   Q·Kᵀ = X·(A·Bᵀ)·Xᵀ + 1·(X·B·a)ᵀ + (X·A·b)·1ᵀ + (a·b)·1·1ᵀ
//!   ```
//!
//!   The last two terms are the same for every key of a query, and softmax does not see what is added
//!   to a whole row: they are dropped. What is left is `(X·W + 1·uᵀ)·Xᵀ` with `W = A·Bᵀ` and
//!   `u = B·a`: one step with one rounding instead of two projections, two
//!   requantisations and a product. A padded key is a column like any other.

use crate::graph::{
    Attention, Graph, Op, PaperStep, Step, StopFunction, Term, Value, ValueId, Weight, WeightId,
    WeightKind,
};
use crate::shape::{Head, Shape};

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

    fn value(&mut self, name: &str, rows: usize, cols: usize) -> ValueId {
        self.graph.values.push(Value {
            name: self.name(name),
            rows,
            cols,
        });
        ValueId(self.graph.values.len() - 1)
    }

    fn weight(&mut self, name: &str, kind: WeightKind, rows: usize, cols: usize) -> WeightId {
        self.graph.weights.push(Weight {
            name: self.name(name),
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

    /// `input · W + bias`, and the residual connection if there is one.
    fn linear(
        &mut self,
        name: &str,
        input: ValueId,
        rows: usize,
        cols: usize,
        residual: Option<ValueId>,
    ) -> ValueId {
        let weight = self.weight(name, WeightKind::Dense, self.cols(input), cols);
        let mut terms = vec![Term { input, weight }];
        if let Some(skipped) = residual {
            let name = format!("{name}.residual");
            let weight = self.weight(&name, WeightKind::Diagonal, 1, cols);
            terms.push(Term {
                input: skipped,
                weight,
            });
        }
        let bias = self.weight(&format!("{name}.bias"), WeightKind::Bias, 1, cols);
        let output = self.value(&format!("{name}.sum"), rows, cols);
        self.push(Op::Linear {
            terms,
            bias,
            output,
        });
        output
    }

    fn stop(&mut self, name: &str, function: StopFunction, input: ValueId) -> ValueId {
        let output = self.value(name, self.rows(input), self.cols(input));
        self.push(Op::Stop {
            function,
            input,
            output,
        });
        output
    }

    /// LayerNorm without gain and shift, of an accumulator that is already centred.
    fn norm(&mut self, name: &str, sum: ValueId) -> ValueId {
        let (rows, cols) = (self.rows(sum), self.cols(sum));
        let centred = self.stop(&format!("{name}.centred"), StopFunction::Requantise, sum);
        let squares = self.value(&format!("{name}.squares"), rows, 1);
        self.push(Op::SquareSum {
            input: centred,
            output: squares,
        });
        let root = self.stop(&format!("{name}.root"), StopFunction::InverseRoot, squares);
        let scaled = self.value(&format!("{name}.scaled"), rows, cols);
        self.push(Op::ScaleRows {
            input: centred,
            factor: root,
            output: scaled,
        });
        self.stop(name, StopFunction::Requantise, scaled)
    }

    /// A projection of the layer's input, requantised.
    fn projection(&mut self, name: &str, x: ValueId) -> ValueId {
        self.paper = PaperStep::Qkv;
        let sum = self.linear(name, x, self.graph.tokens, self.graph.shape.hidden, None);
        self.stop(name, StopFunction::Requantise, sum)
    }

    /// The scores and the values, from queries and keys.
    fn separate_scores(&mut self, x: ValueId) -> (ValueId, ValueId) {
        let [query, key, value] = ["query", "key", "value"].map(|name| self.projection(name, x));
        let output = self.scores();
        self.push(Op::Scores { query, key, output });
        (output, value)
    }

    /// The scores and the values, without queries and keys.
    fn merged_scores(&mut self, x: ValueId) -> (ValueId, ValueId) {
        let value = self.projection("value", x);
        let (hidden, heads) = (self.graph.shape.hidden, self.graph.shape.heads);
        let output = self.scores();
        let weight = self.weight("scores", WeightKind::Dense, hidden, heads * hidden);
        let bias = self.weight("scores.bias", WeightKind::Bias, 1, heads * hidden);
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
        self.value("scores", heads * n, n)
    }

    fn layer(&mut self, x: ValueId) -> ValueId {
        let n = self.graph.tokens;
        let shape = self.graph.shape.clone();
        let (scores, value) = match self.graph.attention {
            Attention::Separate => self.separate_scores(x),
            Attention::Merged => self.merged_scores(x),
        };
        self.paper = PaperStep::Softmax;
        let probabilities = self.stop("probabilities", StopFunction::Softmax, scores);
        self.paper = PaperStep::AttentionValue;
        let mixed = self.value("attention.sum", n, shape.hidden);
        self.push(Op::Mix {
            probabilities,
            value,
            output: mixed,
        });
        let attention = self.stop("attention", StopFunction::Requantise, mixed);
        self.paper = PaperStep::Others;
        let sum = self.linear("attention_output", attention, n, shape.hidden, Some(x));
        let x = self.norm("attention_norm", sum);
        let inner = self.linear("intermediate", x, n, shape.ffn, None);
        let active = self.stop("intermediate", StopFunction::Activation, inner);
        let sum = self.linear("output", active, n, shape.hidden, Some(x));
        self.norm("output_norm", sum)
    }

    fn head(&mut self, x: ValueId) {
        let n = self.graph.tokens;
        let hidden = self.graph.shape.hidden;
        self.paper = PaperStep::Others;
        let head = self.graph.shape.head.clone();
        let outputs = match head {
            Head::Classify { labels } => {
                let pooled = self.pooler(x);
                let sum = self.linear("classifier", pooled, 1, labels.len(), None);
                vec![self.stop("logits", StopFunction::Requantise, sum)]
            }
            Head::Span => {
                let sum = self.linear("qa_outputs", x, n, 2, None);
                vec![self.stop("logits", StopFunction::Requantise, sum)]
            }
            Head::Encoder { pooled } => {
                let weight = self.weight("last_hidden.gain", WeightKind::Diagonal, 1, hidden);
                let bias = self.weight("last_hidden.bias", WeightKind::Bias, 1, hidden);
                let sum = self.value("last_hidden.sum", n, hidden);
                self.push(Op::Linear {
                    terms: vec![Term { input: x, weight }],
                    bias,
                    output: sum,
                });
                let mut outputs = vec![self.stop("last_hidden", StopFunction::Requantise, sum)];
                if pooled {
                    outputs.push(self.pooler(x));
                }
                outputs
            }
        };
        self.graph.outputs = outputs;
    }

    fn pooler(&mut self, x: ValueId) -> ValueId {
        let sum = self.linear("pooler", x, 1, self.graph.shape.hidden, None);
        self.stop("pooled", StopFunction::Tanh, sum)
    }
}

impl Graph {
    /// The graph of a BERT over a padded number of tokens, with queries and keys.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn bert(shape: &Shape, tokens: usize) -> Self {
        Self::with_attention(shape, Attention::Separate, tokens)
    }

    /// The graph of a BERT over a padded number of tokens.
    ///
    /// # Panics
    /// If the number of tokens is zero or beyond the model's limit, which callers check.
    pub fn with_attention(shape: &Shape, attention: Attention, tokens: usize) -> Self {
        assert!(
            (1..=shape.max_tokens()).contains(&tokens),
            "{tokens} tokens in a BERT"
        );
        let graph = Self {
            shape: shape.clone(),
            attention,
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
        let rows = shape.vocab + shape.types;
        let table = b.weight("embeddings", WeightKind::Dense, rows, shape.hidden);
        let positions = b.weight("positions", WeightKind::Bias, shape.positions, shape.hidden);
        let sum = b.value("embeddings.sum", tokens, shape.hidden);
        b.push(Op::Embed {
            table,
            positions,
            output: sum,
        });
        let mut x = b.norm("embeddings_norm", sum);
        for layer in 0..shape.layers {
            b.layer = Some(layer);
            x = b.layer(x);
        }
        b.layer = None;
        b.head(x);
        b.graph
    }
}
