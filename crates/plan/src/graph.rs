//! The steps of a BERT and the values between them: structure without numbers.
//!
//! A [`Graph`] is the only place that knows the order of operations in a BERT. It is built from a
//! [`Shape`] and a number of tokens ([`crate::bert`]), and everybody walks it: the float reference, the
//! fixed-point reference, both parties of the protocol, the cost estimate and the printer.
//!
//! Values alternate between two kinds. An *accumulator* is the exact result of a linear step at
//! a fine scale; a *fixed* value is an accumulator after a stop (a requantisation or a non-linear
//! function) has brought it back to few bits. Linear steps read fixed values only.

use crate::shape::Shape;
use serde::{Deserialize, Serialize};

/// A value's place in [`Graph::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub(crate) usize);

impl ValueId {
    /// The index into [`Graph::values`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A weight's place in [`Graph::weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WeightId(pub(crate) usize);

impl WeightId {
    /// The index into [`Graph::weights`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A matrix that exists between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its name, for people and for error messages.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

/// How a weight is laid out and what it may be folded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightKind {
    /// A full matrix.
    Dense,
    /// `x ↦ g⊙x - ⟨h, x⟩`: a gain for every column and a mean taken off all of them (one row each).
    Diagonal,
    /// Added to an accumulator at its own scale.
    Bias,
}

/// A matrix that the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Its name, for people and for error messages.
    pub name: String,
    /// Its form.
    pub kind: WeightKind,
    /// Rows (inputs).
    pub rows: usize,
    /// Columns (outputs).
    pub cols: usize,
}

/// How the scores of a layer are computed from its input; [`crate::bert`] says why both are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// Queries and keys are projected, requantised and multiplied.
    Separate,
    /// Both projections are one matrix for each head, between the input and itself.
    Merged,
}

impl Attention {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Separate, Self::Merged];

    /// The name in the program's output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Merged => "merged",
        }
    }
}

/// The steps of the paper's ablation table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaperStep {
    /// Word, position and type embeddings with their LayerNorm.
    Embed,
    /// Projections to queries, keys and values.
    Qkv,
    /// Scores `Q·Kᵀ`.
    Qk,
    /// Softmax of the scores.
    Softmax,
    /// Probabilities times values.
    AttentionValue,
    /// Output projection, LayerNorms, feed-forward, pooler and head.
    Others,
}

impl PaperStep {
    /// All steps in the table's order.
    pub const ALL: [Self; 6] = [
        Self::Embed,
        Self::Qkv,
        Self::Qk,
        Self::Softmax,
        Self::AttentionValue,
        Self::Others,
    ];

    /// The name in the program's output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embed => "embed",
            Self::Qkv => "qkv",
            Self::Qk => "qk",
            Self::Softmax => "softmax",
            Self::AttentionValue => "attention_value",
            Self::Others => "others",
        }
    }
}

/// One input of a linear step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The fixed value; if the result has fewer rows, its first rows.
    pub input: ValueId,
    /// A dense or diagonal weight.
    pub weight: WeightId,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// The private one-hot rows (word, then type) times `table`, plus the rows of `positions`.
    Embed {
        /// Word embeddings and below them the type embeddings, all centred.
        table: WeightId,
        /// Position embeddings, centred.
        positions: WeightId,
        /// The accumulator.
        output: ValueId,
    },
    /// The sum of the terms and the bias.
    Linear {
        /// Products to be added up.
        terms: Vec<Term>,
        /// Added to every row.
        bias: WeightId,
        /// The accumulator.
        output: ValueId,
    },
    /// Per head, `query · keyᵀ`; row `h·n + i` of the result is head `h`, token `i`.
    Scores {
        /// Queries of all heads side by side.
        query: ValueId,
        /// Keys of all heads side by side.
        key: ValueId,
        /// The accumulator.
        output: ValueId,
    },
    /// Per head, `(input · weight + bias) · inputᵀ`, laid out as by [`Op::Scores`].
    ///
    /// The first product is at the scale of input and weight together. It is no value of the graph:
    /// it never leaves the step, and only the scores have to fit their accumulator.
    MergedScores {
        /// The normalised value that is query and key at once.
        input: ValueId,
        /// The matrices of all heads side by side.
        weight: WeightId,
        /// Added to every row of the first product, at its scale.
        bias: WeightId,
        /// The accumulator.
        output: ValueId,
    },
    /// Per head, `probabilities · value`, heads side by side again.
    Mix {
        /// Probabilities as [`Op::Scores`] lays them out.
        probabilities: ValueId,
        /// Values of all heads side by side.
        value: ValueId,
        /// The accumulator.
        output: ValueId,
    },
    /// The sum of the squares of every row.
    SquareSum {
        /// A centred value.
        input: ValueId,
        /// The accumulator, one column.
        output: ValueId,
    },
    /// Every row times its own factor.
    ScaleRows {
        /// The rows.
        input: ValueId,
        /// The factors, one column.
        factor: ValueId,
        /// The accumulator.
        output: ValueId,
    },
    /// A stop: an accumulator becomes a fixed value.
    Stop {
        /// Which function is applied on the way.
        function: StopFunction,
        /// The accumulator.
        input: ValueId,
        /// The fixed value.
        output: ValueId,
    },
}

