//! Fixtures: three small random models with Hugging Face's own answers, and the demo model.
#![allow(dead_code, unreachable_pub, unused_imports)] // Every test file uses a part.

pub use primer_testkit::files::{fixtures, random_model, repository, shared};
pub use primer_testkit::models::weights_of;

pub mod families;
pub mod fixed;
pub mod golden;

use primer_model::fold::FloatWeights;
use primer_model::load::{LoadError, LoadedModel, ModelFiles};
use primer_text::{Input, TextEncoder, Truncate};
use serde_json::Value;
use std::path::Path;

pub const RANDOM_MODELS: [&str; 3] = ["random-encoder", "random-qa", "random-tanh-3labels"];

pub fn load(dir: &Path) -> Result<LoadedModel, LoadError> {
    ModelFiles::open(dir)?.load()
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
