//! The public shape of a model.

use crate::function::Activation;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Rows of the largest table of positions.
pub const MAX_POSITIONS: usize = 4096;

/// Which of Hugging Face's encoders a model is. A name for people: what it computes follows from
/// the rest of its [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// BERT.
    Bert,
    /// DistilBERT.
    DistilBert,
    /// RoBERTa.
    Roberta,
    /// XLM-RoBERTa.
    XlmRoberta,
    /// ELECTRA.
    Electra,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Bert,
        Self::DistilBert,
        Self::Roberta,
        Self::XlmRoberta,
        Self::Electra,
    ];

    /// Returns what the names of its classes begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bert => "Bert",
            Self::DistilBert => "DistilBert",
            Self::Roberta => "Roberta",
            Self::XlmRoberta => "XLMRoberta",
            Self::Electra => "Electra",
        }
    }
}

/// What stands on top of the encoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Head {
    /// A classifier on a summary of the first token, with the names of its labels.
    Classify {
        /// One name per output.
        labels: Vec<String>,
        /// The function after the summary.
        summary: Summary,
        /// What the outputs mean.
        problem: Problem,
    },
    /// Start and end scores for every token (extractive question answering).
    Span,
    /// A classifier on every token, with the names of its labels.
    Tokens {
        /// One name per output.
        labels: Vec<String>,
    },
    /// One vector for the whole text.
    Sentence {
        /// How it is made of the last hidden state.
        pooling: Pooling,
        /// Whether the client scales it to length one.
        normalised: bool,
    },
    /// The encoder itself: the last hidden state, and the pooled first token if there is a pooler.
    Encoder {
        /// Whether the model has a pooler.
        pooled: bool,
    },
}

/// The function after the first token's summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Summary {
    /// Of BERT and RoBERTa.
    Tanh,
    /// Of DistilBERT.
    Relu,
    /// Of ELECTRA.
    Gelu,
}

impl Summary {
    /// Returns the function as an activation, unless it is the hyperbolic tangent.
    pub const fn activation(self) -> Option<Activation> {
        match self {
            Self::Tanh => None,
            Self::Relu => Some(Activation::Relu),
            Self::Gelu => Some(Activation::GeluErf),
        }
    }
}

/// What the outputs of a classifier mean (`problem_type`). The client applies the function that
/// follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Problem {
    /// One of the labels is right: softmax.
    SingleLabel,
    /// Any of the labels may be right: the logistic function of each.
    MultiLabel,
    /// Numbers, as they are.
    Regression,
}

/// How a sentence's vector is made of the last hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pooling {
    /// The mean over all tokens but the padding.
    Mean,
    /// The first token's.
    First,
}

impl Head {
    /// Makes the usual classifier: one label is right, and the summary is BERT's.
    pub const fn classify(labels: Vec<String>) -> Self {
        Self::Classify {
            labels,
            summary: Summary::Tanh,
            problem: Problem::SingleLabel,
        }
    }

    /// Returns the names of its labels, if it has any.
    pub fn labels(&self) -> Option<&[String]> {
        match self {
            Self::Classify { labels, .. } | Self::Tokens { labels } => Some(labels),
            Self::Span | Self::Sentence { .. } | Self::Encoder { .. } => None,
        }
    }

    /// Tells whether its result is one label, of the text or of each token, so that labels can be
    /// revealed alone.
    pub const fn shows_labels(&self) -> bool {
        match self {
            Self::Classify { problem, .. } => matches!(problem, Problem::SingleLabel),
            Self::Tokens { .. } => true,
            Self::Span | Self::Sentence { .. } | Self::Encoder { .. } => false,
        }
    }

    /// Returns what it is for, as in the names of Hugging Face's classes.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Classify { .. } => "ForSequenceClassification",
            Self::Span => "ForQuestionAnswering",
            Self::Tokens { .. } => "ForTokenClassification",
            Self::Sentence { .. } => "Model with sentence pooling",
            Self::Encoder { .. } => "Model",
        }
    }

    /// Returns what it offers, for messages.
    pub const fn about(&self) -> &'static str {
        match self {
            Self::Classify { .. } => "labels",
            Self::Span => "a span head",
            Self::Tokens { .. } => "labels of tokens",
            Self::Sentence { .. } => "sentence embeddings",
            Self::Encoder { .. } => "no head",
        }
    }
}

/// The sizes of an encoder: all that a client learns about the model in addition to its scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Which encoder it is.
    pub family: Family,
    /// Transformer layers.
    pub layers: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Features of an embedding; if their number is not that of a token's features, a projection
    /// follows.
    pub embedding: usize,
    /// Attention heads; they divide the features evenly.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Positions that a text can have, and so the largest number of tokens.
    pub positions: usize,
    /// Token types; zero if the model does not tell the texts of a pair apart.
    pub types: usize,
    /// The feed-forward activation.
    pub activation: Activation,
    /// LayerNorm's ε.
    pub epsilon: f64,
    /// What stands on top.
    pub head: Head,
}

/// A shape that cannot be an encoder, or not one that this program handles.
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
        let labels = self.head.labels().map_or(1, <[String]>::len);
        for (what, value, limit) in [
            ("num_hidden_layers", self.layers, 96),
            ("hidden_size", self.hidden, 4096),
            ("embedding_size", self.embedding, 4096),
            ("num_attention_heads", self.heads, 128),
            ("intermediate_size", self.ffn, 16_384),
            ("vocab_size", self.vocab, 1 << 20),
            ("max_position_embeddings", self.positions, MAX_POSITIONS),
            // Zero is a model without token types.
            ("type_vocab_size", self.types.max(1), 64),
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

    /// Returns the model's class, as Hugging Face names it.
    pub fn architecture(&self) -> String {
        format!("{}{}", self.family.name(), self.head.name())
    }

    /// Tells whether embeddings are projected to the width of the layers.
    pub const fn is_projected(&self) -> bool {
        self.embedding != self.hidden
    }

    /// Returns the number of rows of the embedding table: words, and below them token types.
    pub const fn one_hot(&self) -> usize {
        self.vocab + self.types
    }

    /// Returns the number of features of one attention head.
    pub const fn head_size(&self) -> usize {
        self.hidden / self.heads
    }

    /// Returns the largest number of tokens of one input: the positions, but no more than a softmax
    /// row can hold.
    pub fn max_tokens(&self) -> usize {
        self.positions.min(512)
    }
}
