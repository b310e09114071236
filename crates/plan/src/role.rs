//! What the values and weights of a graph are.
//!
//! [`crate::encoder`] gives every value a [`ValueRole`] and says of every weight to which
//! [`LinearMap`] it belongs. Code that treats one value differently from another asks for its role;
//! names are for people, and only [`crate::encoder`] depends on the order of steps. Roles follow
//! from the shape and are not sent with a plan.

use crate::graph::WeightKind;

/// What a value is. A requantisation does not change it: an accumulator and the fixed value that
/// is made from it have the same role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueRole {
    /// What LayerNorm is applied to. The mean over its features is zero already.
    Centred,
    /// For every token, the sum of the squares of a centred value.
    SquareSum,
    /// For every token, the reciprocal root of its sum of squares.
    InverseRoot,
    /// What LayerNorm leaves, without its gain and shift: what the next linear maps read.
    Hidden,
    /// Embeddings brought to the width of the layers, where they have another.
    Projected,
    /// The queries of all heads side by side.
    Query,
    /// The keys of all heads side by side.
    Key,
    /// What attention mixes, for all heads side by side.
    Value,
    /// For every head and token, a score for each key.
    Scores,
    /// What each score is measured against: a number near the maximum of its row.
    Reference,
    /// Scores minus what they are measured against.
    Exponents,
    /// Two to the power of the exponents: probabilities up to a factor for each row.
    Powers,
    /// The sum of a row of powers.
    Total,
    /// The reciprocal of such a sum.
    Reciprocal,
    /// For every head and token, a probability for each key.
    Probabilities,
    /// Values mixed by the probabilities, all heads side by side.
    Mixed,
    /// The wide layer between two narrow ones, before or after its activation.
    Intermediate,
    /// The first token's summary, before or after its function.
    Pooled,
    /// For every token, whether it is there or padding.
    Kept,
    /// The vector of the whole text, up to a factor that the client knows.
    Sentence,
    /// The scores of labels, or those of where an answer starts and ends.
    Logits,
    /// The hidden state as a result: with gain and shift.
    LastHidden,
}

/// A linear map of an encoder. Each has weights of up to three kinds ([`WeightKind`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinearMap {
    /// From one-hot rows to features; its bias holds the positions.
    Embedding,
    /// From embeddings to the width of the layers.
    Projection,
    /// To the queries.
    Query,
    /// To the keys.
    Key,
    /// To the values.
    Value,
    /// From the input to what it is multiplied with for the scores: queries and keys merged.
    Scores,
    /// From mixed values back to the features, with the residual connection.
    AttentionOutput,
    /// To the wide layer.
    Intermediate,
    /// From the wide layer back to the features, with the residual connection.
    Output,
    /// Gain and shift of the last LayerNorm.
    LastHidden,
    /// To the first token's summary.
    Pooler,
    /// To the labels, from the summary or from every token.
    Classifier,
    /// From features to the start and the end of an answer.
    Span,
}

impl LinearMap {
    /// Returns the name for people; weights and results of the map are named after it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embeddings",
            Self::Projection => "embeddings_project",
            Self::Query => "query",
            Self::Key => "key",
            Self::Value => "value",
            Self::Scores => "scores",
            Self::AttentionOutput => "attention_output",
            Self::Intermediate => "intermediate",
            Self::Output => "output",
            Self::LastHidden => "last_hidden",
            Self::Pooler => "pooler",
            Self::Classifier => "classifier",
            Self::Span => "qa_outputs",
        }
    }

    /// Returns the name of its weight of kind `kind`.
    pub(crate) fn weight_name(self, kind: WeightKind) -> String {
        match (self, kind) {
            (Self::Embedding, WeightKind::Bias) => "positions".to_owned(),
            (Self::LastHidden, WeightKind::Diagonal) => "last_hidden.gain".to_owned(),
            (map, WeightKind::Dense) => map.name().to_owned(),
            (map, WeightKind::Diagonal) => format!("{}.residual", map.name()),
            (map, WeightKind::Bias) => format!("{}.bias", map.name()),
        }
    }
}

/// What distinguishes a weight from all others of its model, in every graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WeightKey {
    /// The layer, counted from 0, if it is in one.
    pub layer: Option<usize>,
    /// The map that it belongs to.
    pub map: LinearMap,
    /// Which of the map's weights it is.
    pub kind: WeightKind,
}
