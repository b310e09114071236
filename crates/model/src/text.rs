//! From text to the token rows of the plan.
//!
//! Tokenising is Hugging Face's own (`tokenizers`). Truncation follows its rules: the longer of
//! two texts loses tokens first, or only the second one (for a question and its context). The
//! result is padded to a *length bucket*: the number of tokens is the one thing about a text that
//! the server learns, so it is rounded up to one of a few public lengths.

use primer_plan::shape::Shape;
use serde::Deserialize;
use std::borrow::Cow;
use thiserror::Error;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::utils::truncation::{
    TruncationDirection, TruncationParams, TruncationStrategy, truncate_encodings,
};
use tokenizers::{PostProcessor, Tokenizer};

/// The public lengths that inputs are padded to, up to a model's limit.
pub const BUCKETS: [usize; 13] = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512];

/// The smallest bucket for a number of tokens; the model's limit counts as one.
pub fn bucket(tokens: usize, limit: usize) -> usize {
    BUCKETS
        .into_iter()
        .find(|b| *b >= tokens)
        .unwrap_or(tokens)
        .min(limit)
        .max(tokens)
}

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

/// Which text loses tokens when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// The longer one, token by token.
    LongestFirst,
    /// Only the second.
    OnlySecond,
}

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
    /// For every token of the second text, where it stands there, in characters.
    pub second: Vec<Option<(usize, usize)>>,
}

