//! The fixed-point reference against the float reference.
#![allow(missing_docs)]

mod common;

use common::{
    RANDOM_MODELS, fixtures, golden_input, lines, numbers, random_model, repository, shared,
    weights_of,
};
use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Errors, Outcome, Truncate, Workspace};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::prepared::PreparedError;
use primer_model::quantise::IntModel;
use primer_plan::graph::Form;
use primer_plan::plan::Plan;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_text::{Input, TextEncoder};
use proptest::prelude::*;
use std::path::Path;

fn calibration() -> String {
    std::fs::read_to_string(repository("models/calibration.txt")).unwrap()
}

fn prepare(dir: &Path) -> (FloatWeights, TextEncoder, IntModel) {
    prepare_with(dir, Form::Separate)
}

fn prepare_with(dir: &Path, form: Form) -> (FloatWeights, TextEncoder, IntModel) {
    let (weights, text) = weights_of(dir);
    let weights = weights.with_form(form);
    let scales = calibrate(&weights, &text, &calibration(), |_, _| ()).unwrap();
    let model = IntModel::quantise(&weights, scales).unwrap();
    (weights, text, model)
}

fn run(model: &IntModel, input: &Input, seed: Option<u8>) -> Outcome {
    let plan = model.plan(input.tokens()).unwrap();
    let mut workspace = Workspace::default();
    match seed {
        None => {
            let mut truncate = Truncate::Exact;
            fixed::run(
                &plan,
                model,
                input,
                &mut truncate,
                &mut Errors::None,
                &mut workspace,
            )
        }
        Some(seed) => {
            let mut rng = Prg::new(&[seed; 16]);
            let mut shares = |_, _| modulus::random(&mut rng);
            fixed::run(
                &plan,
                model,
                input,
                &mut Truncate::Shares(&mut shares),
                &mut Errors::None,
                &mut workspace,
            )
        }
    }
}

fn float(weights: &FloatWeights, input: &Input) -> Vec<Vec<f64>> {
    let graph = weights.graph(input.tokens());
    let outputs = float::run(&graph, weights, input, &mut NoObserver);
    outputs
        .iter()
        .map(|m| m.data().iter().map(|v| f64::from(*v)).collect())
        .collect()
}

/// Returns the largest difference over the rows that are not padding.
fn difference(weights: &FloatWeights, input: &Input, outcome: &Outcome) -> f64 {
    let float = float(weights, input);
    let mut worst: f64 = 0.0;
    for (ours, float) in outcome.reals.iter().zip(&float) {
        let rows = ours.rows().min(input.length);
        let count = rows * ours.cols();
        for (a, b) in ours.data()[..count].iter().zip(float) {
            worst = worst.max((a - b).abs());
        }
    }
    worst
}

#[test]
fn close_to_float_on_every_kind_of_model() {
    let models = RANDOM_MODELS.into_iter();
    for (name, form) in models.flat_map(|m| Form::ALL.map(|a| (m, a))) {
        let dir = random_model(name);
        let (weights, text, model) = prepare_with(dir.path(), form);
        for line in lines(&fixtures().join(name).join("golden.jsonl")) {
            for padded in [0, 5] {
                let mut input = golden_input(&text, &line, 96);
                input.pad_to(input.tokens() + padded, text.padding());
                for seed in [None, Some(1)] {
                    let outcome = run(&model, &input, seed);
                    let worst = difference(&weights, &input, &outcome);
                    // Looked-up functions have coarser indices.
                    let bound = if form == Form::LookedUp { 0.12 } else { 0.05 };
                    assert!(worst < bound, "{name}, {form:?}, {}: {worst}", line["text"]);
                    assert_eq!(outcome.out_of_range, []);
                }
            }
        }
    }
}

#[test]
fn one_token_alone() {
    let (weights, text, model) = prepare(&repository("models/sst2-demo"));
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
    for form in Form::ALL {
        keeps_its_labels(form);
    }
}

fn keeps_its_labels(form: Form) {
    let (weights, text, model) = prepare_with(&repository("models/sst2-demo"), form);
    let mut clear = 0;
    for line in lines(&fixtures().join("sst2-demo.golden.jsonl")) {
        let mut input = golden_input(&text, &line, 128);
        input.pad_to(64, text.padding());
        for seed in [None, Some(9)] {
            let outcome = run(&model, &input, seed);
            assert_eq!(outcome.out_of_range, []);
            let worst = difference(&weights, &input, &outcome);
            assert!(worst < 0.1, "{}: {worst}", line["text"]);
            let (ours, golden) = (outcome.reals[0].row(0), numbers(&line["logits"]));
            if (golden[1] - golden[0]).abs() > 0.5 {
                assert_eq!(ours[1] > ours[0], golden[1] > golden[0], "{}", line["text"]);
                clear += 1;
            }
        }
    }
    assert!(clear >= 40, "{clear} clear cases");
}

