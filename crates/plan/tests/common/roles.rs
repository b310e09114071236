//! What holds for the values and weights of every graph.

use primer_plan::graph::{Graph, Op, StopFunction};
use primer_plan::role::{LinearMap, ValueRole};
use primer_plan::shape::{Family, Head, Pooling, Problem, Shape, Summary};
use std::collections::HashSet;

/// Lists one for each head, and for each family that differs.
pub fn shapes() -> Vec<Shape> {
    let heads = [
        super::shape().head,
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
    let with = |head| Shape {
        head,
        ..super::shape()
    };
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

/// Checks that roles fit the operations.
pub fn check_roles(graph: &Graph) {
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
            Op::Exponents {
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

/// Checks that no two weights have the same key or name.
pub fn check_keys(graph: &Graph) {
    let keys: HashSet<_> = graph.weights.iter().map(|w| w.key()).collect();
    let names: HashSet<_> = graph.weights.iter().map(|w| &w.name).collect();
    assert_eq!(keys.len(), graph.weights.len());
    assert_eq!(names.len(), graph.weights.len());
}

/// Checks that edges lead back and forth.
pub fn check_edges(graph: &Graph) {
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

/// Checks that every value is made once and before it is read.
pub fn check_order(graph: &Graph) {
    let mut made = vec![false; graph.values.len()];
    for step in &graph.steps {
        assert!(step.inputs().iter().all(|v| made[v.index()]));
        assert!(!std::mem::replace(&mut made[step.output().index()], true));
    }
    assert!(made.iter().all(|m| *m));
    assert!(graph.last_uses().iter().all(|&last| last > 0));
}
