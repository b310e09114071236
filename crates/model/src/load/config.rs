//! `config.json`.

use super::family::{Description, Positions, Types};
use primer_plan::function::Activation;
use primer_plan::shape::{Family, Problem, ShapeError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// What a model is for, according to its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// `…ForSequenceClassification`.
    SequenceClassification,
    /// `…ForTokenClassification`.
    TokenClassification,
    /// `…ForQuestionAnswering`.
    QuestionAnswering,
    /// `…Model`.
    Encoder,
}

impl Architecture {
    const ALL: [(&'static str, Self); 4] = [
        ("ForSequenceClassification", Self::SequenceClassification),
        ("ForTokenClassification", Self::TokenClassification),
        ("ForQuestionAnswering", Self::QuestionAnswering),
        ("Model", Self::Encoder),
    ];

    /// Finds the architecture of a class of `family`.
    fn of(class: &str, family: Family) -> Option<Self> {
        let head = class.strip_prefix(family.name())?;
        let mut all = Self::ALL.into_iter();
        all.find(|(name, _)| *name == head).map(|(_, found)| found)
    }
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing or of the wrong type.
    #[error("{field}: {reason}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A family that is not known.
    #[error(
        "model_type \"{0}\" is not supported; supported are {known}",
        known = Description::model_types()
    )]
    ModelType(String),
    /// An architecture that has no plan.
    #[error(
        "architecture \"{class}\" is not supported for model_type \"{model_type}\"; supported are \
         {family}ForSequenceClassification, {family}ForTokenClassification, \
         {family}ForQuestionAnswering and {family}Model"
    )]
    Architecture {
        /// The class.
        class: String,
        /// The family, as the file calls it.
        model_type: &'static str,
        /// What its classes begin with.
        family: &'static str,
    },
    /// No architecture at all.
    #[error("\"architectures\" is missing or empty, so the model's head is unknown")]
    NoArchitecture,
    /// An activation that has no circuit.
    #[error(
        "{field} \"{value}\" is not supported; supported are \"gelu\", \"gelu_new\", \
         \"gelu_pytorch_tanh\" and \"relu\""
    )]
    Activation {
        /// What the family calls it.
        field: &'static str,
        /// What it is.
        value: String,
    },
    /// Relative positions.
    #[error("position_embedding_type \"{0}\" is not supported; only \"absolute\" is")]
    Positions(String),
    /// A decoder.
    #[error("is_decoder is true, but only encoders are supported")]
    Decoder,
    /// What a classifier's outputs mean.
    #[error(
        "problem_type \"{0}\" is not supported; supported are \"single_label_classification\", \
         \"multi_label_classification\" and \"regression\""
    )]
    Problem(String),
    /// Labels that do not count from zero.
    #[error("id2label has {count} labels, but none for \"{missing}\"")]
    Labels {
        /// Entries of the map.
        count: usize,
        /// The index that is missing.
        missing: usize,
    },
    /// No positions are left after the padding's.
    #[error("max_position_embeddings is {positions}, but positions begin at {first}")]
    NoPositions {
        /// Rows of the table.
        positions: usize,
        /// The first that a text has.
        first: usize,
    },
    /// A size is out of bounds or contradicts another.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The fields of `config.json` that matter, checked one by one.
#[derive(Clone)]
pub struct Config {
    /// How the family's files are laid out.
    pub(super) description: &'static Description,
    /// What the model is for.
    pub architecture: Architecture,
    /// The feed-forward activation.
    pub activation: Activation,
    /// Layers.
    pub layers: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Features of an embedding.
    pub embedding: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// `vocab_size`.
    pub vocab: usize,
    /// Rows of the table of positions.
    pub position_rows: usize,
    /// The first of them that a text has.
    pub first_position: usize,
    /// Rows of the table of token types; zero if there is none.
    pub type_rows: usize,
    /// `layer_norm_eps`.
    pub epsilon: f64,
    /// Names of the labels in order.
    pub labels: Vec<String>,
    /// What a classifier's outputs mean.
    pub problem: Problem,
}

/// The fields of the file.
struct Raw(Map<String, Value>);

impl Raw {
    /// Reads a field, if it is there and not null.
    fn get<T: DeserializeOwned>(&self, field: &'static str) -> Result<Option<T>, ConfigError> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let parsed = serde_json::from_value(value.clone());
                parsed.map(Some).map_err(|cause| ConfigError::Field {
                    field,
                    reason: cause.to_string(),
                })
            }
        }
    }

    /// Reads a field that must be there.
    fn need<T: DeserializeOwned>(&self, field: &'static str) -> Result<T, ConfigError> {
        let reason = "it is missing".to_owned();
        self.get(field)?.ok_or(ConfigError::Field { field, reason })
    }
}

