//! From text to the token rows of the plan.
//!
//! Tokenisation is Hugging Face's own (`tokenizers`). Truncation follows its rules: the longer of
//! two texts loses tokens first, or only the second one (for a question and its context). The
//! result is padded to a *length bucket*: the number of tokens is the one thing about a text that
//! the server learns, so it is rounded up to one of a few public lengths.
//!
//! A tokenizer may come from an untrusted server: `pipeline` says which are accepted.

#![forbid(unsafe_code)]

mod encoder;
mod error;
mod input;
mod open;
mod pipeline;

pub use encoder::{TextEncoder, Truncate};
pub use error::TextError;
pub use input::{CharSpan, Input};
pub use pipeline::MAX_TEXT;

/// The public lengths that inputs are padded to, up to a model's limit.
pub const BUCKETS: [usize; 13] = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512];

/// Returns the smallest bucket for a number of tokens; the model's limit counts as one.
pub fn bucket(tokens: usize, limit: usize) -> usize {
    BUCKETS
        .into_iter()
        .find(|b| *b >= tokens)
        .unwrap_or(tokens)
        .min(limit)
        .max(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets() {
        assert_eq!(bucket(1, 512), 8);
        assert_eq!(bucket(8, 512), 8);
        assert_eq!(bucket(33, 512), 48);
        assert_eq!(bucket(90, 96), 96);
        assert_eq!(bucket(97, 100), 100);
        assert_eq!(bucket(30, 30), 30);
    }
}
