//! The float reference against logits computed by Hugging Face's own code.
#![allow(missing_docs)]

mod common;

use common::{
    RANDOM_MODELS, fixtures, golden_input, lines, numbers, repository, shared, weights_of,
};
use primer_model::float::{self, NoObserver};
use primer_model::fold::{FloatWeight, FloatWeights};
use primer_plan::graph::Form;
use primer_plan::role::LinearMap;
use primer_ring::matrix::Matrix;
use primer_text::{Input, TextEncoder};
use serde_json::Value;
use std::path::Path;

const TOLERANCE: f64 = 1e-3;
/// Where the golden files truncate.
const GOLDEN_TOKENS: usize = 128;

fn run(weights: &FloatWeights, input: &Input) -> Vec<Matrix<f32>> {
    float::run(
        &weights.graph(input.tokens()),
        weights,
        input,
        &mut NoObserver,
    )
}

/// Returns the largest difference between our outputs and a golden line's.
fn difference(line: &Value, outputs: &[Matrix<f32>], length: usize) -> f64 {
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

fn worst(weights: &FloatWeights, text: &TextEncoder, golden: &Path) -> f64 {
    let mut worst: f64 = 0.0;
    for line in lines(golden) {
        let limit = weights.shape.max_tokens().min(GOLDEN_TOKENS);
        let input = golden_input(text, &line, limit);
        worst = worst.max(difference(&line, &run(weights, &input), input.length));
    }
    worst
}

#[test]
fn random_models_match_hugging_face() {
    for name in RANDOM_MODELS {
        let dir = common::random_model(name);
        let (weights, text) = weights_of(dir.path());
        let worst = worst(&weights, &text, &fixtures().join(name).join("golden.jsonl"));
        assert!(worst < TOLERANCE, "{name}: {worst}");
    }
}

/// Checks models without queries and keys: merging is exact up to the rounding of single precision.
#[test]
fn merged_models_match_hugging_face() {
    let random = RANDOM_MODELS.map(|name| {
        let golden = fixtures().join(name).join("golden.jsonl");
        (weights_of(common::random_model(name).path()), golden)
    });
    let demo = weights_of(&repository("models/sst2-demo"));
    let demo = (demo, fixtures().join("sst2-demo.golden.jsonl"));
    for ((weights, text), golden) in random.into_iter().chain([demo]) {
        let merged = weights.with_form(Form::Merged);
        assert_eq!(merged.digest(), weights.digest());
        let worst = worst(&merged, &text, &golden);
        assert!(worst < TOLERANCE, "{}: {worst}", golden.display());
    }
}

#[test]
fn the_demo_model_matches_hugging_face() {
    let (weights, text) = weights_of(&repository("models/sst2-demo"));
    let worst = worst(&weights, &text, &fixtures().join("sst2-demo.golden.jsonl"));
    assert!(worst < TOLERANCE, "{worst}");
}

/// Checks that maps of normalised values ignore what all features have in common. It should be
/// zero, but a rounded mean of the residual adds the same error to all of them.
#[test]
fn maps_of_normalised_values_do_not_see_what_features_have_in_common() {
    let (weights, _) = weights_of(&repository("models/sst2-demo"));
    let graph = weights.graph(1);
    let mut checked = 0;
    for (weight, made) in graph.weights.iter().zip(weights.all()) {
        use LinearMap::{Intermediate, Key, Pooler, Query, Value};
        let FloatWeight::Dense(matrix) = &**made else {
            continue;
        };
        if ![Query, Key, Value, Intermediate, Pooler].contains(&weight.map) {
            continue;
        }
        let largest = matrix.data().iter().fold(0f32, |m, v| m.max(v.abs()));
        for c in 0..matrix.cols() {
            let sum: f64 = (0..matrix.rows())
                .map(|r| f64::from(matrix.get(r, c)))
                .sum();
            assert!(sum.abs() < 1e-5 * f64::from(largest), "{}", weight.name);
        }
        checked += 1;
    }
    assert_eq!(checked, 2 * 4 + 1);
}

#[test]
fn padding_changes_nothing() {
    let (weights, text) = weights_of(&repository("models/sst2-demo"));
    for line in lines(&fixtures().join("sst2-demo.golden.jsonl")) {
        let mut input = golden_input(&text, &line, 128);
        input.pad_to(64, text.padding());
        let worst = difference(&line, &run(&weights, &input), input.length);
        assert!(worst < TOLERANCE, "{}: {worst}", line["text"]);
    }
    // And for a head that answers for every token.
    let dir = common::random_model("random-qa");
    let (weights, text) = weights_of(dir.path());
    for line in lines(&fixtures().join("random-qa/golden.jsonl")) {
        let mut input = golden_input(&text, &line, 96);
        input.pad_to(48, text.padding());
        let worst = difference(&line, &run(&weights, &input), input.length);
        assert!(worst < TOLERANCE, "{}: {worst}", line["text"]);
    }
}

/// Checks a whole golden file, if it is next to the repository.
fn whole_file(model: &str, file: &str) {
    let Some(dir) = shared(&format!("models/{model}")) else {
        return;
    };
    let Some(golden) = shared(&format!("golden/{file}")) else {
        return;
    };
    let (weights, text) = weights_of(&dir);
    let worst = worst(&weights, &text, &golden);
    eprintln!("{model}: largest difference {worst:.6}");
    assert!(worst < TOLERANCE, "{model}: {worst}");
}

#[test]
fn all_of_sst2_with_the_demo_model_where_it_is() {
    whole_file("sst2-demo", "sst2-demo.sst2-dev.jsonl");
}

#[test]
fn all_of_sst2_with_minilm_where_it_is() {
    whole_file("minilm-sst2", "minilm-sst2.sst2-dev.jsonl");
}

#[test]
fn mnli_with_minilm_where_it_is() {
    whole_file("minilm-mnli", "minilm-mnli.mnli-dev.jsonl");
}
