//! The float reference against logits computed by Hugging Face's own code.
#![allow(missing_docs)]

mod common;

use common::golden::{TOLERANCE, difference, run, worst};
use common::{RANDOM_MODELS, fixtures, golden_input, lines, repository, shared, weights_of};
use primer_model::fold::FloatWeight;
use primer_plan::role::LinearMap;

#[test]
fn random_models_match_hugging_face() {
    for name in RANDOM_MODELS {
        let dir = common::random_model(name);
        let (weights, text) = weights_of(dir.path());
        let worst = worst(&weights, &text, &fixtures().join(name).join("golden.jsonl"));
        assert!(worst < TOLERANCE, "{name}: {worst}");
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