impl Input {
    /// Tokens with the padding.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Checks that the model has an embedding for every token and type.
    ///
    /// A tokenizer's special tokens and types are set apart from its vocabulary, so only the
    /// input itself tells.
    ///
    /// # Errors
    /// [`TextError::Token`] or [`TextError::TokenType`] with the first that has none.
    pub fn fits(&self, shape: &Shape) -> Result<(), TextError> {
        if let Some(&token) = self.ids.iter().find(|t| **t as usize >= shape.vocab) {
            let vocab = shape.vocab;
            return Err(TextError::Token { token, vocab });
        }
        if let Some(&kind) = self.types.iter().find(|t| **t as usize >= shape.types) {
            let types = shape.types;
            return Err(TextError::TokenType { kind, types });
        }
        Ok(())
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

/// A model's tokenizer.
pub struct TextEncoder {
    tokenizer: Tokenizer,
    padding: u32,
    max_tokens: usize,
}

#[derive(Deserialize, Default)]
struct TokenizerConfig {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    /// Hugging Face writes 10^30 where there is no limit.
    model_max_length: Option<f64>,
}

impl TokenizerConfig {
    fn parse(bytes: Option<&[u8]>) -> Result<Self, TextError> {
        let Some(bytes) = bytes else {
            return Ok(Self::default());
        };
        serde_json::from_slice(bytes).map_err(|e| TextError::Tokenizer {
            file: "tokenizer_config.json",
            reason: e.to_string(),
        })
    }

    fn max_tokens(&self) -> usize {
        // A float too large for the type saturates, which is what is meant.
        self.model_max_length.map_or(usize::MAX, |v| v as usize)
    }
}

impl TextEncoder {
    /// From the bytes of `tokenizer.json`, and of `tokenizer_config.json` if there is one.
    ///
    /// # Errors
    /// [`TextError::Tokenizer`] if they do not describe a tokenizer.
    pub fn from_json(bytes: &[u8], config: Option<&[u8]>) -> Result<Self, TextError> {
        let config = TokenizerConfig::parse(config)?;
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| TextError::Tokenizer {
            file: "tokenizer.json",
            reason: e.to_string(),
        })?;
        tokenizer
            .with_truncation(None)
            .map_err(|e| TextError::Tokenizer {
                file: "tokenizer.json",
                reason: e.to_string(),
            })?;
        tokenizer.with_padding(None);
        Self::finish(tokenizer, "tokenizer.json", &config)
    }

    /// From the bytes of `vocab.txt`, and of `tokenizer_config.json` if there is one.
    ///
    /// # Errors
    /// [`TextError::Tokenizer`] if they do not describe a BERT tokenizer.
    pub fn from_vocabulary(vocab: &[u8], config: Option<&[u8]>) -> Result<Self, TextError> {
        let failed = |reason: String| TextError::Tokenizer {
            file: "vocab.txt",
            reason,
        };
        let config = TokenizerConfig::parse(config)?;
        let vocab = WordPiece::read_bytes(vocab).map_err(|e| failed(e.to_string()))?;
        let special = |token: &str| {
            let id = vocab.get(token).copied();
            id.map(|id| (token.to_owned(), id))
                .ok_or_else(|| failed(format!("{token} is missing")))
        };
        let (sep, cls) = (special("[SEP]")?, special("[CLS]")?);
        let unknown = special("[UNK]")?.0;
        let model = WordPiece::builder()
            .vocab(vocab)
            .unk_token(unknown)
            .build()
            .map_err(|e| failed(e.to_string()))?;
        let mut tokenizer = Tokenizer::new(model);
        let normalizer = BertNormalizer::new(
            true,
            config.tokenize_chinese_chars.unwrap_or(true),
            config.strip_accents,
            config.do_lower_case.unwrap_or(true),
        );
        tokenizer
            .with_normalizer(Some(normalizer))
            .map_err(|e| failed(e.to_string()))?;
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        tokenizer.with_post_processor(Some(BertProcessing::new(sep, cls)));
        Self::finish(tokenizer, "vocab.txt", &config)
    }

    fn finish(
        tokenizer: Tokenizer,
        file: &'static str,
        config: &TokenizerConfig,
    ) -> Result<Self, TextError> {
        let padding = tokenizer
            .token_to_id("[PAD]")
            .ok_or_else(|| TextError::Tokenizer {
                file,
                reason: "[PAD] is missing".into(),
            })?;
        Ok(Self {
            tokenizer,
            padding,
            max_tokens: config.max_tokens(),
        })
    }

    /// Checks that every token has an embedding.
    ///
    /// # Errors
    /// [`TextError::Vocabulary`] if one has none.
    pub fn check_vocabulary(&self, vocab: usize) -> Result<(), TextError> {
        let largest = self
            .tokenizer
            .get_vocab(true)
            .into_values()
            .max()
            .map_or(0, |id| id + 1);
        if largest as usize > vocab {
            return Err(TextError::Vocabulary {
                tokens: largest as usize,
                vocab,
            });
        }
        Ok(())
    }

    /// The largest number of tokens that the tokenizer's configuration asks for
    /// (`model_max_length`).
    pub const fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The index of `[PAD]`.
    pub const fn padding(&self) -> u32 {
        self.padding
    }

    /// Encodes one text or two with at most `limit` tokens, without padding.
    ///
    /// # Errors
    /// [`TextError`] if a text is empty or cannot be brought within the limit.
    pub fn encode(
        &self,
        first: &str,
        second: Option<&str>,
        limit: usize,
        truncate: Truncate,
    ) -> Result<Input, TextError> {
        if first.trim().is_empty() || second.is_some_and(|s| s.trim().is_empty()) {
            return Err(TextError::Empty);
        }
        let failed = |e: tokenizers::Error| TextError::Encode(e.to_string());
        let tokens = |text: &str| {
            self.tokenizer
                .encode_char_offsets(Cow::from(text), false)
                .map_err(failed)
        };
        let first = tokens(first)?;
        let second = second.map(tokens).transpose()?;
        let special = self
            .tokenizer
            .get_post_processor()
            .map_or(0, |p| p.added_tokens(second.is_some()));
        if limit <= special + usize::from(second.is_some()) {
            return Err(TextError::NoRoom { limit, special });
        }
        let before = first.len() + second.as_ref().map_or(0, tokenizers::Encoding::len);
        let strategy = match truncate {
            Truncate::OnlySecond if second.is_some() => {
                if first.len() + special >= limit {
                    return Err(TextError::FirstTooLong {
                        tokens: first.len(),
                        limit,
                    });
                }
                TruncationStrategy::OnlySecond
            }
            _ => TruncationStrategy::LongestFirst,
        };
        let params = TruncationParams {
            direction: TruncationDirection::Right,
            max_length: limit - special,
            strategy,
            stride: 0,
        };
        let (first, second) = truncate_encodings(first, second, &params)
            .map_err(|e| TextError::Encode(e.to_string()))?;
        let after = first.len() + second.as_ref().map_or(0, tokenizers::Encoding::len);
        let encoding = self
            .tokenizer
            .post_process(first, second, true)
            .map_err(failed)?;
        let second = encoding
            .get_sequence_ids()
            .into_iter()
            .zip(encoding.get_offsets())
            .map(|(sequence, offsets)| (sequence == Some(1)).then_some(*offsets))
            .collect();
        Ok(Input {
            ids: encoding.get_ids().to_vec(),
            types: encoding.get_type_ids().to_vec(),
            length: encoding.len(),
            removed: before - after,
            second,
        })
    }

    /// Encodes and pads to the length bucket.
    ///
    /// # Errors
    /// [`TextError`] as for [`TextEncoder::encode`].
    pub fn encode_padded(
        &self,
        first: &str,
        second: Option<&str>,
        limit: usize,
        truncate: Truncate,
    ) -> Result<Input, TextError> {
        let mut input = self.encode(first, second, limit, truncate)?;
        let tokens = bucket(input.tokens(), limit);
        input.pad_to(tokens, self.padding);
        Ok(input)
    }
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

    #[test]
    fn inputs_beyond_the_embeddings_are_refused() {
        let mut shape = crate::synthetic::bert_shape(1, 8, 2);
        (shape.vocab, shape.types) = (10, 1);
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
