//! `config.json`.

use primer_plan::function::Activation;
use primer_plan::shape::ShapeError;
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// The architectures that can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// `BertForSequenceClassification`.
    SequenceClassification,
    /// `BertForQuestionAnswering`.
    QuestionAnswering,
    /// `BertModel`.
    Encoder,
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Not a BERT.
    #[error("model_type \"{0}\" is not supported; only \"bert\" is")]
    ModelType(String),
    /// An architecture that has no plan.
    #[error(
        "architecture \"{0}\" is not supported; supported are BertForSequenceClassification, \
         BertForQuestionAnswering and BertModel"
    )]
    Architecture(String),
    /// No architecture at all.
    #[error("\"architectures\" is missing or empty, so the model's head is unknown")]
    NoArchitecture,
    /// An activation that has no circuit.
    #[error(
        "hidden_act \"{0}\" is not supported; supported are \"gelu\", \"gelu_new\", \
         \"gelu_pytorch_tanh\" and \"relu\""
    )]
    Activation(String),
    /// Relative positions.
    #[error("position_embedding_type \"{0}\" is not supported; only \"absolute\" is")]
    Positions(String),
    /// A decoder.
    #[error("is_decoder is true, but only encoders are supported")]
    Decoder,
    /// Labels that do not count from zero.
    #[error("id2label has {count} labels, but none for \"{missing}\"")]
    Labels {
        /// Entries of the map.
        count: usize,
        /// The index that is missing.
        missing: usize,
    },
    /// A size is out of bounds or contradicts another.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The fields of `config.json` that matter, checked one by one.
#[derive(Debug, Clone)]
pub struct Config {
    /// The model's class.
    pub architecture: Architecture,
    /// The feed-forward activation.
    pub activation: Activation,
    /// `num_hidden_layers`.
    pub layers: usize,
    /// `hidden_size`.
    pub hidden: usize,
    /// `num_attention_heads`.
    pub heads: usize,
    /// `intermediate_size`.
    pub ffn: usize,
    /// `vocab_size`.
    pub vocab: usize,
    /// `max_position_embeddings`.
    pub positions: usize,
    /// `type_vocab_size`.
    pub types: usize,
    /// `layer_norm_eps`.
    pub epsilon: f64,
    /// Names of the labels in order.
    pub labels: Vec<String>,
}

#[derive(Deserialize)]
struct Raw {
    architectures: Option<Vec<String>>,
    model_type: Option<String>,
    hidden_act: String,
    num_hidden_layers: usize,
    hidden_size: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "default_epsilon")]
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
    id2label: Option<BTreeMap<usize, String>>,
    num_labels: Option<usize>,
}

const fn two() -> usize {
    2
}

const fn default_epsilon() -> f64 {
    1e-12
}

impl Config {
    /// Parses and checks the file's bytes.
    ///
    /// # Errors
    /// [`ConfigError`] naming the field at fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let raw: Raw = serde_json::from_slice(bytes)?;
        if let Some(kind) = raw.model_type.filter(|t| t != "bert") {
            return Err(ConfigError::ModelType(kind));
        }
        let name = raw.architectures.and_then(|list| list.into_iter().next());
        let architecture = match name.ok_or(ConfigError::NoArchitecture)?.as_str() {
            "BertForSequenceClassification" => Architecture::SequenceClassification,
            "BertForQuestionAnswering" => Architecture::QuestionAnswering,
            "BertModel" => Architecture::Encoder,
            other => return Err(ConfigError::Architecture(other.to_owned())),
        };
        let activation = match raw.hidden_act.as_str() {
            "gelu" => Activation::GeluErf,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            other => return Err(ConfigError::Activation(other.to_owned())),
        };
        if let Some(kind) = raw.position_embedding_type.filter(|t| t != "absolute") {
            return Err(ConfigError::Positions(kind));
        }
        if raw.is_decoder {
            return Err(ConfigError::Decoder);
        }
        let labels = match raw.id2label {
            Some(map) => {
                if let Some(missing) = (0..map.len()).find(|i| !map.contains_key(i)) {
                    return Err(ConfigError::Labels {
                        count: map.len(),
                        missing,
                    });
                }
                map.into_values().collect()
            }
            // Hugging Face's default: two labels named by number.
            None => {
                let count = raw.num_labels.unwrap_or(2);
                if count > 4096 {
                    let (what, value, limit) = ("the number of labels", count, 4096);
                    return Err(ShapeError::Size { what, value, limit }.into());
                }
                (0..count).map(|i| format!("LABEL_{i}")).collect()
            }
        };
        Ok(Self {
            architecture,
            activation,
            layers: raw.num_hidden_layers,
            hidden: raw.hidden_size,
            heads: raw.num_attention_heads,
            ffn: raw.intermediate_size,
            vocab: raw.vocab_size,
            positions: raw.max_position_embeddings,
            types: raw.type_vocab_size,
            epsilon: raw.layer_norm_eps,
            labels,
        })
    }
}
