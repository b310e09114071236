//! A text as token rows.

use super::TextError;
use primer_plan::shape::Shape;

/// Where a token begins and ends in a text, in characters; `None` if it is not in that text.
pub type CharSpan = Option<(usize, usize)>;

/// A text as token rows.
#[derive(Clone, PartialEq, Eq)]
pub struct Input {
    /// Vocabulary indices, padded.
    pub ids: Vec<u32>,
    /// Token types, padded.
    pub types: Vec<u32>,
    /// Tokens before the padding.
    pub length: usize,
    /// Tokens that truncation removed.
    pub removed: usize,
    /// For every token of the second text, where it stands there.
    pub second: Vec<CharSpan>,
}

impl Input {
    /// Returns the number of tokens with the padding.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Checks that the model has an embedding for every token and type.
    ///
    /// A tokenizer's special tokens and types are separate from its vocabulary, so only the input
    /// itself shows which are used.
    ///
    /// # Errors
    /// [`TextError::Token`] or [`TextError::TokenType`] with the first that has none.
    pub fn fits(&self, shape: &Shape) -> Result<(), TextError> {
        self.fits_embeddings(shape.vocab, shape.types)
    }

    /// Checks the same for a model of `vocab` tokens and `types` token types. A model without types
    /// does not look at them.
    ///
    /// # Errors
    /// As [`Self::fits`].
    pub fn fits_embeddings(&self, vocab: usize, types: usize) -> Result<(), TextError> {
        if let Some(&token) = self.ids.iter().find(|t| **t as usize >= vocab) {
            return Err(TextError::Token { token, vocab });
        }
        match self.types.iter().find(|t| **t as usize >= types) {
            Some(&kind) if types > 0 => Err(TextError::TokenType { kind, types }),
            _ => Ok(()),
        }
    }

    /// Pads to a number of tokens.
    ///
    /// # Panics
    /// If there are more already.
    pub fn pad_to(&mut self, tokens: usize, padding: u32) {
        assert!(tokens >= self.tokens(), "padding only adds tokens");
        self.ids.resize(tokens, padding);
        self.types.resize(tokens, 0);
        self.second.resize(tokens, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_plan::function::Activation;
    use primer_plan::shape::{Family, Head};

    #[test]
    fn inputs_beyond_the_embeddings_are_refused() {
        let shape = Shape {
            family: Family::Bert,
            layers: 1,
            hidden: 8,
            embedding: 8,
            heads: 2,
            ffn: 32,
            vocab: 10,
            positions: 512,
            types: 1,
            activation: Activation::GeluErf,
            epsilon: 1e-12,
            head: Head::classify(vec!["LABEL_0".into(), "LABEL_1".into()]),
        };
        let mut input = Input {
            ids: vec![2, 9],
            types: vec![0, 0],
            length: 2,
            removed: 0,
            second: vec![None; 2],
        };
        assert!(input.fits(&shape).is_ok());
        input.types[1] = 1;
        let error = input.fits(&shape).unwrap_err().to_string();
        assert!(error.contains("token type 1") && error.contains("type_vocab_size is 1"));
        input.ids[0] = 10;
        let error = input.fits(&shape).unwrap_err().to_string();
        assert!(error.contains("token 10") && error.contains("vocab_size is 10"));
    }
}
