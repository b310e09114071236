//! A model's tokenizer: from texts to tokens within a limit, and back.

use super::{CharSpan, Input, MAX_TEXT, TextError, bucket};
use std::borrow::Cow;
use tokenizers::utils::truncation::{
    TruncationDirection, TruncationParams, TruncationStrategy, truncate_encodings,
};
use tokenizers::{Decoder, Encoding, PostProcessor, PostProcessorWrapper, Tokenizer};

/// Which text loses tokens when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// The longer one, token by token.
    LongestFirst,
    /// Only the second.
    OnlySecond,
}

/// A model's tokenizer.
pub struct TextEncoder {
    /// It has no post-processor: one that trims offsets would do so twice.
    tokenizer: Tokenizer,
    /// What joins the tokens of one text or of two, and adds the special ones.
    processor: Option<PostProcessorWrapper>,
    padding: u32,
    max_tokens: usize,
}

impl TextEncoder {
    /// Makes an encoder of a tokenizer, the index of its padding and the limit that its
    /// configuration has.
    pub(super) fn new(mut tokenizer: Tokenizer, padding: u32, max_tokens: usize) -> Self {
        let processor = tokenizer.get_post_processor().cloned();
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        Self {
            tokenizer,
            processor,
            padding,
            max_tokens,
        }
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

    /// Returns the largest number of tokens that the tokenizer's configuration asks for
    /// (`model_max_length`).
    pub const fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Returns the index of `[PAD]`.
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

    /// Encodes one text, and returns the place of each token in it, in characters; special tokens
    /// have no place.
    ///
    /// # Errors
    /// [`TextError`] as for [`Self::encode`].
    pub fn encode_with_places(
        &self,
        text: &str,
        limit: usize,
    ) -> Result<(Input, Vec<CharSpan>), TextError> {
        let (encoding, removed) = self.encoding(text, None, limit, Truncate::LongestFirst)?;
        Ok((input_of(&encoding, removed), places(&encoding, 0)))
    }

    /// Encodes a first text with each of the overlapping pieces of a second one, as many as are
    /// needed, each with at most `limit` tokens, without padding. Neighbours share `stride` tokens.
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

    /// Returns a token as its vocabulary has it.
    pub fn piece(&self, token: u32) -> Option<String> {
        self.tokenizer.id_to_token(token)
    }

    /// Tells whether a token stands for what the vocabulary does not have.
    pub fn is_unknown(&self, token: u32) -> bool {
        let unknown = ["[UNK]", "<unk>"];
        let mut ids = unknown.iter().filter_map(|u| self.tokenizer.token_to_id(u));
        ids.any(|id| id == token)
    }

    /// Joins tokens to text again.
    pub fn join(&self, tokens: &[u32]) -> String {
        let pieces: Vec<String> = tokens.iter().filter_map(|t| self.piece(*t)).collect();
        let together = pieces.join(" ");
        match self.tokenizer.get_decoder() {
            Some(decoder) => decoder.decode(pieces).unwrap_or(together),
            None => together,
        }
    }

    /// Splits one text alone into tokens.
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

    /// Counts the special tokens that join those of one text or of two.
    fn special_tokens(&self, pair: bool) -> usize {
        let processor = self.processor.as_ref();
        processor.map_or(0, |p| p.added_tokens(pair))
    }

    /// Joins the tokens of one text or of two to one row, with the special ones.
    fn process(&self, first: Encoding, second: Option<Encoding>) -> Result<Encoding, TextError> {
        let row = match &self.processor {
            Some(processor) => processor.process(first, second, true),
            None => self.tokenizer.post_process(first, second, true),
        };
        row.map_err(|e| TextError::Encode(e.to_string()))
    }

    /// Returns what is left of one text or two within a limit, and how many tokens are not.
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

/// Refuses more tokens than there may be: the tokenizer decides what a template adds.
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

/// Tells where the tokens of one of the texts stand in it, in characters.
fn places(encoding: &Encoding, text: usize) -> Vec<CharSpan> {
    let sequences = encoding.get_sequence_ids().into_iter();
    let all = sequences.zip(encoding.get_offsets());
    all.map(|(sequence, offsets)| (sequence == Some(text)).then_some(*offsets))
        .collect()
}
