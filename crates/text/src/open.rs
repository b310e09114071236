//! A tokenizer from a model's files.

use super::{TextEncoder, TextError, pipeline};
use serde::Deserialize;
use tokenizers::Tokenizer;
use tokenizers::decoders::wordpiece::WordPiece as Pieces;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;

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
        // A float too large for the type saturates, as intended.
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
    /// Reads the bytes of `tokenizer.json`, and of `tokenizer_config.json` if there is one.
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

    /// Reads the bytes of `vocab.txt`, and of `tokenizer_config.json` if there is one.
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
        tokenizer: Tokenizer,
        file: &'static str,
        config: &TokenizerConfig,
    ) -> Result<Self, TextError> {
        // Its name in BERT's vocabulary, and in those of byte pairs and sentence pieces.
        let padding = tokenizer.token_to_id("[PAD]");
        let padding = padding.or_else(|| tokenizer.token_to_id("<pad>"));
        let padding = padding.ok_or_else(|| TextError::Tokenizer {
            file,
            reason: "[PAD] is missing".into(),
        })?;
        Ok(Self::new(tokenizer, padding, config.max_tokens()))
    }
}
