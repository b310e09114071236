//! Why a text or a tokenizer was refused.

use thiserror::Error;

/// Why a text or a tokenizer was refused.
#[derive(Debug, Error)]
pub enum TextError {
    /// The tokenizer's file is not usable.
    #[error("{file}: {reason}")]
    Tokenizer {
        /// Which file.
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The tokenizer makes tokens that the model has no embedding for.
    #[error(
        "the tokenizer has {tokens} tokens, but the model's embedding only {vocab} (vocab_size)"
    )]
    Vocabulary {
        /// Entries of the tokenizer.
        tokens: usize,
        /// Rows of the embedding.
        vocab: usize,
    },
    /// There is nothing in the text.
    #[error("the text is empty")]
    Empty,
    /// A text that is longer than any model could take.
    #[error("the text has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The tokenizer made more tokens than the limit that it was given.
    #[error("the tokenizer made {tokens} tokens, the limit is {limit}")]
    TooMany {
        /// Its tokens.
        tokens: usize,
        /// The limit.
        limit: usize,
    },
    /// The limit leaves no room for the text.
    #[error("a limit of {limit} tokens leaves no room beside {special} special tokens")]
    NoRoom {
        /// The limit.
        limit: usize,
        /// `[CLS]` and `[SEP]`s.
        special: usize,
    },
    /// The first text alone fills the limit where only the second may be shortened.
    #[error("the question alone takes {tokens} tokens, more than the limit of {limit} allows")]
    FirstTooLong {
        /// Its tokens.
        tokens: usize,
        /// The limit.
        limit: usize,
    },
    /// A token that the model has no embedding for, made by a tokenizer of another model.
    #[error("the tokenizer makes token {token}, but the model's vocab_size is {vocab}")]
    Token {
        /// Its index.
        token: u32,
        /// Rows of the embedding.
        vocab: usize,
    },
    /// A token type that the model has no embedding for: a pair for a model of single texts.
    #[error("the input has token type {kind}, but the model's type_vocab_size is {types}")]
    TokenType {
        /// The type.
        kind: u32,
        /// Types that the model has.
        types: usize,
    },
    /// The tokenizer failed on this text.
    #[error("the tokenizer failed: {0}")]
    Encode(String),
}
