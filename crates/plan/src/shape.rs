//! The public shape of a model.

use crate::function::Activation;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What stands on top of the encoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Head {
    /// A classifier on the pooled first token, with the names of its labels.
    Classify {
        /// One name per output.
        labels: Vec<String>,
    },
    /// Start and end scores for every token (extractive question answering).
    Span,
    /// The encoder itself: the last hidden state, and the pooled first token if there is a pooler.
    Encoder {
        /// Whether the model has a pooler.
        pooled: bool,
    },
}

/// The sizes of a BERT: all that a client learns about the model besides its scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Transformer layers.
    pub layers: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Attention heads; they divide the features evenly.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Positions, and so the largest number of tokens.
    pub positions: usize,
    /// Token types.
    pub types: usize,
    /// The feed-forward activation.
    pub activation: Activation,
    /// LayerNorm's ε.
    pub epsilon: f64,
    /// What stands on top.
    pub head: Head,
}

/// A shape that cannot be a BERT, or not one that this program handles.
#[derive(Debug, Error, PartialEq)]
pub enum ShapeError {
    /// A size is zero or beyond its limit.
    #[error("{what} is {value}, but must be between 1 and {limit}")]
    Size {
        /// The size's name in the configuration.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest value handled.
        limit: usize,
    },
    /// The features do not divide into heads.
    #[error("hidden_size {hidden} is not divisible by num_attention_heads {heads}")]
    Heads {
        /// Features.
        hidden: usize,
        /// Heads.
        heads: usize,
    },
    /// ε is not a small positive number.
    #[error("layer_norm_eps is {0}, but must be between 0 and 1")]
    Epsilon(f64),
}

impl Shape {
    /// Checks every size against the limits that bound memory and time for any peer's shape.
    ///
    /// # Errors
    /// [`ShapeError`] with the first size at fault.
    pub fn validate(&self) -> Result<(), ShapeError> {
        let labels = match &self.head {
            Head::Classify { labels } => labels.len(),
            Head::Span | Head::Encoder { .. } => 1,
        };
        for (what, value, limit) in [
            ("num_hidden_layers", self.layers, 96),
            ("hidden_size", self.hidden, 4096),
            ("num_attention_heads", self.heads, 128),
            ("intermediate_size", self.ffn, 16_384),
            ("vocab_size", self.vocab, 1 << 20),
            ("max_position_embeddings", self.positions, 4096),
            ("type_vocab_size", self.types, 64),
            ("the number of labels", labels, 4096),
        ] {
            if value == 0 || value > limit {
                return Err(ShapeError::Size { what, value, limit });
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(ShapeError::Heads {
                hidden: self.hidden,
                heads: self.heads,
            });
        }
        if !(self.epsilon >= 0.0 && self.epsilon < 1.0) {
            return Err(ShapeError::Epsilon(self.epsilon));
        }
        Ok(())
    }

    /// Features of one attention head.
    pub const fn head_size(&self) -> usize {
        self.hidden / self.heads
    }

    /// The largest number of tokens of one input: the positions, and what a softmax row can hold.
    pub fn max_tokens(&self) -> usize {
        self.positions.min(512)
    }
}
