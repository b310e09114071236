//! `model.safetensors`.

use super::config::{Architecture, Config};
use half::{bf16, f16};
use primer_plan::shape::{Head, Shape, ShapeError};
use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};
use std::collections::HashMap;
use thiserror::Error;

/// Why the weights were refused.
#[derive(Debug, Error)]
pub enum TensorError {
    /// The container is damaged.
    #[error("the file is cut off or damaged ({0})")]
    Container(SafeTensorError),
    /// A tensor that the architecture needs is not there.
    #[error("tensor {name} is missing{}", unexpected_note(.unexpected))]
    Missing {
        /// Its name.
        name: String,
        /// Names in the file that no BERT has.
        unexpected: Vec<String>,
    },
    /// A tensor has another shape than the configuration says.
    #[error("tensor {name} has shape {found:?}, but config.json asks for {expected:?}")]
    Shape {
        /// Its name.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
    },
    /// A tensor has a number type that is not handled.
    #[error("tensor {name} is {dtype:?}; only F32, F16 and BF16 are supported")]
    Type {
        /// Its name.
        name: String,
        /// Its type.
        dtype: Dtype,
    },
    /// A weight is not a number.
    #[error("tensor {name} has {value} at element {index}")]
    NotFinite {
        /// Its name.
        name: String,
        /// Position of the first such element.
        index: usize,
        /// The element.
        value: f32,
    },
    /// The sizes of the configuration are not usable.
    #[error("config.json: {0}")]
    Config(#[from] ShapeError),
}

fn unexpected_note(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(
            "; the file has {} instead, which no BERT has",
            names.join(", ")
        )
    }
}

/// The tensors of a BERT in single precision, by their names without the `bert.` prefix.
pub struct Checkpoint {
    tensors: HashMap<String, Vec<f32>>,
}

impl Checkpoint {
    /// Reads and checks all tensors that the configuration asks for.
    ///
    /// # Errors
    /// [`TensorError`] naming the tensor at fault.
    pub fn read(config: &Config, bytes: &[u8]) -> Result<(Shape, Self), TensorError> {
        let file = SafeTensors::deserialize(bytes).map_err(TensorError::Container)?;
        let mut views: HashMap<String, TensorView<'_>> = HashMap::new();
        for (name, view) in file.tensors() {
            views.insert(name.strip_prefix("bert.").unwrap_or(&name).to_owned(), view);
        }
        let head = match config.architecture {
            Architecture::SequenceClassification => Head::Classify {
                labels: config.labels.clone(),
            },
            Architecture::QuestionAnswering => Head::Span,
            Architecture::Encoder => Head::Encoder {
                pooled: views.contains_key("pooler.dense.weight"),
            },
        };
        let shape = Shape {
            layers: config.layers,
            hidden: config.hidden,
            heads: config.heads,
            ffn: config.ffn,
            vocab: config.vocab,
            positions: config.positions,
            types: config.types,
            activation: config.activation,
            epsilon: config.epsilon,
            head,
        };
        shape.validate()?;
        let mut tensors = HashMap::new();
        let wanted = wanted(&shape);
        for (name, expected) in &wanted {
            // Checkpoints converted from TensorFlow call LayerNorm's tensors gamma and beta.
            let old = name
                .replace("LayerNorm.weight", "LayerNorm.gamma")
                .replace("LayerNorm.bias", "LayerNorm.beta");
            let Some(view) = views.get(name).or_else(|| views.get(&old)) else {
                return Err(TensorError::Missing {
                    name: name.clone(),
                    unexpected: unexpected(&views, &wanted),
                });
            };
            if view.shape() != expected.as_slice() {
                return Err(TensorError::Shape {
                    name: name.clone(),
                    found: view.shape().to_vec(),
                    expected: expected.clone(),
                });
            }
            tensors.insert(name.clone(), to_f32(name, view)?);
        }
        Ok((shape, Self { tensors }))
    }

