//! From text to the token rows of the plan.
//!
//! Tokenising is Hugging Face's own (`tokenizers`). Truncation follows its rules: the longer of
//! two texts loses tokens first, or only the second one (for a question and its context). The
//! result is padded to a *length bucket*: the number of tokens is the one thing about a text that
//! the server learns, so it is rounded up to one of a few public lengths.
//!
//! A tokenizer may come from a server that one does not trust: `pipeline` says which are accepted.

mod pipeline;

pub use pipeline::MAX_TEXT;

use primer_plan::shape::Shape;
use serde::Deserialize;
use std::borrow::Cow;
use thiserror::Error;
use tokenizers::decoders::wordpiece::WordPiece as Pieces;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::utils::truncation::{
    TruncationDirection, TruncationParams, TruncationStrategy, truncate_encodings,
};
use tokenizers::{Decoder, Encoding, PostProcessor, PostProcessorWrapper, Tokenizer};

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
    /// A text beyond all that a model could take.
    #[error("the text has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The tokenizer made more tokens than the limit, which it was told.
    #[error("the tokenizer makes {tokens} tokens where {limit} are the limit")]
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

/// Which text loses tokens when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// The longer one, token by token.
    LongestFirst,
    /// Only the second.
    OnlySecond,
}

/// Where a token begins and ends in a text, in characters; nothing if it is not of that text.
pub type Place = Option<(usize, usize)>;

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
    pub second: Vec<Place>,
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
        self.fits_embeddings(shape.vocab, shape.types)
    }

    /// The same for a model with so many tokens and types. One without types does not look at them.
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