impl Config {
    /// Parses and checks the file's bytes. With `any_class` the class does not matter: something
    /// else stands on top of the encoder, as in the layout of sentence-transformers.
    ///
    /// # Errors
    /// [`ConfigError`] naming the field at fault.
    pub fn parse(bytes: &[u8], any_class: bool) -> Result<Self, ConfigError> {
        let raw = Raw(serde_json::from_slice(bytes)?);
        let model_type: String = raw.get("model_type")?.unwrap_or_else(|| "bert".to_owned());
        let Some(description) = Description::of(&model_type) else {
            return Err(ConfigError::ModelType(model_type));
        };
        let architecture = match any_class {
            true => Architecture::Encoder,
            false => architecture(&raw, description)?,
        };
        let fields = &description.fields;
        let value: String = raw.need(fields.activation)?;
        let activation = match value.as_str() {
            "gelu" => Activation::GeluErf,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            _ => {
                let field = fields.activation;
                return Err(ConfigError::Activation { field, value });
            }
        };
        let kind: Option<String> = raw.get("position_embedding_type")?;
        if let Some(kind) = kind.filter(|kind| kind != "absolute") {
            return Err(ConfigError::Positions(kind));
        }
        if raw.get("is_decoder")?.unwrap_or(false) {
            return Err(ConfigError::Decoder);
        }
        let hidden = raw.need(fields.hidden)?;
        let embedding = match description.projected {
            true => raw.get("embedding_size")?.unwrap_or(128),
            false => hidden,
        };
        let position_rows = raw.need("max_position_embeddings")?;
        let first_position = match description.positions {
            Positions::First => 0,
            Positions::BehindPadding => {
                let padding = raw.get::<usize>("pad_token_id")?.unwrap_or(1);
                padding.saturating_add(1)
            }
        };
        if first_position > 0 && position_rows <= first_position {
            return Err(ConfigError::NoPositions {
                positions: position_rows,
                first: first_position,
            });
        }
        let labels = labels(&raw)?;
        Ok(Self {
            description,
            architecture,
            activation,
            layers: raw.need(fields.layers)?,
            hidden,
            embedding,
            heads: raw.need(fields.heads)?,
            ffn: raw.need(fields.ffn)?,
            vocab: raw.need("vocab_size")?,
            position_rows,
            first_position,
            type_rows: type_rows(&raw, description)?,
            epsilon: raw.get("layer_norm_eps")?.unwrap_or(1e-12),
            problem: problem(&raw, labels.len())?,
            labels,
        })
    }
}

fn architecture(raw: &Raw, description: &Description) -> Result<Architecture, ConfigError> {
    let classes: Vec<String> = raw.get("architectures")?.unwrap_or_default();
    let class = classes.into_iter().next();
    let class = class.ok_or(ConfigError::NoArchitecture)?;
    Architecture::of(&class, description.family).ok_or(ConfigError::Architecture {
        class,
        model_type: description.model_type,
        family: description.family.name(),
    })
}

fn type_rows(raw: &Raw, description: &Description) -> Result<usize, ConfigError> {
    if description.types == Types::None {
        return Ok(0);
    }
    let (what, limit) = ("type_vocab_size", 64);
    match raw.get(what)?.unwrap_or(2) {
        value if value == 0 || value > limit => Err(ShapeError::Size { what, value, limit }.into()),
        rows => Ok(rows),
    }
}

fn labels(raw: &Raw) -> Result<Vec<String>, ConfigError> {
    let named: Option<BTreeMap<usize, String>> = raw.get("id2label")?;
    if let Some(named) = named {
        if let Some(missing) = (0..named.len()).find(|i| !named.contains_key(i)) {
            let count = named.len();
            return Err(ConfigError::Labels { count, missing });
        }
        return Ok(named.into_values().collect());
    }
    // Hugging Face's default: two labels named by number.
    let count = raw.get("num_labels")?.unwrap_or(2);
    if count > 4096 {
        let (what, value, limit) = ("the number of labels", count, 4096);
        return Err(ShapeError::Size { what, value, limit }.into());
    }
    Ok((0..count).map(|i| format!("LABEL_{i}")).collect())
}

/// Decides what the outputs mean as Hugging Face's models do: one output without a `problem_type`
/// is a regression.
fn problem(raw: &Raw, labels: usize) -> Result<Problem, ConfigError> {
    let named: Option<String> = raw.get("problem_type")?;
    match named.as_deref() {
        Some("single_label_classification") => Ok(Problem::SingleLabel),
        Some("multi_label_classification") => Ok(Problem::MultiLabel),
        Some("regression") => Ok(Problem::Regression),
        Some(other) => Err(ConfigError::Problem(other.to_owned())),
        None if labels == 1 => Ok(Problem::Regression),
        None => Ok(Problem::SingleLabel),
    }
}
