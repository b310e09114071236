//! Models and inputs: the embedded model, those of fixtures, and random ones of twelve words.
//!
//! Every model comes quantised, once its weights are as the user of it has them: as they were
//! folded (`FloatWeights::clone`), or rewritten for another graph.

use crate::files::{copy_random_model, repository};
use primer_model::calibrate::{Calibrated, calibrate};
use primer_model::fixed::{self, Errors, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_plan::graph::Graph;
use primer_plan::scales::Scales;
use primer_plan::shape::{Head, Shape};
use primer_ring::matrix::Matrix;
use primer_text::{Input, TextEncoder};
use std::path::Path;
use std::sync::Arc;

/// A model, and what encodes its texts.
pub type WithText = (Arc<IntModel>, TextEncoder);

/// Loads the weights of a model's directory, folded.
pub fn weights_of(dir: &Path) -> (FloatWeights, TextEncoder) {
    let LoadedModel {
        shape,
        checkpoint,
        text,
    } = ModelFiles::open(dir).unwrap().load().unwrap();
    (FloatWeights::fold(&shape, &checkpoint), text)
}

/// Quantises a model in a rewrite, with scales from the calibration text, changed.
fn quantise(
    weights: &FloatWeights,
    text: &TextEncoder,
    rewrite: impl Fn(&FloatWeights) -> FloatWeights,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = &rewrite(weights);
    let calibration = std::fs::read_to_string(repository("models/calibration.txt")).unwrap();
    // A tenth of the text is enough for a test and takes a tenth of the time.
    let lines: Vec<&str> = calibration.lines().step_by(10).collect();
    let mut calibrated = calibrate(weights, text, &lines.join("\n"), |_, _| ()).unwrap();
    change(&weights.graph(1), &mut calibrated.scales);
    Arc::new(IntModel::quantise(weights, calibrated).unwrap())
}

/// Loads a model's directory.
pub fn load(dir: &Path, rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> WithText {
    let (weights, text) = weights_of(dir);
    (quantise(&weights, &text, rewrite, |_, _| ()), text)
}

/// Loads the embedded model.
pub fn demo(rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> WithText {
    load(&repository("models/sst2-demo"), rewrite)
}

/// Loads one of the random models that the loading tests use, with the embedded model's vocabulary.
pub fn fixture(name: &str, rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> WithText {
    let dir = tempfile::tempdir().unwrap();
    copy_random_model(name, dir.path());
    load(dir.path(), rewrite)
}

/// The words of the random models.
const WORDS: [&str; 12] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "the", "of", "and", "film", "story", "good", "bad",
];

/// Returns what encodes texts of the twelve words.
pub fn twelve_words() -> TextEncoder {
    TextEncoder::from_vocabulary(WORDS.join("\n").as_bytes(), None).unwrap()
}

/// Returns a head with two labels.
pub fn classify() -> Head {
    Head::classify(vec!["no".into(), "yes".into()])
}

/// Returns the shape of a small BERT of the twelve words.
pub fn shape(layers: usize, (hidden, heads): (usize, usize), head: Head) -> Shape {
    Shape {
        vocab: WORDS.len(),
        positions: 320,
        ffn: 2 * hidden,
        head,
        ..synthetic::bert_shape(layers, hidden, heads)
    }
}

/// Makes a random model of the twelve words.
pub fn random(shape: &Shape, rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> Arc<IntModel> {
    random_with(shape, rewrite, |_, _| ())
}

/// Makes the same with other scales than the calibrated ones.
pub fn random_with(
    shape: &Shape,
    rewrite: impl Fn(&FloatWeights) -> FloatWeights,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[7; 16]));
    quantise(&weights, &twelve_words(), rewrite, change)
}

/// Makes the smallest model that has every kind of step.
pub fn tiny(rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> Arc<IntModel> {
    random(&shape(1, (16, 2), classify()), rewrite)
}

/// Makes a model that has the plan of a random one and other weights.
pub fn twin(model: &IntModel, rewrite: impl Fn(&FloatWeights) -> FloatWeights) -> Arc<IntModel> {
    let shape = model.shape();
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[8; 16]));
    let scales = Calibrated::unsorted(model.scales().clone());
    let twin = IntModel::quantise(&rewrite(&weights), scales).unwrap();
    assert!(model.scales() == twin.scales() && model.weights() != twin.weights());
    Arc::new(twin)
}

/// Makes a pair of texts over the twelve words, `length` tokens of `tokens`; different seeds give
/// different texts.
pub fn words(tokens: usize, length: usize, seed: usize) -> Input {
    let mut input = Input {
        ids: (0..length)
            .map(|t| [2, 4, 8, 6, 3, 11, 5, 10][(t + seed) % 8])
            .collect(),
        types: (0..length).map(|t| u32::from(2 * t >= length)).collect(),
        length,
        removed: 0,
        second: vec![None; length],
    };
    input.pad_to(tokens, 0);
    input
}

/// Encodes a text, or a pair, padded to a number of tokens.
pub fn encode(text: &TextEncoder, first: &str, second: Option<&str>, tokens: usize) -> Input {
    let truncate = primer_text::Truncate::LongestFirst;
    let mut input = text.encode(first, second, tokens, truncate).unwrap();
    input.pad_to(tokens, text.padding());
    input
}

/// Runs the fixed-point reference with everything rounded to nearest.
pub fn rounded(model: &IntModel, input: &Input) -> Vec<Matrix<f64>> {
    let plan = model.plan(input.tokens()).unwrap();
    let (mut truncate, mut errors) = (Truncate::Exact, Errors::None);
    let mut workspace = Workspace::default();
    let (truncate, errors) = (&mut truncate, &mut errors);
    fixed::run(&plan, model, input, truncate, errors, &mut workspace).reals
}
