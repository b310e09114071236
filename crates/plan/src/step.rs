//! The operations of a graph: what one step reads, does and makes.

use crate::graph::{ValueId, WeightId};
use serde::{Deserialize, Serialize};

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

    /// Returns the name in the program's output.
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
    /// The private one-hot rows (word, then type, then position) times `table`, plus the rows of
    /// `positions`. Where positions are rows of the table, every row comes with a sign that the
    /// client knows ([`Graph::signed`](crate::graph::Graph::signed)).
    Embed {
        /// Word embeddings and below them the type embeddings, all centred; and below them the
        /// position embeddings, unless they are a weight of their own.
        table: WeightId,
        /// Position embeddings, centred, if they are not rows of the table.
        positions: Option<WeightId>,
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
    /// The first product is at the scale of input and weight together. It is not a value of the
    /// graph: it never leaves the step, and only the scores have to fit their accumulator.
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
    /// Scores minus what they are measured against, padded keys far below: the exponents of
    /// softmax. They are an accumulator of their own, with a constant added so that their range is
    /// centred ([`crate::plan::Plan::exponent_map`]).
    Exponents {
        /// The accumulator of the scores.
        scores: ValueId,
        /// For every score, the coarse number that is subtracted from it.
        reference: ValueId,
        /// The accumulator.
        output: ValueId,
    },
    /// The sum of every row.
    RowSum {
        /// The fixed value.
        input: ValueId,
        /// The accumulator, one column.
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
    /// One for every token before the padding and zero after it: the client's secret, of which both
    /// parties have shares already.
    Kept {
        /// A fixed value, one column.
        output: ValueId,
    },
    /// The sum of the rows of all tokens before the padding.
    Pool {
        /// The rows.
        input: ValueId,
        /// Which of them count ([`Op::Kept`]).
        kept: ValueId,
        /// The accumulator, one row.
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
    /// The hyperbolic tangent of a summary.
    Tanh,
    /// The activation of a summary that does not use the hyperbolic tangent.
    Summary,
    /// What the scores of a row are measured against: their maximum, coarsely.
    CoarseMaximum,
    /// Two to the power of an exponent.
    Power,
    /// The reciprocal of a row's sum.
    Reciprocal,
}

impl StopFunction {
    /// All stop functions.
    pub const ALL: [Self; 9] = [
        Self::Requantise,
        Self::Softmax,
        Self::Activation,
        Self::InverseRoot,
        Self::Tanh,
        Self::Summary,
        Self::CoarseMaximum,
        Self::Power,
        Self::Reciprocal,
    ];

    /// Returns the name in the program's output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requantise => "requantise",
            Self::Softmax => "softmax",
            Self::Activation => "activation",
            Self::InverseRoot => "inverse_root",
            Self::Tanh => "tanh",
            Self::Summary => "summary",
            Self::CoarseMaximum => "coarse_maximum",
            Self::Power => "power",
            Self::Reciprocal => "reciprocal",
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
    /// Returns the value that the step produces.
    pub const fn output(&self) -> ValueId {
        match self.op {
            Op::Embed { output, .. }
            | Op::Linear { output, .. }
            | Op::Scores { output, .. }
            | Op::MergedScores { output, .. }
            | Op::Mix { output, .. }
            | Op::SquareSum { output, .. }
            | Op::ScaleRows { output, .. }
            | Op::Exponents { output, .. }
            | Op::RowSum { output, .. }
            | Op::Kept { output }
            | Op::Pool { output, .. }
            | Op::Stop { output, .. } => output,
        }
    }

    /// Returns the values that the step reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        match &self.op {
            Op::Embed { .. } | Op::Kept { .. } => vec![],
            Op::Linear { terms, .. } => terms.iter().map(|t| t.input).collect(),
            Op::Scores { query, key, .. } => vec![*query, *key],
            Op::Mix {
                probabilities,
                value,
                ..
            } => vec![*probabilities, *value],
            Op::ScaleRows { input, factor, .. } => vec![*input, *factor],
            Op::Exponents {
                scores, reference, ..
            } => vec![*scores, *reference],
            Op::Pool { input, kept, .. } => vec![*input, *kept],
            Op::RowSum { input, .. }
            | Op::MergedScores { input, .. }
            | Op::SquareSum { input, .. }
            | Op::Stop { input, .. } => vec![*input],
        }
    }
}
