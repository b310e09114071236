//! Reading a `save_pretrained` directory.
//!
//! Three files matter: `config.json` ([`config`]), `model.safetensors` ([`tensors`]) and
//! `tokenizer.json` or `vocab.txt` ([`primer_text`]); of a sentence encoder also what says how it
//! pools (`sentence.rs`). How the families of encoders differ is described in `family/`. Everything
//! is checked before it is used, and an error names the file and the field, tensor or line at
//! fault.

pub mod config;
mod family;
mod mapped;
mod sentence;
pub mod tensors;

use config::{Config, ConfigError};
use mapped::MappedFile;
use primer_text::{TextEncoder, TextError};
use sentence::Sentence;
use std::path::{Path, PathBuf};
use tensors::{Checkpoint, TensorError};
use thiserror::Error;

/// Files of a model larger than this are refused before they are read (weights are mapped and
/// have no such limit).
const MAX_TEXT_FILE: u64 = 256 << 20;

/// Why a model could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is absurdly large.
    #[error("{path} has {bytes} bytes, more than the limit of {MAX_TEXT_FILE}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// There is no tokenizer.
    #[error("{0} has neither tokenizer.json nor vocab.txt")]
    NoTokenizer(PathBuf),
    /// The directory is not there.
    #[error("{0} is not a directory; give the directory that save_pretrained wrote")]
    NotADirectory(PathBuf),
    /// The configuration is not usable.
    #[error("config.json: {0}")]
    Config(#[from] ConfigError),
    /// The weights are not usable.
    #[error("model.safetensors: {0}")]
    Tensors(#[from] TensorError),
    /// A file next to a sentence encoder is not usable.
    #[error("{file}: {reason}")]
    Sentence {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The tokenizer is not usable.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// The bytes of a model's files.
pub struct ModelFiles {
    config: Vec<u8>,
    weights: Weights,
    tokenizer: TokenizerFile,
    tokenizer_config: Option<Vec<u8>>,
    sentence: Option<Sentence>,
}

enum Weights {
    Mapped(MappedFile),
    Static(&'static [u8]),
}

enum TokenizerFile {
    Json(Vec<u8>),
    Vocabulary(Vec<u8>),
}

impl ModelFiles {
    /// Opens a model directory.
    ///
    /// # Errors
    /// [`LoadError`] naming the file that is missing or unreadable.
    pub fn open(dir: &Path) -> Result<Self, LoadError> {
        if !dir.is_dir() {
            return Err(LoadError::NotADirectory(dir.to_owned()));
        }
        let config = read(&dir.join("config.json"))?;
        let path = dir.join("model.safetensors");
        let weights = MappedFile::open(&path)
            .map_err(|source| LoadError::File { path, source })
            .map(Weights::Mapped)?;
        let (json, vocabulary) = (dir.join("tokenizer.json"), dir.join("vocab.txt"));
        let tokenizer = if json.exists() {
            TokenizerFile::Json(read(&json)?)
        } else if vocabulary.exists() {
            TokenizerFile::Vocabulary(read(&vocabulary)?)
        } else {
            return Err(LoadError::NoTokenizer(dir.to_owned()));
        };
        let path = dir.join("tokenizer_config.json");
        let tokenizer_config = if path.exists() {
            Some(read(&path)?)
        } else {
            None
        };
        Ok(Self {
            config,
            weights,
            tokenizer,
            tokenizer_config,
            sentence: Sentence::open(dir)?,
        })
    }

    /// Makes the files of a model that is part of the program.
    pub fn embedded(
        config: &[u8],
        weights: &'static [u8],
        tokenizer: &[u8],
        tokenizer_config: &[u8],
    ) -> Self {
        Self {
            config: config.to_vec(),
            weights: Weights::Static(weights),
            tokenizer: TokenizerFile::Json(tokenizer.to_vec()),
            tokenizer_config: Some(tokenizer_config.to_vec()),
            sentence: None,
        }
    }

    /// Returns the tokenizer's file, whether it is `tokenizer.json` (else `vocab.txt`), and
    /// `tokenizer_config.json`.
    pub fn tokenizer(&self) -> (&[u8], bool, Option<&[u8]>) {
        let (bytes, json) = match &self.tokenizer {
            TokenizerFile::Json(bytes) => (bytes, true),
            TokenizerFile::Vocabulary(bytes) => (bytes, false),
        };
        (bytes, json, self.tokenizer_config.as_deref())
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// [`LoadError`] naming what is not usable.
    pub fn load(&self) -> Result<LoadedModel, LoadError> {
        let sentence = self.sentence.as_ref();
        let config = Config::parse(&self.config, sentence.is_some())?;
        let bytes = match &self.weights {
            Weights::Mapped(file) => file.bytes(),
            Weights::Static(bytes) => bytes,
        };
        let (shape, checkpoint) = Checkpoint::read(&config, sentence, bytes)?;
        let text = match &self.tokenizer {
            TokenizerFile::Json(json) => {
                TextEncoder::from_json(json, self.tokenizer_config.as_deref())?
            }
            TokenizerFile::Vocabulary(vocab) => {
                TextEncoder::from_vocabulary(vocab, self.tokenizer_config.as_deref())?
            }
        };
        text.check_vocabulary(shape.vocab)?;
        Ok(LoadedModel {
            shape,
            checkpoint,
            text,
        })
    }
}

/// A model in memory, as its files describe it.
pub struct LoadedModel {
    /// Its shape.
    pub shape: primer_plan::shape::Shape,
    /// Its tensors in single precision.
    pub checkpoint: Checkpoint,
    /// Its tokenizer.
    pub text: TextEncoder,
}

impl LoadedModel {
    /// Returns the largest number of tokens of one input that both the model and its tokenizer
    /// allow.
    pub fn max_tokens(&self) -> usize {
        self.shape.max_tokens().min(self.text.max_tokens())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::File {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > MAX_TEXT_FILE {
        return Err(LoadError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    std::fs::read(path).map_err(failed)
}
