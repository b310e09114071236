//! Models and inputs: the embedded model, those of fixtures, and random ones of twelve words.
//!
//! Every model comes quantised in the form that its user asks for.

use crate::files::{copy_random_model, repository};
use primer_model::calibrate::{Calibrated, calibrate};
use primer_model::fixed::{self, Errors, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_plan::graph::{Form, Graph};
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

/// Quantises a model in a form, with scales from the calibration text, changed.
fn quantise(
    weights: &FloatWeights,
    text: &TextEncoder,
    form: Form,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = &weights.with_form(form);
    let calibration = std::fs::read_to_string(repository("models/calibration.txt")).unwrap();
    // A tenth of the text is enough for a test and takes a tenth of the time.
    let lines: Vec<&str> = calibration.lines().step_by(10).collect();
    let mut calibrated = calibrate(weights, text, &lines.join("\n"), |_, _| ()).unwrap();
    change(&weights.graph(1), &mut calibrated.scales);
    Arc::new(IntModel::quantise(weights, calibrated).unwrap())
}

/// Loads a model's directory.
pub fn load(dir: &Path, form: Form) -> WithText {
    let (weights, text) = weights_of(dir);
    (quantise(&weights, &text, form, |_, _| ()), text)
}

/// Loads the embedded model.
pub fn demo(form: Form) -> WithText {
    load(&repository("models/sst2-demo"), form)
}

/// Loads one of the random models that the loading tests use, with the embedded model's vocabulary.
pub fn fixture(name: &str, form: Form) -> WithText {
    let dir = tempfile::tempdir().unwrap();
    copy_random_model(name, dir.path());
    load(dir.path(), form)
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
pub fn random(shape: &Shape, form: Form) -> Arc<IntModel> {
    random_with(shape, form, |_, _| ())
}

/// Makes the same with other scales than the calibrated ones.
pub fn random_with(
    shape: &Shape,
    form: Form,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[7; 16]));
    quantise(&weights, &twelve_words(), form, change)
}

/// Makes the smallest model that has every kind of step.
pub fn tiny(form: Form) -> Arc<IntModel> {
    random(&shape(1, (16, 2), classify()), form)
}

/// Makes a model that has the plan of a random one and other weights.
pub fn twin(model: &IntModel, form: Form) -> Arc<IntModel> {
    let shape = model.shape();
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[8; 16]));
    let scales = Calibrated::unsorted(model.scales().clone());
    let twin = IntModel::quantise(&weights.with_form(form), scales).unwrap();
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
