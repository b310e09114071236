//! The float reference against a file of logits computed by Hugging Face's own code.

use super::{golden_input, lines, numbers};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_ring::matrix::Matrix;
use primer_text::{Input, TextEncoder};
use serde_json::Value;
use std::path::Path;

pub const TOLERANCE: f64 = 1e-3;
/// Where the golden files truncate.
const GOLDEN_TOKENS: usize = 128;

pub fn run(weights: &FloatWeights, input: &Input) -> Vec<Matrix<f32>> {
    float::run(
        &weights.graph(input.tokens()),
        weights,
        input,
        &mut NoObserver,
    )
}

/// Returns the largest difference between our outputs and a golden line's.
pub fn difference(line: &Value, outputs: &[Matrix<f32>], length: usize) -> f64 {
    let compare = |name: &str, ours: Vec<f32>| -> f64 {
        let golden = numbers(&line[name]);
        assert_eq!(golden.len(), ours.len(), "{name}");
        let pairs = golden.iter().zip(&ours);
        pairs
            .map(|(g, o)| (g - f64::from(*o)).abs())
            .fold(0.0, f64::max)
    };
    if !line["logits"].is_null() {
        compare("logits", outputs[0].row(0).to_vec())
    } else if !line["start_logits"].is_null() {
        let column = |c: usize| (0..length).map(|t| outputs[0].get(t, c)).collect();
        compare("start_logits", column(0)).max(compare("end_logits", column(1)))
    } else {
        compare("pooler_output", outputs[1].row(0).to_vec())
    }
}

/// Returns the largest difference over a golden file.
pub fn worst(weights: &FloatWeights, text: &TextEncoder, golden: &Path) -> f64 {
    let mut worst: f64 = 0.0;
    for line in lines(golden) {
        let limit = weights.shape.max_tokens().min(GOLDEN_TOKENS);
        let input = golden_input(text, &line, limit);
        worst = worst.max(difference(&line, &run(weights, &input), input.length));
    }
    worst
}
