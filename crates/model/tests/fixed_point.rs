//! The fixed-point reference against the float reference.
#![allow(missing_docs)]

mod common;

use common::fixed::{
    check_close_to_float, check_labels, check_padding, check_prepared, check_sst2, difference,
    prepare, run,
};
use common::{fixtures, golden_input, lines, random_model, repository, shared, weights_of};
use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::prepared::PreparedError;
use primer_model::quantise::IntModel;
use primer_plan::plan::Plan;
use primer_text::Input;
use proptest::prelude::*;

#[test]
fn close_to_float_on_every_kind_of_model() {
    // Looked-up functions have coarse indices.
    check_close_to_float(FloatWeights::clone, 0.12);
}

#[test]
fn one_token_alone() {
    let (weights, text, model) = prepare(&repository("models/sst2-demo"), FloatWeights::clone);
    let input = Input {
        ids: vec![text.padding() + 2],
        types: vec![0],
        length: 1,
        removed: 0,
        second: vec![None],
    };
    let worst = difference(&weights, &input, &run(&model, &input, Some(3)));
    assert!(worst < 0.2, "{worst}");
}

#[test]
fn the_demo_model_keeps_its_labels() {
    check_labels(FloatWeights::clone);
}

#[test]
fn padding_is_invisible_to_the_result() {
    check_padding(FloatWeights::clone);
}

#[test]
fn a_value_out_of_range_is_reported() {
    let (weights, text) = weights_of(&repository("models/sst2-demo"));
    // One short line is not enough text: scales come out too fine for other inputs.
    let scales = calibrate(&weights, &text, "a", |_, _| ()).unwrap();
    let model = IntModel::quantise(&weights, scales).unwrap();
    let mut reports = 0;
    for line in lines(&fixtures().join("sst2-demo.golden.jsonl")) {
        let outcome = run(&model, &golden_input(&text, &line, 128), None);
        for seen in &outcome.out_of_range {
            assert!(seen.worst > seen.limit && seen.count > 0, "{seen:?}");
        }
        reports += outcome.out_of_range.len();
    }
    assert!(reports > 0, "the test needs a value that leaves its range");
}

#[test]
fn prepared_models_come_back_the_same() {
    check_prepared(FloatWeights::clone);
}

#[test]
fn damaged_files_are_refused() {
    let dir = random_model("random-encoder");
    let bytes = prepare(dir.path(), FloatWeights::clone).2.to_bytes();
    let refused = |bytes: &[u8]| IntModel::from_bytes(bytes).err().expect("it is damaged");
    assert!(matches!(
        refused(&bytes[..bytes.len() - 1]),
        PreparedError::Length { .. }
    ));
    assert!(matches!(refused(b"something else"), PreparedError::Magic));
    let mut other = bytes.clone();
    other[8] = 99;
    assert!(matches!(refused(&other), PreparedError::Version(99)));
    let mut flipped = bytes.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    assert!(matches!(refused(&flipped), PreparedError::Checksum));
}

#[test]
fn plans_agree_on_both_sides_or_are_refused() {
    let dir = random_model("random-qa");
    let (_, _, model) = prepare(dir.path(), FloatWeights::clone);
    let plan = model.plan(30).unwrap();
    let bytes = plan.encode();
    let back = Plan::decode(&bytes).unwrap();
    assert_eq!(back, plan);
    assert_eq!(back.fingerprint(), plan.fingerprint());
    assert_ne!(model.plan(31).unwrap().fingerprint(), plan.fingerprint());
    assert!(model.plan(97).is_err());
    assert!(Plan::decode(&bytes[..bytes.len() - 1]).is_err());
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Plan::decode(&longer).is_err());

    // Any change of any byte is refused or gives another plan, and never more than that.
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3000));
    let changes = proptest::collection::vec((0..bytes.len(), any::<u8>()), 1..4);
    runner
        .run(&changes, |changes| {
            let mut changed = bytes.clone();
            for (at, byte) in changes {
                changed[at] = byte;
            }
            if let Ok(other) = Plan::decode(&changed) {
                let same = other == plan;
                prop_assert_eq!(other.fingerprint() == plan.fingerprint(), same);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_demo_model_on_all_of_sst2_where_it_is() {
    let dir = repository("models/sst2-demo");
    for seed in [None, Some(7)] {
        check_sst2(&dir, FloatWeights::clone, seed);
    }
}

#[test]
#[ignore = "several minutes; run with: cargo test --release -p primer-model -- --ignored"]
fn minilm_on_all_of_sst2() {
    if let Some(dir) = shared("models/minilm-sst2") {
        check_sst2(&dir, FloatWeights::clone, Some(7));
    }
}
