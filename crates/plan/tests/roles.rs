//! Values and weights say what they are, for every head and form.

mod common;

use common::{Seen, shape};
use primer_plan::graph::{Form, Graph, Op, StopFunction};
use primer_plan::role::{LinearMap, ValueRole};
use primer_plan::shape::{Head, Shape};
use std::collections::HashSet;

fn shapes() -> Vec<Shape> {
    let heads = [
        shape().head,
        Head::Span,
        Head::Encoder { pooled: false },
        Head::Encoder { pooled: true },
    ];
    let with = |head| Shape { head, ..shape() };
    heads.into_iter().map(with).collect()
}

fn graphs() -> impl Iterator<Item = Graph> {
    shapes().into_iter().flat_map(|shape| {
        let one = move |form| Graph::with_form(&shape, form, 8);
        Form::ALL.map(one)
    })
}

#[test]
fn roles_fit_the_operations() {
    for graph in graphs() {
        let role = |id| graph.value(id).role;
        for step in &graph.steps {
            let made = role(step.output());
            match &step.op {
                Op::Embed { .. } => assert_eq!(made, ValueRole::Centred),
                Op::Linear { terms, .. } => {
                    // Two terms are a residual connection, and a LayerNorm follows.
                    assert_eq!(terms.len() == 2, made == ValueRole::Centred);
                    let wanted = match graph.weight(terms[0].weight).map {
                        LinearMap::Query => ValueRole::Query,
                        LinearMap::Key => ValueRole::Key,
                        LinearMap::Value => ValueRole::Value,
                        LinearMap::AttentionOutput | LinearMap::Output => ValueRole::Centred,
                        LinearMap::Intermediate => ValueRole::Intermediate,
                        LinearMap::LastHidden => ValueRole::LastHidden,
                        LinearMap::Pooler => ValueRole::Pooled,
                        LinearMap::Classifier | LinearMap::Span => ValueRole::Logits,
                        LinearMap::Embedding | LinearMap::Scores => panic!("no linear step"),
                    };
                    assert_eq!(made, wanted);
                }
                Op::Scores { query, key, .. } => {
                    let all = (role(*query), role(*key), made);
                    assert_eq!(all, (ValueRole::Query, ValueRole::Key, ValueRole::Scores));
                }
                Op::MergedScores { input, .. } => {
                    assert_eq!((role(*input), made), (ValueRole::Hidden, ValueRole::Scores));
                }
                Op::Mix {
                    probabilities,
                    value,
                    ..
                } => {
                    let all = (role(*probabilities), role(*value), made);
                    assert_eq!(
                        all,
                        (ValueRole::Probabilities, ValueRole::Value, ValueRole::Mixed)
                    );
                }
                Op::SquareSum { input, .. } => {
                    assert_eq!(
                        (role(*input), made),
                        (ValueRole::Centred, ValueRole::SquareSum)
                    );
                }
                Op::ScaleRows { input, factor, .. } => {
                    let wanted = match role(*factor) {
                        ValueRole::InverseRoot => (ValueRole::Centred, ValueRole::Hidden),
                        ValueRole::Reciprocal => (ValueRole::Powers, ValueRole::Probabilities),
                        other => panic!("a factor that is {other:?}"),
                    };
                    assert_eq!((role(*input), made), wanted);
                }
                Op::Rest {
                    scores, reference, ..
                } => {
                    let all = (role(*scores), role(*reference), made);
                    let wanted = (
                        ValueRole::Scores,
                        ValueRole::Reference,
                        ValueRole::Exponents,
                    );
                    assert_eq!(all, wanted);
                }
                Op::RowSum { input, .. } => {
                    assert_eq!((role(*input), made), (ValueRole::Powers, ValueRole::Total));
                }
                Op::Again { input, .. } => {
                    let wanted = (ValueRole::Intermediate, ValueRole::Gate);
                    assert_eq!((role(*input), made), wanted);
                }
                Op::Multiply { left, right, .. } => {
                    let all = (role(*left), role(*right), made);
                    let wide = ValueRole::Intermediate;
                    assert_eq!(all, (wide, ValueRole::Gate, wide));
                }
                Op::Stop {
                    function, input, ..
                } => match function {
                    StopFunction::Requantise => assert_eq!(role(*input), made),
                    StopFunction::Softmax => {
                        assert_eq!(
                            (role(*input), made),
                            (ValueRole::Scores, ValueRole::Probabilities)
                        );
                    }
                    StopFunction::Activation => {
                        assert_eq!(
                            (role(*input), made),
                            (ValueRole::Intermediate, ValueRole::Intermediate)
                        );
                    }
                    StopFunction::InverseRoot => {
                        assert_eq!(
                            (role(*input), made),
                            (ValueRole::SquareSum, ValueRole::InverseRoot)
                        );
                    }
                    StopFunction::Tanh => {
                        assert_eq!((role(*input), made), (ValueRole::Pooled, ValueRole::Pooled));
                    }
                    StopFunction::CoarseMaximum => {
                        let wanted = (ValueRole::Scores, ValueRole::Reference);
                        assert_eq!((role(*input), made), wanted);
                    }
                    StopFunction::Power => {
                        let wanted = (ValueRole::Exponents, ValueRole::Powers);
                        assert_eq!((role(*input), made), wanted);
                    }
                    StopFunction::Reciprocal => {
                        let wanted = (ValueRole::Total, ValueRole::Reciprocal);
                        assert_eq!((role(*input), made), wanted);
                    }
                    StopFunction::Gate => {
                        assert_eq!((role(*input), made), (ValueRole::Gate, ValueRole::Gate));
                    }
                },
            }
        }
    }
}

#[test]
fn no_two_weights_have_the_same_key_or_name() {
    for graph in graphs() {
        let keys: HashSet<_> = graph.weights.iter().map(|w| w.key()).collect();
        let names: HashSet<_> = graph.weights.iter().map(|w| &w.name).collect();
        assert_eq!(keys.len(), graph.weights.len());
        assert_eq!(names.len(), graph.weights.len());
    }
}

#[test]
fn edges_lead_back_and_forth() {
    for graph in graphs() {
        for step in &graph.steps {
            assert_eq!(graph.maker(step.output()), step);
            for input in step.inputs() {
                assert!(graph.readers(input).any(|reader| reader == step));
            }
            if let Op::Stop { input, output, .. } = step.op {
                assert_eq!(graph.accumulator_of(output), input);
            }
        }
    }
}

/// Both parties compare fingerprints, and prepared bundles lie in stores: a plan that was made from
/// the same ranges must keep its bytes.
#[test]
fn plans_keep_their_fingerprints() {
    let found: Vec<String> = shapes()
        .iter()
        .flat_map(|shape| Form::ALL.map(|a| Seen::with_form(shape, a).plan()))
        .map(|plan| blake3::Hash::from_bytes(plan.fingerprint()).to_hex()[..16].to_owned())
        .collect();
    assert_eq!(found, FINGERPRINTS);
}

const FINGERPRINTS: [&str; 12] = [
    "4c76518bfbc7b130",
    "76603116bcc4132e",
    "b4320b730674bf9c",
    "9da7dfa9132f45b6",
    "a9fff9273dd074fd",
    "a9af4c0a3db8a2a7",
    "3f9a92623d2b43be",
    "3203b30ddbb71879",
    "e8521e02b0660556",
    "dc1e95e6c8cd14ff",
    "b20cc03d14f85f1f",
    "6e5d5eed8d3afaed",
];
