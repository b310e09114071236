//! Range flags through a whole inference: the client is told when an activation came near the end
//! of its range, wherever that was.
#![allow(missing_docs)]

mod common;

use common::relay::{self, Fault, From};
use common::{blind, check, classify, client, infer_revealing, server, small_with, tiny, words};
use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_plan::function::{Class, Function};
use primer_plan::graph::{Graph, Op, StopFunction, ValueId};
use primer_plan::scales::{Scale, Scales};
use primer_wire::kind::flags::{LABELS, SEED};
use std::sync::Arc;

/// Finds the activation of a layer: what goes in, and its classes.
fn activation<'a>(
    graph: &Graph,
    scales: &'a mut Scales,
    layer: usize,
) -> (ValueId, &'a mut [Class]) {
    let mut steps = graph.steps.iter().enumerate();
    let (index, input) = steps
        .find_map(|(index, step)| match step.op {
            Op::Stop {
                function: StopFunction::Activation,
                input,
                ..
            } if step.layer == Some(layer) => Some((index, input)),
            _ => None,
        })
        .expect("a layer has an activation");
    match &mut scales.functions[index] {
        Some(Function::Sorted(sorted)) => (input, &mut sorted.classes),
        other => panic!("an activation is looked up, not {other:?}"),
    }
}

/// Makes two layers. What enters the activation of one has six fractional bits more than it should,
/// and so a small part of its range.
fn narrowed(layer: usize) -> Arc<IntModel> {
    small_with(2, (16, 2), classify(), |graph, scales| {
        let (input, classes) = activation(graph, scales, layer);
        for class in classes {
            class.lookup.fraction += 6;
        }
        match &mut scales.values[input.index()] {
            Scale::Accumulator { fraction, .. }
            | Scale::Small { fraction, .. }
            | Scale::Fixed { fraction, .. } => *fraction += 6,
        }
    })
}

#[test]
fn values_in_their_ranges_are_told() {
    let run = check(&tiny(), &words(5, 3, 0));
    assert_eq!(run.answer.in_range, Some(true));
}

/// Checks it in any layer, and for all that is revealed.
#[test]
fn a_value_beyond_its_range_is_told() {
    let input = words(4, 4, 1);
    let run = |model, reveal| infer_revealing(&model, &input, reveal).answer;
    let outside = run(narrowed(0), Reveal::Outputs);
    assert_eq!(outside.in_range, Some(false));
    let outside = run(narrowed(1), Reveal::Label);
    assert_eq!(outside.in_range, Some(false));
    let fine = run(tiny(), Reveal::Label);
    assert!(fine.in_range == Some(true) && fine.labels.len() == 1);
}

/// Checks that the answer is what it would be, but something reached the outermost cells.
#[test]
fn a_value_near_the_end_is_told_before_it_wraps() {
    let input = words(4, 4, 1);
    let model = small_with(1, (16, 2), classify(), |graph, scales| {
        for class in activation(graph, scales, 0).1 {
            // All but the four cells around zero.
            class.lookup.edge = [(1 << (class.lookup.index_bits - 1)) - 2; 2];
        }
    });
    let run = check(&model, &input);
    assert_eq!(run.answer.in_range, Some(false));
}

#[test]
fn a_damaged_question_or_answer_about_flags_is_an_error() {
    let model = tiny();
    let input = words(2, 2, 0);
    let run = |fault| {
        relay::run(
            fault,
            |channel| client(channel, &model, &input, blind).err(),
            |channel| server(channel, &model, Reveal::Outputs).err(),
        )
    };
    let (_, _, clean) = run(None);
    for (from, log, kind, length) in [
        (From::Client, &clean[0], SEED, 21),
        (From::Server, &clean[1], LABELS, 1280),
    ] {
        let of_kind = |at: &usize| log[*at].0 == kind.code();
        let places: Vec<usize> = (0..log.len()).filter(of_kind).collect();
        let [at] = places[..] else {
            panic!("{} messages of {kind}", places.len());
        };
        assert_eq!(log[at].1, length);
        for (fault, said) in [
            (Fault::Cut, "disappeared"),
            (Fault::Kind, "of kind 255"),
            (Fault::Length, "range flag"),
        ] {
            let (client, server, _) = run(Some((from, at, fault)));
            let error = match from {
                From::Client => server,
                From::Server => client,
            };
            let text = error.expect("the receiver notices").to_string();
            assert!(text.contains(said), "{fault:?}: {text}");
        }
    }
}
