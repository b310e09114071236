//! `model.safetensors`.

use super::config::{Architecture, Config};
use super::family::Types;
use super::sentence::Sentence;
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
        /// Names in the file that the architecture does not have.
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
            "; the file has {} instead, which this architecture does not have",
            names.join(", ")
        )
    }
}

/// The tensors of an encoder in single precision, by the names that BERT has for them, without its
/// prefix.
pub struct Checkpoint {
    tensors: HashMap<String, Vec<f32>>,
}

impl Checkpoint {
    /// Reads and checks all tensors that the configuration asks for. Something other than the
    /// model's own head may stand on top.
    ///
    /// # Errors
    /// [`TensorError`] naming the tensor at fault.
    pub(super) fn read(
        config: &Config,
        sentence: Option<&Sentence>,
        bytes: &[u8],
    ) -> Result<(Shape, Self), TensorError> {
        let file = SafeTensors::deserialize(bytes).map_err(TensorError::Container)?;
        let description = config.description;
        let mut views: HashMap<String, TensorView<'_>> = HashMap::new();
        for (name, view) in file.tensors() {
            let name = name.strip_prefix(description.prefix).unwrap_or(&name);
            views.insert(name.to_owned(), view);
        }
        let pooled = views.contains_key("pooler.dense.weight");
        let shape = shape(config, sentence, pooled);
        shape.validate()?;
        let mut all = wanted(&shape);
        for (name, dims) in &mut all {
            if name == POSITIONS {
                // The file also has positions that no text uses.
                dims[0] = config.position_rows;
            }
        }
        if description.types == Types::First {
            all.push((TYPES.to_owned(), vec![config.type_rows, shape.embedding]));
        }
        let names = all.iter().map(|(name, _)| name);
        let names = names.map(|name| description.file_name(name, &shape.head));
        let names: Vec<String> = names.collect();
        let mut tensors = HashMap::new();
        for ((ours, expected), name) in all.iter().zip(&names) {
            let Some(view) = views.get(name).or_else(|| views.get(&old_name(name))) else {
                return Err(TensorError::Missing {
                    name: name.clone(),
                    unexpected: unexpected(&views, &names),
                });
            };
            if view.shape() != expected.as_slice() {
                return Err(TensorError::Shape {
                    name: name.clone(),
                    found: view.shape().to_vec(),
                    expected: expected.clone(),
                });
            }
            tensors.insert(ours.clone(), to_f32(name, view)?);
        }
        bring_positions(config, &shape, &mut tensors);
        Ok((shape, Self { tensors }))
    }

    /// Makes a checkpoint of given tensors, for models that are generated rather than loaded.
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

    /// Returns a tensor by its name.
    ///
    /// # Panics
    /// If the architecture has no such tensor.
    pub fn get(&self, name: &str) -> &[f32] {
        self.tensors
            .get(name)
            .unwrap_or_else(|| panic!("no tensor {name} was loaded"))
    }
}

const POSITIONS: &str = "embeddings.position_embeddings.weight";
const TYPES: &str = "embeddings.token_type_embeddings.weight";

/// Returns the shape that a configuration describes.
fn shape(config: &Config, sentence: Option<&Sentence>, pooled: bool) -> Shape {
    let labels = config.labels.clone();
    let head = match (sentence, config.architecture) {
        (Some(sentence), _) => sentence.head(),
        (None, Architecture::SequenceClassification) => Head::Classify {
            labels,
            summary: config.description.summary,
            problem: config.problem,
        },
        (None, Architecture::TokenClassification) => Head::Tokens { labels },
        (None, Architecture::QuestionAnswering) => Head::Span,
        (None, Architecture::Encoder) => Head::Encoder { pooled },
    };
    let limit = sentence.and_then(|sentence| sentence.max_tokens);
    let positions = config.position_rows - config.first_position;
    Shape {
        family: config.description.family,
        layers: config.layers,
        hidden: config.hidden,
        embedding: config.embedding,
        heads: config.heads,
        ffn: config.ffn,
        vocab: config.vocab,
        positions: positions.min(limit.unwrap_or(positions)),
        types: match config.description.types {
            Types::Told => config.type_rows,
            Types::First | Types::None => 0,
        },
        activation: config.activation,
        epsilon: config.epsilon,
        head,
    }
}