/// A model's tokenizer.
pub struct TextEncoder {
    /// Without a post-processor: one that trims offsets would do so twice.
    tokenizer: Tokenizer,
    /// What joins the tokens of one text or of two, and adds the special ones.
    processor: Option<PostProcessorWrapper>,
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

/// Reads `tokenizer.json` with the reader that is compiled in the library:
/// [`Tokenizer::from_bytes`] would be compiled here once more, which takes as long as the rest of
/// this crate.
fn parse_tokenizer(json: impl AsRef<[u8]>) -> tokenizers::Result<Tokenizer> {
    std::str::from_utf8(json.as_ref())?.parse()
}

impl TextEncoder {
    /// From the bytes of `tokenizer.json`, and of `tokenizer_config.json` if there is one.
    ///
    /// # Errors
    /// [`TextError::Tokenizer`] if they do not describe a tokenizer.
    pub fn from_json(bytes: &[u8], config: Option<&[u8]>) -> Result<Self, TextError> {
        let config = TokenizerConfig::parse(config)?;
        let bytes = pipeline::rebuilt(bytes)?;
        let mut tokenizer = parse_tokenizer(&bytes).map_err(|e| TextError::Tokenizer {
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
        tokenizer.with_decoder(Some(Pieces::default()));
        Self::finish(tokenizer, "vocab.txt", &config)
    }

    fn finish(
        mut tokenizer: Tokenizer,
        file: &'static str,
        config: &TokenizerConfig,
    ) -> Result<Self, TextError> {
        // What it is called in BERT's vocabulary, and in those of byte pairs and sentence pieces.
        let padding = tokenizer.token_to_id("[PAD]");
        let padding = padding.or_else(|| tokenizer.token_to_id("<pad>"));
        let padding = padding.ok_or_else(|| TextError::Tokenizer {
            file,
            reason: "[PAD] is missing".into(),
        })?;
        let processor = tokenizer.get_post_processor().cloned();
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        Ok(Self {
            tokenizer,
            processor,
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
            .map_or(0, |id| id as usize + 1);
        if largest > vocab {
            return Err(TextError::Vocabulary {
                tokens: largest,
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
        let (encoding, removed) = self.encoding(first, second, limit, truncate)?;
        Ok(input_of(&encoding, removed))
    }

    /// Encodes one text, and tells where in it each token stands, in characters; special tokens
    /// stand nowhere.
    ///
    /// # Errors
    /// [`TextError`] as for [`Self::encode`].
    pub fn encode_with_places(
        &self,
        text: &str,
        limit: usize,
    ) -> Result<(Input, Vec<Place>), TextError> {
        let (encoding, removed) = self.encoding(text, None, limit, Truncate::LongestFirst)?;
        Ok((input_of(&encoding, removed), places(&encoding, 0)))
    }

    /// Encodes a first text with as many overlapping pieces of a second one as it takes, each with
    /// at most `limit` tokens, without padding. Neighbours share `stride` tokens.
    ///
    /// # Errors
    /// [`TextError`] if a text is empty or the first one leaves no room for the second.
    pub fn windows(
        &self,
        first: &str,
        second: &str,
        limit: usize,
        stride: usize,
    ) -> Result<Vec<Input>, TextError> {
        let (first, mut rest) = (self.tokenise(first)?, self.tokenise(second)?);
        let special = self.special_tokens(true);
        if first.len() + special >= limit {
            let tokens = first.len();
            return Err(TextError::FirstTooLong { tokens, limit });
        }
        let room = limit - special - first.len();
        let stride = stride.min(room - 1);
        rest.truncate(room, stride, TruncationDirection::Right);
        let behind = rest.take_overflowing();
        let pieces = std::iter::once(rest).chain(behind);
        let window = |piece| {
            let encoding = self.process(first.clone(), Some(piece))?;
            within(&encoding, limit)?;
            Ok(input_of(&encoding, 0))
        };
        pieces.map(window).collect()
    }

    /// A token as its vocabulary has it.
    pub fn piece(&self, token: u32) -> Option<String> {
        self.tokenizer.id_to_token(token)
    }

    /// Whether a token stands for what the vocabulary does not have.
    pub fn is_unknown(&self, token: u32) -> bool {
        let unknown = ["[UNK]", "<unk>"];
        let mut ids = unknown.iter().filter_map(|u| self.tokenizer.token_to_id(u));
        ids.any(|id| id == token)
    }

    /// Tokens as text again.
    pub fn join(&self, tokens: &[u32]) -> String {
        let pieces: Vec<String> = tokens.iter().filter_map(|t| self.piece(*t)).collect();
        let together = pieces.join(" ");
        match self.tokenizer.get_decoder() {
            Some(decoder) => decoder.decode(pieces).unwrap_or(together),
            None => together,
        }
    }

    /// The tokens of one text alone.
    fn tokenise(&self, text: &str) -> Result<Encoding, TextError> {
        if text.trim().is_empty() {
            return Err(TextError::Empty);
        }
        if text.len() > MAX_TEXT {
            return Err(TextError::TooLong {
                bytes: text.len(),
                limit: MAX_TEXT,
            });
        }
        let encoding = self.tokenizer.encode_char_offsets(Cow::from(text), false);
        encoding.map_err(|e| TextError::Encode(e.to_string()))
    }

    /// Tokens that join those of one text or of two.
    fn special_tokens(&self, pair: bool) -> usize {
        let processor = self.processor.as_ref();
        processor.map_or(0, |p| p.added_tokens(pair))
    }

    /// The tokens of one text or of two as one row, with the special ones.
    fn process(&self, first: Encoding, second: Option<Encoding>) -> Result<Encoding, TextError> {
        let row = match &self.processor {
            Some(processor) => processor.process(first, second, true),
            None => self.tokenizer.post_process(first, second, true),
        };
        row.map_err(|e| TextError::Encode(e.to_string()))
    }

    /// What is left of one text or two within a limit, and how many tokens are not.
    fn encoding(
        &self,
        first: &str,
        second: Option<&str>,
        limit: usize,
        truncate: Truncate,
    ) -> Result<(Encoding, usize), TextError> {
        let first = self.tokenise(first)?;
        let second = second.map(|text| self.tokenise(text)).transpose()?;
        let special = self.special_tokens(second.is_some());
        if limit <= special + usize::from(second.is_some()) {
            return Err(TextError::NoRoom { limit, special });
        }
        let before = first.len() + second.as_ref().map_or(0, Encoding::len);
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
        let after = first.len() + second.as_ref().map_or(0, Encoding::len);
        let encoding = self.process(first, second)?;
        within(&encoding, limit)?;
        Ok((encoding, before - after))
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

/// Refuses more tokens than there may be: what a template adds is the tokenizer's to decide.
fn within(encoding: &Encoding, limit: usize) -> Result<(), TextError> {
    match encoding.len() {
        tokens if tokens > limit => Err(TextError::TooMany { tokens, limit }),
        _ => Ok(()),
    }
}

fn input_of(encoding: &Encoding, removed: usize) -> Input {
    Input {
        ids: encoding.get_ids().to_vec(),
        types: encoding.get_type_ids().to_vec(),
        length: encoding.len(),
        removed,
        second: places(encoding, 1),
    }
}

/// Where the tokens of one of the texts stand in it, in characters.
fn places(encoding: &Encoding, text: usize) -> Vec<Place> {
    let sequences = encoding.get_sequence_ids().into_iter();
    let all = sequences.zip(encoding.get_offsets());
    all.map(|(sequence, offsets)| (sequence == Some(text)).then_some(*offsets))
        .collect()
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
