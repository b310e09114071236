//! From a checkpoint's tensors to the weights of the plan's graph.
//!
//! The transformations that `primer_plan::encoder` describes, carried out on the numbers:
//!
//! * a linear map that reads a LayerNorm's result `γ⊙ŷ + β` becomes one of `ŷ`: its rows are
//!   multiplied by γ, and `β·W` is added to the bias. `ŷ` is centred, so its product with a
//!   constant column is zero, and every column's mean over the inputs is subtracted: the result is
//!   the same, and an error that the features of `ŷ` have in common cancels (rounded means of a
//!   residual leave one);
//! * a linear map whose result goes into a LayerNorm has the mean over its outputs subtracted, and
//!   so has its bias; the residual `γ⊙ŷ + β` that is added to it becomes `γ⊙ŷ - ⟨γ/d, ŷ⟩` and a
//!   centred β;
//! * queries are scaled by `log2(e)/√d_head`.
//!
//! Biases are summed in double precision: there are few of them, and errors in them are systematic.

use crate::load::tensors::Checkpoint;
use primer_plan::design::{Design, LookedUp};
use primer_plan::graph::{Graph, Weight, WeightKind};
use primer_plan::role::{LinearMap, WeightKey};
use primer_plan::shape::{Head, Shape};
use primer_ring::matrix::Matrix;
use std::collections::HashMap;
use std::f64::consts::LOG2_E;
use std::sync::Arc;

/// A weight of the graph in single precision.
#[derive(Clone)]
pub enum FloatWeight {
    /// Inputs by outputs.
    Dense(Matrix<f32>),
    /// A gain for every column, and what every column contributes to the mean that is subtracted.
    Diagonal {
        /// `g`.
        gain: Vec<f32>,
        /// `h`.
        mean: Vec<f32>,
    },
    /// One row, or one row per position.
    Bias(Matrix<f32>),
}

impl FloatWeight {
    /// Tells whether it has the kind and the size that a graph names.
    fn is_for(&self, weight: &Weight) -> bool {
        match (self, weight.kind) {
            (Self::Dense(m), WeightKind::Dense) | (Self::Bias(m), WeightKind::Bias) => {
                (m.rows(), m.cols()) == (weight.rows, weight.cols)
            }
            (Self::Diagonal { gain, mean }, WeightKind::Diagonal) => {
                gain.len() == weight.cols && mean.len() == weight.cols
            }
            _ => false,
        }
    }
}

/// All weights of a model, in the graph's order. Cheap to clone.
#[derive(Clone)]
pub struct FloatWeights {
    /// The model's shape.
    pub shape: Shape,
    design: &'static dyn Design,
    digest: Digest,
    weights: Vec<Arc<FloatWeight>>,
}

/// A digest of all weights. It distinguishes fine-tuned models of the same shape.
pub type Digest = [u8; 32];

impl FloatWeights {
    /// Returns the digest of the weights as they were folded, before they were rewritten.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the weights in the graph's order.
    pub fn all(&self) -> &[Arc<FloatWeight>] {
        &self.weights
    }

    /// Returns the design of the graph that they belong to.
    pub fn design(&self) -> &'static dyn Design {
        self.design
    }

    /// Makes the graph that they belong to, over `tokens` tokens.
    ///
    /// # Panics
    /// If the model does not take that many tokens.
    pub fn graph(&self, tokens: usize) -> Graph {
        Graph::by(self.design, &self.shape, tokens)
    }

    /// Tells whether a graph has weights of these kinds and sizes.
    pub(crate) fn fit(&self, graph: &Graph) -> bool {
        let mut pairs = self.weights.iter().zip(&graph.weights);
        self.weights.len() == graph.weights.len() && pairs.all(|(made, named)| made.is_for(named))
    }

    /// Makes the same model with the weights `made`, for a graph of another design.
    ///
    /// # Panics
    /// If they are not the weights of that graph.
    #[must_use]
    pub fn rewritten(
        &self,
        design: &'static dyn Design,
        mut made: HashMap<WeightKey, Arc<FloatWeight>>,
    ) -> Self {
        let graph = Graph::by(design, &self.shape, 1);
        Self {
            shape: self.shape.clone(),
            design,
            digest: self.digest,
            weights: in_order(&graph, |key| made.remove(&key)),
        }
    }

    /// Folds a checkpoint.
    pub fn fold(shape: &Shape, checkpoint: &Checkpoint) -> Self {
        let mut folder = Folder {
            shape,
            checkpoint,
            layer: None,
            made: HashMap::new(),
        };
        folder.embeddings();
        let mut norm = folder.norm("embeddings.LayerNorm");
        if shape.is_projected() {
            folder.after_norm("embeddings_project", LinearMap::Projection, &norm, 1.0);
            // No LayerNorm follows it.
            norm = Norm::none(shape.hidden);
        }
        for layer in 0..shape.layers {
            folder.layer = Some(layer);
            norm = folder.layer(layer, &norm);
        }
        folder.layer = None;
        folder.head(&norm);
        let graph = Graph::new(shape, 1);
        let weights = in_order(&graph, |key| folder.made.remove(&key).map(Arc::new));
        Self {
            shape: shape.clone(),
            design: &LookedUp,
            digest: digest(&weights),
            weights,
        }
    }
}