/// Keeps only the positions that a text uses, and adds the type of every token to them if there is
/// only one type.
fn bring_positions(config: &Config, shape: &Shape, tensors: &mut HashMap<String, Vec<f32>>) {
    let width = shape.embedding;
    let table = tensors.get_mut(POSITIONS).expect("just read");
    table.drain(..config.first_position * width);
    table.truncate(shape.positions * width);
    if config.description.types == Types::First {
        let kind = tensors.remove(TYPES).expect("just read");
        let table = tensors.get_mut(POSITIONS).expect("just read");
        for (position, kind) in table.iter_mut().zip(kind[..width].iter().cycle()) {
            *position += kind;
        }
    }
}

/// Returns the name that a checkpoint converted from TensorFlow has for a tensor: there LayerNorm's
/// tensors are called gamma and beta.
fn old_name(name: &str) -> String {
    name.replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta")
}

/// Returns a few names in the file that belong to no tensor of this architecture.
fn unexpected(views: &HashMap<String, TensorView<'_>>, wanted: &[String]) -> Vec<String> {
    let unknown = |have: &&String| !have.ends_with("position_ids") && !wanted.contains(have);
    let mut names: Vec<String> = views.keys().filter(unknown).cloned().collect();
    names.sort();
    names.truncate(3);
    names
}

/// Lists the tensors of an architecture with their shapes, as Hugging Face's BERT has them.
pub fn wanted(shape: &Shape) -> Vec<(String, Vec<usize>)> {
    let (d, width) = (shape.hidden, shape.embedding);
    let mut list: Vec<(String, Vec<usize>)> = Vec::new();
    let mut add = |name: String, dims: &[usize]| list.push((name, dims.to_vec()));
    let words = "embeddings.word_embeddings.weight";
    add(words.into(), &[shape.vocab, width]);
    add(POSITIONS.into(), &[shape.positions, width]);
    if shape.types > 0 {
        add(TYPES.into(), &[shape.types, width]);
    }
    let mut norms = vec![("embeddings.LayerNorm".to_owned(), width)];
    let mut dense = Vec::new();
    if shape.is_projected() {
        dense.push(("embeddings_project".to_owned(), d, width));
    }
    for layer in 0..shape.layers {
        let prefix = format!("encoder.layer.{layer}");
        for part in ["query", "key", "value"] {
            dense.push((format!("{prefix}.attention.self.{part}"), d, d));
        }
        dense.push((format!("{prefix}.attention.output.dense"), d, d));
        norms.push((format!("{prefix}.attention.output.LayerNorm"), d));
        dense.push((format!("{prefix}.intermediate.dense"), shape.ffn, d));
        dense.push((format!("{prefix}.output.dense"), d, shape.ffn));
        norms.push((format!("{prefix}.output.LayerNorm"), d));
    }
    match &shape.head {
        Head::Classify { labels, .. } => {
            dense.push(("pooler.dense".into(), d, d));
            dense.push(("classifier".into(), labels.len(), d));
        }
        Head::Tokens { labels } => dense.push(("classifier".into(), labels.len(), d)),
        Head::Span => dense.push(("qa_outputs".into(), 2, d)),
        Head::Encoder { pooled: true } => dense.push(("pooler.dense".into(), d, d)),
        Head::Encoder { pooled: false } | Head::Sentence { .. } => {}
    }
    for (name, width) in norms {
        add(format!("{name}.weight"), &[width]);
        add(format!("{name}.bias"), &[width]);
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
