//! Fixtures: three small random models with Hugging Face's own answers, and the demo model.
#![allow(dead_code, unreachable_pub)] // Every test file uses a part.

pub mod families;
pub mod fixed;
pub mod golden;

use primer_model::fold::FloatWeights;
use primer_model::load::{LoadError, LoadedModel, ModelFiles};
use primer_text::{Input, TextEncoder, Truncate};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub const RANDOM_MODELS: [&str; 3] = ["random-encoder", "random-qa", "random-tanh-3labels"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn fixtures() -> PathBuf {
    root().join("crates/model/tests/fixtures")
}

/// Returns the path of a part of the larger models and data, if they are next to the repository;
/// prints a note if they are not.
pub fn shared(part: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(part);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {part} of the shared models and data is not there");
    None
}

/// Makes a complete directory of a random model that a test may damage. It has vocab.txt only, so
/// that this way of loading a tokenizer is tested too.
pub fn random_model(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        std::fs::copy(fixtures().join(name).join(file), dir.path().join(file)).unwrap();
    }
    let vocab = root().join("models/sst2-demo/vocab.txt");
    std::fs::copy(vocab, dir.path().join("vocab.txt")).unwrap();
    dir
}

pub fn load(dir: &Path) -> Result<LoadedModel, LoadError> {
    ModelFiles::open(dir)?.load()
}

pub fn load_folded(dir: &Path) -> (FloatWeights, TextEncoder) {
    let LoadedModel {
        shape,
        checkpoint,
        text,
    } = load(dir).unwrap();
    (FloatWeights::fold(&shape, &checkpoint), text)
}

/// Makes the weights that a test is run with from those that were folded.
pub type Rewrite = fn(&FloatWeights) -> FloatWeights;

pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap())
        .collect()
}

/// Returns the input of a golden line, checked against the token indices that Hugging Face made.
pub fn golden_input(text: &TextEncoder, line: &Value, limit: usize) -> Input {
    let first = line["text"].as_str().unwrap();
    let second = line["text_pair"].as_str();
    let input = text
        .encode(first, second, limit, Truncate::LongestFirst)
        .unwrap();
    let indices = |name: &str| -> Option<Vec<u32>> {
        line[name]
            .as_array()
            .map(|a| a.iter().map(|v| v.as_u64().unwrap() as u32).collect())
    };
    assert_eq!(Some(&input.ids), indices("input_ids").as_ref(), "{first}");
    if let Some(types) = indices("token_type_ids") {
        assert_eq!(input.types, types, "{first}");
    }
    input
}
