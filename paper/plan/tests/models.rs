//! Models by the graphs of the paper's schemes: against Hugging Face's logits in single precision,
//! and against single precision in integers.
#![allow(missing_docs)]

#[path = "../../../crates/model/tests/common/mod.rs"]
mod common;

use common::families::{FIXTURES, SHARED, matches_in_float, matches_in_integers};
use common::fixed::{
    check_close_to_float, check_labels, check_padding, check_prepared, check_sst2, prepare,
};
use common::golden::{TOLERANCE, worst};
use common::{RANDOM_MODELS, Rewrite, fixtures, random_model, repository, shared, weights_of};
use primer_model::calibrate::calibrate;
use primer_model::prepared::PreparedError;
use primer_model::quantise::IntModel;
use primer_paper_plan::Form;
use primer_plan::plan::PlanError;

const SEPARATE: Rewrite = |folded| Form::Separate.weights(folded);
const MERGED: Rewrite = |folded| Form::Merged.weights(folded);
const BOTH: [Rewrite; 2] = [SEPARATE, MERGED];

/// Checks that taking functions apart changes nothing, and that merging is exact up to the rounding
/// of single precision.
#[test]
fn models_match_hugging_face() {
    let random = RANDOM_MODELS.map(|name| {
        let golden = fixtures().join(name).join("golden.jsonl");
        (weights_of(random_model(name).path()), golden)
    });
    let demo = weights_of(&repository("models/sst2-demo"));
    let demo = (demo, fixtures().join("sst2-demo.golden.jsonl"));
    for ((folded, text), golden) in random.into_iter().chain([demo]) {
        for rewrite in BOTH {
            let weights = rewrite(&folded);
            assert_eq!(weights.digest(), folded.digest());
            let worst = worst(&weights, &text, &golden);
            assert!(worst < TOLERANCE, "{}: {worst}", golden.display());
        }
    }
}

#[test]
fn small_copies_of_families_match_hugging_face() {
    for name in FIXTURES {
        for rewrite in BOTH {
            let dir = fixtures().join("family").join(name);
            matches_in_float(&dir, rewrite);
            matches_in_integers(&dir, rewrite);
        }
    }
}

#[test]
fn whole_checkpoints_match_hugging_face_where_they_are() {
    for name in SHARED {
        if let Some(dir) = shared(&format!("models/family/{name}")) {
            for rewrite in BOTH {
                matches_in_float(&dir, rewrite);
                matches_in_integers(&dir, rewrite);
            }
        }
    }
}

#[test]
fn close_to_float_on_every_kind_of_model() {
    for rewrite in BOTH {
        check_close_to_float(rewrite, 0.05);
    }
}

#[test]
fn the_demo_model_keeps_its_labels() {
    BOTH.into_iter().for_each(check_labels);
}

#[test]
fn padding_is_invisible_to_the_result() {
    BOTH.into_iter().for_each(check_padding);
}

#[test]
fn prepared_models_come_back_the_same() {
    BOTH.into_iter().for_each(check_prepared);
}

/// Checks that scales and files of one graph are refused for another, and say that they are not of
/// its size.
#[test]
fn what_was_made_for_another_graph_is_refused() {
    let dir = random_model("random-qa");
    let (folded, text) = weights_of(dir.path());
    let scales = calibrate(&folded, &text, "a good film", |_, _| ()).unwrap();
    let merged = Form::Merged.weights(&folded);
    let count = |error: &PlanError| matches!(error, PlanError::Count { what: "values", .. });
    let error = IntModel::quantise(&merged, scales).err().unwrap();
    assert!(count(&error), "{error}");
    let bytes = prepare(dir.path(), SEPARATE).2.to_bytes();
    assert!(IntModel::from_bytes_by(&Form::Separate, &bytes).is_ok());
    for refused in [
        IntModel::from_bytes(&bytes),
        IntModel::from_bytes_by(&Form::Merged, &bytes),
    ] {
        let error = refused.err().unwrap();
        assert!(
            matches!(&error, PreparedError::Plan(plan) if count(plan)),
            "{error}"
        );
    }
}

#[test]
fn the_demo_model_on_all_of_sst2_where_it_is() {
    let dir = repository("models/sst2-demo");
    for (rewrite, seed) in [(SEPARATE, None), (SEPARATE, Some(5)), (MERGED, Some(6))] {
        check_sst2(&dir, rewrite, seed);
    }
}

#[test]
#[ignore = "several minutes; run with: cargo test --release -p primer-paper-plan -- --ignored"]
fn minilm_on_all_of_sst2() {
    let Some(dir) = shared("models/minilm-sst2") else {
        return;
    };
    for (rewrite, seed) in [(SEPARATE, None), (SEPARATE, Some(5)), (MERGED, Some(6))] {
        check_sst2(&dir, rewrite, seed);
    }
}