/// The function of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopFunction {
    /// None: the value only loses its low bits.
    Requantise,
    /// Softmax along rows, padded keys masked.
    Softmax,
    /// The feed-forward activation.
    Activation,
    /// The reciprocal square root of LayerNorm.
    InverseRoot,
    /// The pooler's tangent.
    Tanh,
}

impl StopFunction {
    /// All stop functions.
    pub const ALL: [Self; 5] = [
        Self::Requantise,
        Self::Softmax,
        Self::Activation,
        Self::InverseRoot,
        Self::Tanh,
    ];

    /// The name in the program's output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requantise => "requantise",
            Self::Softmax => "softmax",
            Self::Activation => "activation",
            Self::InverseRoot => "inverse_root",
            Self::Tanh => "tanh",
        }
    }
}

/// A step: what it does, where it belongs in the paper's table, and in which layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The column of the paper's table.
    pub paper: PaperStep,
    /// The layer, counted from 0, if it is in one.
    pub layer: Option<usize>,
    /// The operation.
    pub op: Op,
}

impl Step {
    /// The value that the step produces.
    pub const fn output(&self) -> ValueId {
        match self.op {
            Op::Embed { output, .. }
            | Op::Linear { output, .. }
            | Op::Scores { output, .. }
            | Op::MergedScores { output, .. }
            | Op::Mix { output, .. }
            | Op::SquareSum { output, .. }
            | Op::ScaleRows { output, .. }
            | Op::Stop { output, .. } => output,
        }
    }

    /// The values that the step reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        match &self.op {
            Op::Embed { .. } => vec![],
            Op::Linear { terms, .. } => terms.iter().map(|t| t.input).collect(),
            Op::Scores { query, key, .. } => vec![*query, *key],
            Op::Mix {
                probabilities,
                value,
                ..
            } => vec![*probabilities, *value],
            Op::ScaleRows { input, factor, .. } => vec![*input, *factor],
            Op::MergedScores { input, .. }
            | Op::SquareSum { input, .. }
            | Op::Stop { input, .. } => vec![*input],
        }
    }
}

/// The steps of one inference over a number of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The model's shape.
    pub shape: Shape,
    /// How scores are computed.
    pub attention: Attention,
    /// Tokens of the padded input.
    pub tokens: usize,
    /// Every intermediate value.
    pub values: Vec<Value>,
    /// Every weight.
    pub weights: Vec<Weight>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The values that the client learns at the end.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// A value by its identifier.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// A weight by its identifier.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.0]
    }

    /// The identifiers of all weights in order.
    pub fn weight_ids(&self) -> impl Iterator<Item = WeightId> + use<> {
        (0..self.weights.len()).map(WeightId)
    }

    /// The identifiers of all values in order.
    pub fn value_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len()).map(ValueId)
    }

    /// For every value, the index of the last step that reads it: what can be dropped after it.
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last = vec![0; self.values.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for input in step.inputs() {
                last[input.0] = i;
            }
        }
        for output in &self.outputs {
            last[output.0] = self.steps.len();
        }
        last
    }
}