fn digest(weights: &[Arc<FloatWeight>]) -> Digest {
    let mut hash = blake3::Hasher::new_derive_key("primer float weights v1");
    let mut bytes = Vec::new();
    let mut update = |values: &[f32]| {
        for block in values.chunks(1 << 16) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|v| v.to_le_bytes()));
            hash.update(&bytes);
        }
    };
    for weight in weights {
        match &**weight {
            FloatWeight::Dense(m) | FloatWeight::Bias(m) => update(m.data()),
            FloatWeight::Diagonal { gain, mean } => {
                update(gain);
                update(mean);
            }
        }
    }
    *hash.finalize().as_bytes()
}

/// Collects every weight of `graph` in its order, and checks its kind and size.
fn in_order(
    graph: &Graph,
    mut made: impl FnMut(WeightKey) -> Option<Arc<FloatWeight>>,
) -> Vec<Arc<FloatWeight>> {
    let one = |w: &Weight| {
        let made = made(w.key()).unwrap_or_else(|| panic!("no {}", w.name));
        assert!(made.is_for(w), "{} is what the graph names", w.name);
        made
    };
    graph.weights.iter().map(one).collect()
}

struct Norm {
    gain: Vec<f32>,
    shift: Vec<f32>,
    /// Whether the features of what is read add up to zero, as a LayerNorm leaves them.
    centred: bool,
}

impl Norm {
    /// Makes the norm of a value that is read as it is.
    fn none(width: usize) -> Self {
        Self {
            gain: vec![1.0; width],
            shift: vec![0.0; width],
            centred: false,
        }
    }
}

struct Folder<'a> {
    shape: &'a Shape,
    checkpoint: &'a Checkpoint,
    /// The layer that is being folded.
    layer: Option<usize>,
    made: HashMap<WeightKey, FloatWeight>,
}

fn row(values: impl IntoIterator<Item = f64>) -> Matrix<f32> {
    let values: Vec<f32> = values.into_iter().map(|v| v as f32).collect();
    Matrix::from_vec(1, values.len(), values)
}

fn centre(values: &mut [f64]) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|v| *v -= mean);
}

fn centre_rows(matrix: &mut Matrix<f32>) {
    for r in 0..matrix.rows() {
        let row = matrix.row_mut(r);
        let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / row.len() as f64;
        row.iter_mut()
            .for_each(|v| *v = (f64::from(*v) - mean) as f32);
    }
}

/// Subtracts every column's mean from it.
fn centre_columns(matrix: &mut Matrix<f32>) {
    let mut means = vec![0.0; matrix.cols()];
    for r in 0..matrix.rows() {
        let row = matrix.row(r).iter();
        means
            .iter_mut()
            .zip(row)
            .for_each(|(m, v)| *m += f64::from(*v));
    }
    means.iter_mut().for_each(|m| *m /= matrix.rows() as f64);
    for r in 0..matrix.rows() {
        let row = matrix.row_mut(r).iter_mut();
        row.zip(&means)
            .for_each(|(v, m)| *v = (f64::from(*v) - m) as f32);
    }
}

