//! A garbled model against the fixed-point reference, bit for bit; gates and bytes against the
//! count.
#![allow(missing_docs)]

mod common;

use common::{check, classifier, input, model, tiny};
use primer_model::synthetic::bert_shape;
use primer_paper_gc::{Count, GcError, SMALL_TOKENS, small_shape};
use primer_plan::function::Activation;
use primer_plan::graph::PaperStep;
use primer_plan::shape::{Head, Shape};

#[test]
fn a_padded_pair() {
    check(&model(&classifier()), &input(3, 2, 12));
}

#[test]
fn a_single_token() {
    // Probabilities are constant then: the zero wire stands for them.
    check(&model(&tiny()), &input(1, 1, 12));
}

#[test]
fn two_layers_with_rectifiers_and_tokens_of_a_single_type() {
    let shape = Shape {
        layers: 2,
        activation: Activation::Relu,
        types: 1,
        ..tiny()
    };
    check(&model(&shape), &input(2, 2, 12));
}

#[test]
fn the_bare_encoder() {
    let head = Head::Encoder { pooled: false };
    let run = check(&model(&Shape { head, ..tiny() }), &input(2, 1, 12));
    assert_eq!(run.answer.integers[0].cols(), 8);
}

#[test]
fn more_features_than_a_link_has_terms() {
    let shape = Shape {
        hidden: 20,
        embedding: 20,
        ffn: 24,
        ..tiny()
    };
    check(&model(&shape), &input(2, 2, 12));
}

#[test]
// cargo test --release -p primer-paper-gc -- --ignored
#[ignore = "twenty-five million gates and 800 MB of tables, in release"]
fn the_small_shape() {
    let run = check(&model(&small_shape()), &input(SMALL_TOKENS, 6, 12));
    let gates = run.count.total().and_gates;
    assert!((20_000_000..30_000_000).contains(&gates), "{gates}");
}

#[test]
fn gates_of_a_classifier_by_step() {
    let plan = model(&classifier()).plan(3).unwrap();
    let count = Count::of(&plan).unwrap();
    let by_step = PaperStep::ALL.map(|step| count.step(step).and_gates);
    assert_eq!(by_step.iter().sum::<u64>(), count.total().and_gates);
    // A regression guard: a change of these numbers is a change of the circuits.
    assert_eq!(by_step, [26_484, 133_218, 17_958, 3_624, 14_654, 262_103]);
}

#[test]
fn layers_add_up() {
    let of = |layers| {
        let shape = Shape { layers, ..tiny() };
        let plan = model(&shape).plan(2).unwrap();
        Count::of(&plan).unwrap()
    };
    let (one, two) = (of(1), of(2));
    for step in PaperStep::ALL {
        let [a, b] = [&one, &two].map(|c| c.in_layers(step).and_gates);
        // Every layer has scales of its own, so not twice to the gate.
        assert!(
            a == 0 || (1.9..2.1).contains(&(b as f64 / a as f64)),
            "{a} {b}"
        );
    }
    let [a, b] = [&one, &two].map(|c| c.outside_layers(PaperStep::Embed));
    assert_eq!(a, b);
}

#[test]
fn merged_attention_is_refused() {
    let shape = bert_shape(1, 16, 2);
    let plan = common::merged(&Shape { vocab: 12, ..shape });
    assert!(matches!(Count::of(&plan), Err(GcError::OtherGraph)));
}