#[test]
fn padding_is_invisible_to_the_result() {
    for form in Form::ALL {
        let (_, text, model) = prepare_with(&repository("models/sst2-demo"), form);
        let line = &lines(&fixtures().join("sst2-demo.golden.jsonl"))[0];
        let mut input = golden_input(&text, line, 128);
        let bare = run(&model, &input, None).integers;
        input.pad_to(40, text.padding());
        assert_eq!(run(&model, &input, None).integers[0].data(), bare[0].data());
    }
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
    for form in Form::ALL {
        comes_back_the_same(form);
    }
}

fn comes_back_the_same(form: Form) {
    let dir = random_model("random-encoder");
    let (_, text, model) = prepare_with(dir.path(), form);
    let path = dir.path().join("prepared");
    model.save(&path).unwrap();
    let back = IntModel::open(&path).unwrap();
    assert_eq!(back.scales(), model.scales());
    assert!(back.weights() == model.weights());
    let line = &lines(&fixtures().join("random-encoder/golden.jsonl"))[0];
    let input = golden_input(&text, line, 96);
    assert_eq!(
        run(&back, &input, None).integers[0].data(),
        run(&model, &input, None).integers[0].data()
    );

    let bytes = std::fs::read(&path).unwrap();
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
fn scales_of_another_form_are_refused() {
    let dir = random_model("random-qa");
    let (weights, text) = weights_of(dir.path());
    let scales = calibrate(&weights, &text, "a good film", |_, _| ()).unwrap();
    let merged = weights.with_form(Form::Merged);
    let error = IntModel::quantise(&merged, scales)
        .err()
        .expect("a mismatch");
    assert_eq!(
        error.to_string(),
        "the scales are for the separate form, the model has the merged form"
    );
}

#[test]
fn plans_agree_on_both_sides_or_are_refused() {
    let dir = random_model("random-qa");
    let (_, _, model) = prepare(dir.path());
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

/// Compares labels with those of float on a whole data set. Returns the parts of labels that agree
/// and are right.
fn whole_data_set(dir: &Path, form: Form, seed: Option<u8>) -> Option<(f64, f64, f64)> {
    let data = shared("data/sst2/dev.tsv")?;
    // Float is always that of the model as it came.
    let (weights, _) = weights_of(dir);
    let (_, text, model) = prepare_with(dir, form);
    let data = std::fs::read_to_string(data).unwrap();
    let (mut n, mut agree, mut right, mut float_right) = (0.0, 0.0, 0.0, 0.0);
    for line in data.lines().skip(1) {
        let (sentence, label) = line.split_once('\t').unwrap();
        let limit = weights.shape.max_tokens().min(text.max_tokens());
        let truncate = primer_text::Truncate::LongestFirst;
        let input = text.encode_padded(sentence, None, limit, truncate).unwrap();
        let outcome = run(&model, &input, seed);
        assert_eq!(outcome.out_of_range, [], "{sentence}");
        let logits = outcome.reals[0].row(0);
        let float = &float(&weights, &input)[0];
        let (ours, theirs) = (logits[1] > logits[0], float[1] > float[0]);
        let gold = label.trim() == "1";
        n += 1.0;
        agree += f64::from(u8::from(ours == theirs));
        right += f64::from(u8::from(ours == gold));
        float_right += f64::from(u8::from(theirs == gold));
    }
    Some((agree / n, right / n, float_right / n))
}

/// One run that rounds to nearest, and one with truncated shares for every form.
const RUNS: [(Form, Option<u8>); 4] = [
    (Form::Separate, None),
    (Form::Separate, Some(5)),
    (Form::Merged, Some(6)),
    (Form::LookedUp, Some(7)),
];

#[test]
fn the_demo_model_on_all_of_sst2_where_it_is() {
    for (form, seed) in RUNS {
        let dir = repository("models/sst2-demo");
        let Some((agree, right, float)) = whole_data_set(&dir, form, seed) else {
            return;
        };
        eprintln!(
            "{form:?}, seed {seed:?}: agreement {agree:.4}, accuracy {right:.4}, \
             float {float:.4}"
        );
        assert!(agree >= 0.99 && right >= float - 0.005);
    }
}

#[test]
#[ignore = "several minutes; run with: cargo test --release -p primer-model -- --ignored"]
fn minilm_on_all_of_sst2() {
    let Some(dir) = shared("models/minilm-sst2") else {
        return;
    };
    for (form, seed) in RUNS {
        let Some((agree, right, float)) = whole_data_set(&dir, form, seed) else {
            return;
        };
        eprintln!(
            "{form:?}, seed {seed:?}: agreement {agree:.4}, accuracy {right:.4}, \
             float {float:.4}"
        );
        assert!(agree >= 0.99 && right >= float - 0.005);
    }
}