impl Folder<'_> {
    fn norm(&self, name: &str) -> Norm {
        Norm {
            gain: self.checkpoint.get(&format!("{name}.weight")).to_vec(),
            shift: self.checkpoint.get(&format!("{name}.bias")).to_vec(),
            centred: true,
        }
    }

    /// Returns a dense layer as inputs by outputs, and its bias.
    fn dense(&self, name: &str, inputs: usize) -> (Matrix<f32>, Vec<f64>) {
        let bias = self.checkpoint.get(&format!("{name}.bias"));
        let weight = self.checkpoint.get(&format!("{name}.weight"));
        let matrix = Matrix::from_vec(bias.len(), inputs, weight.to_vec()).transpose();
        (matrix, bias.iter().map(|b| f64::from(*b)).collect())
    }

    fn insert(&mut self, map: LinearMap, weight: FloatWeight) {
        let kind = match weight {
            FloatWeight::Dense(_) => WeightKind::Dense,
            FloatWeight::Diagonal { .. } => WeightKind::Diagonal,
            FloatWeight::Bias(_) => WeightKind::Bias,
        };
        let layer = self.layer;
        self.made.insert(WeightKey { layer, map, kind }, weight);
    }

    fn insert_dense(&mut self, map: LinearMap, weight: Matrix<f32>, bias: Vec<f64>) {
        self.insert(map, FloatWeight::Dense(weight));
        self.insert(map, FloatWeight::Bias(row(bias)));
    }

    fn embeddings(&mut self) {
        let width = self.shape.embedding;
        let get = |name: &str| {
            self.checkpoint
                .get(&format!("embeddings.{name}_embeddings.weight"))
        };
        let mut table = get("word").to_vec();
        if self.shape.types > 0 {
            table.extend_from_slice(get("token_type"));
        }
        let mut table = Matrix::from_vec(self.shape.one_hot(), width, table);
        let mut positions = Matrix::from_vec(self.shape.positions, width, get("position").to_vec());
        centre_rows(&mut table);
        centre_rows(&mut positions);
        // A row has one word, so what all words have in common may be added to its position.
        let (vocab, mut common) = (self.shape.vocab, vec![0.0f64; width]);
        for r in 0..vocab {
            let row = common.iter_mut().zip(table.row(r));
            row.for_each(|(sum, w)| *sum += f64::from(*w) / vocab as f64);
        }
        let add = |matrix: &mut Matrix<f32>, rows: usize, sign: f64| {
            for r in 0..rows {
                let row = matrix.row_mut(r).iter_mut().zip(&common);
                row.for_each(|(w, c)| *w = (f64::from(*w) + sign * c) as f32);
            }
        };
        add(&mut table, vocab, -1.0);
        add(&mut positions, self.shape.positions, 1.0);
        let rows = table.rows() + positions.rows();
        let mut joined = table.into_data();
        joined.extend_from_slice(positions.data());
        let joined = Matrix::from_vec(rows, width, joined);
        self.insert(LinearMap::Embedding, FloatWeight::Dense(joined));
    }

    /// Folds a linear map that reads a LayerNorm's result, scaled by `scale`.
    fn after_norm(&mut self, source: &str, map: LinearMap, norm: &Norm, scale: f64) {
        let (mut weight, mut bias) = self.dense(source, norm.gain.len());
        for r in 0..weight.rows() {
            let (gain, shift) = (f64::from(norm.gain[r]), f64::from(norm.shift[r]));
            for (w, b) in weight.row_mut(r).iter_mut().zip(&mut bias) {
                *b += shift * f64::from(*w);
                *w = (f64::from(*w) * gain * scale) as f32;
            }
        }
        bias.iter_mut().for_each(|b| *b *= scale);
        if norm.centred {
            centre_columns(&mut weight);
        }
        self.insert_dense(map, weight, bias);
    }

    /// Folds a linear map that feeds a LayerNorm, together with a residual to which `norm` applies.
    fn before_norm(&mut self, source: &str, map: LinearMap, inputs: usize, norm: &Norm) {
        let (mut weight, mut bias) = self.dense(source, inputs);
        centre_rows(&mut weight);
        for (b, shift) in bias.iter_mut().zip(&norm.shift) {
            *b += f64::from(*shift);
        }
        centre(&mut bias);
        self.insert_dense(map, weight, bias);
        let d = norm.gain.len() as f64;
        let mean = norm
            .gain
            .iter()
            .map(|g| (f64::from(*g) / d) as f32)
            .collect();
        let residual = FloatWeight::Diagonal {
            gain: norm.gain.clone(),
            mean,
        };
        self.insert(map, residual);
    }

    fn layer(&mut self, layer: usize, norm: &Norm) -> Norm {
        let source = |part: &str| format!("encoder.layer.{layer}.{part}");
        let score = LOG2_E / (self.shape.head_size() as f64).sqrt();
        for (map, part, scale) in [
            (LinearMap::Query, "query", score),
            (LinearMap::Key, "key", 1.0),
            (LinearMap::Value, "value", 1.0),
        ] {
            self.after_norm(&source(&format!("attention.self.{part}")), map, norm, scale);
        }
        let (d, ffn) = (self.shape.hidden, self.shape.ffn);
        let attention = source("attention.output.dense");
        self.before_norm(&attention, LinearMap::AttentionOutput, d, norm);
        let middle = self.norm(&source("attention.output.LayerNorm"));
        let wide = source("intermediate.dense");
        self.after_norm(&wide, LinearMap::Intermediate, &middle, 1.0);
        self.before_norm(&source("output.dense"), LinearMap::Output, ffn, &middle);
        self.norm(&source("output.LayerNorm"))
    }

    fn head(&mut self, norm: &Norm) {
        match self.shape.head {
            Head::Classify { .. } => {
                self.after_norm("pooler.dense", LinearMap::Pooler, norm, 1.0);
                let (weight, bias) = self.dense("classifier", self.shape.hidden);
                self.insert_dense(LinearMap::Classifier, weight, bias);
            }
            Head::Span => self.after_norm("qa_outputs", LinearMap::Span, norm, 1.0),
            Head::Tokens { .. } => self.after_norm("classifier", LinearMap::Classifier, norm, 1.0),
            Head::Sentence { .. } => self.last_hidden(norm),
            Head::Encoder { pooled } => {
                self.last_hidden(norm);
                if pooled {
                    self.after_norm("pooler.dense", LinearMap::Pooler, norm, 1.0);
                }
            }
        }
    }

    /// Inserts the last gain and shift as they are.
    fn last_hidden(&mut self, norm: &Norm) {
        let gain = FloatWeight::Diagonal {
            gain: norm.gain.clone(),
            mean: vec![0.0; norm.gain.len()],
        };
        self.insert(LinearMap::LastHidden, gain);
        let shift = row(norm.shift.iter().map(|v| f64::from(*v)));
        self.insert(LinearMap::LastHidden, FloatWeight::Bias(shift));
    }
}