    /// A checkpoint of given tensors, for models that are made rather than loaded.
    ///
    /// # Panics
    /// If a tensor that the shape needs is missing or has another number of elements.
    pub fn from_tensors(shape: &Shape, tensors: HashMap<String, Vec<f32>>) -> Self {
        for (name, dims) in wanted(shape) {
            let found = tensors.get(&name).map(Vec::len);
            assert_eq!(found, Some(dims.iter().product()), "elements of {name}");
        }
        Self { tensors }
    }

    /// A tensor that was read.
    ///
    /// # Panics
    /// If the architecture has no such tensor.
    pub fn get(&self, name: &str) -> &[f32] {
        self.tensors
            .get(name)
            .unwrap_or_else(|| panic!("no tensor {name} was loaded"))
    }
}

/// Names in the file that belong to no tensor of this architecture, a few of them.
fn unexpected(
    views: &HashMap<String, TensorView<'_>>,
    wanted: &[(String, Vec<usize>)],
) -> Vec<String> {
    let mut names: Vec<String> = views
        .keys()
        .filter(|have| !have.ends_with("position_ids") && wanted.iter().all(|(w, _)| w != *have))
        .cloned()
        .collect();
    names.sort();
    names.truncate(3);
    names
}

/// The tensors of an architecture with their shapes, as Hugging Face lays them out.
pub fn wanted(shape: &Shape) -> Vec<(String, Vec<usize>)> {
    let d = shape.hidden;
    let mut list: Vec<(String, Vec<usize>)> = Vec::new();
    let mut add = |name: String, dims: &[usize]| list.push((name, dims.to_vec()));
    add(
        "embeddings.word_embeddings.weight".into(),
        &[shape.vocab, d],
    );
    add(
        "embeddings.position_embeddings.weight".into(),
        &[shape.positions, d],
    );
    add(
        "embeddings.token_type_embeddings.weight".into(),
        &[shape.types, d],
    );
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    let mut dense = Vec::new();
    for layer in 0..shape.layers {
        let prefix = format!("encoder.layer.{layer}");
        for part in ["query", "key", "value"] {
            dense.push((format!("{prefix}.attention.self.{part}"), d, d));
        }
        dense.push((format!("{prefix}.attention.output.dense"), d, d));
        norms.push(format!("{prefix}.attention.output.LayerNorm"));
        dense.push((format!("{prefix}.intermediate.dense"), shape.ffn, d));
        dense.push((format!("{prefix}.output.dense"), d, shape.ffn));
        norms.push(format!("{prefix}.output.LayerNorm"));
    }
    match &shape.head {
        Head::Classify { labels } => {
            dense.push(("pooler.dense".into(), d, d));
            dense.push(("classifier".into(), labels.len(), d));
        }
        Head::Span => dense.push(("qa_outputs".into(), 2, d)),
        Head::Encoder { pooled: true } => dense.push(("pooler.dense".into(), d, d)),
        Head::Encoder { pooled: false } => {}
    }
    for name in norms {
        add(format!("{name}.weight"), &[d]);
        add(format!("{name}.bias"), &[d]);
    }
    for (name, outputs, inputs) in dense {
        add(format!("{name}.weight"), &[outputs, inputs]);
        add(format!("{name}.bias"), &[outputs]);
    }
    list
}

fn to_f32(name: &str, view: &TensorView<'_>) -> Result<Vec<f32>, TensorError> {
    let bytes = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F32 => bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect(),
        Dtype::F16 => bytes
            .chunks_exact(2)
            .map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32())
            .collect(),
        Dtype::BF16 => bytes
            .chunks_exact(2)
            .map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())
            .collect(),
        dtype => {
            return Err(TensorError::Type {
                name: name.to_owned(),
                dtype,
            });
        }
    };
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(TensorError::NotFinite {
            name: name.to_owned(),
            index,
            value: values[index],
        }),
        None => Ok(values),
    }
}
