//! Values and weights say what they are, for every head and form.

mod common;

use common::{Seen, shape};
use primer_plan::graph::{Form, Graph, Op, StopFunction};
use primer_plan::role::{LinearMap, ValueRole};
use primer_plan::shape::{Family, Head, Pooling, Problem, Shape, Summary};
use std::collections::HashSet;

fn shapes() -> Vec<Shape> {
    let heads = [
        shape().head,
        Head::Span,
        Head::Encoder { pooled: false },
        Head::Encoder { pooled: true },
    ];
    let sentence = |pooling| Head::Sentence {
        pooling,
        normalised: true,
    };
    let labels = || vec!["no".into(), "yes".into()];
    let more = [
        Head::Tokens { labels: labels() },
        sentence(Pooling::Mean),
        sentence(Pooling::First),
    ];
    let with = |head| Shape { head, ..shape() };
    let mut shapes: Vec<Shape> = heads.into_iter().chain(more).map(with).collect();
    let head = |summary| Head::Classify {
        labels: labels(),
        summary,
        problem: Problem::SingleLabel,
    };
    shapes.push(Shape {
        family: Family::DistilBert,
        types: 0,
        ..with(head(Summary::Relu))
    });
    shapes.push(Shape {
        family: Family::Electra,
        embedding: 32,
        ..with(head(Summary::Gelu))
    });
    shapes
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
                        LinearMap::Projection => ValueRole::Projected,
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
                    let first = step.layer == Some(0) && graph.shape.is_projected();
                    let read = match first {
                        true => ValueRole::Projected,
                        false => ValueRole::Hidden,
                    };
                    assert_eq!((role(*input), made), (read, ValueRole::Scores));
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
                Op::Kept { .. } => assert_eq!(made, ValueRole::Kept),
                Op::Pool { input, kept, .. } => {
                    let all = (role(*input), role(*kept), made);
                    let wanted = (ValueRole::LastHidden, ValueRole::Kept, ValueRole::Sentence);
                    assert_eq!(all, wanted);
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
                    StopFunction::Tanh | StopFunction::Summary => {
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

/// Checks that a plan that is made from the same ranges keeps its bytes: both parties compare
/// fingerprints, and prepared bundles are kept in stores.
#[test]
fn plans_keep_their_fingerprints() {
    let found: Vec<String> = shapes()
        .iter()
        .flat_map(|shape| Form::ALL.map(|a| Seen::with_form(shape, a).plan()))
        .map(|plan| blake3::Hash::from_bytes(plan.fingerprint()).to_hex()[..16].to_owned())
        .collect();
    assert_eq!(found, FINGERPRINTS);
}

const FINGERPRINTS: [&str; 27] = [
    "a5102f39d57af447",
    "5b40338cbb370352",
    "6c5b6ca3aa99c865",
    "4309e273a663ae98",
    "fb2a4f8f30a3588a",
    "ea408122d3815688",
    "f0c9454fa1f34471",
    "6947b67ae30149d3",
    "9ad661ed9995cce6",
    "cfce588220299a0f",
    "287ac33879e486f9",
    "dcfe943524cdead6",
    "bf6e0e3c5239c7de",
    "d2d43138a03aaf51",
    "20f404ac80515193",
    "59f29ae30f5919ac",
    "135045b2dfb1b383",
    "978ee807ff42b200",
    "3140377e4cbd1cce",
    "1db87ad21f27a674",
    "f27b7ad622472d7a",
    "73ec41d114a4197d",
    "c92de086db787a8c",
    "57a898874b33385c",
    "013628db3e1c4ab2",
    "83b34c2af420715e",
    "746e26c366b1ddfe",
];

/// Checks that where rows are embedded with signs, positions are rows of the table, and that the
/// signs are removed in the embedding's LayerNorm; in other forms there are none.
#[test]
fn signs_of_embedded_rows_come_off_in_the_first_norm() {
    let shape = shape();
    for form in Form::ALL {
        let graph = Graph::with_form(&shape, form, 4);
        let Op::Embed {
            table, positions, ..
        } = graph.steps[0].op
        else {
            unreachable!("the first step embeds");
        };
        assert_eq!(graph.weight(table).rows, graph.one_hot());
        let Some(signed) = graph.signed() else {
            assert_ne!(form, Form::LookedUp);
            assert!(positions.is_some());
            assert_eq!(graph.one_hot(), shape.one_hot());
            continue;
        };
        assert_eq!(form, Form::LookedUp);
        assert!(positions.is_none());
        assert_eq!(graph.one_hot(), shape.one_hot() + shape.positions);
        assert_eq!(graph.value(signed.output).name, "embeddings_norm.scaled");
        assert_eq!(graph.value(signed.factor).name, "embeddings_norm.root");
    }
}
