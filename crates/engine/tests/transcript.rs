//! What an observer of the messages, and the server, can tell two texts of one length apart by:
//! nothing.
#![allow(missing_docs)]

mod common;

use common::relay::Log;
use common::{classify, infer, logged, program, small, tiny, words};
use primer_engine::{Reveal, cost};
use primer_plan::graph::{Op, Step};
use primer_text::Input;
use primer_wire::Report;

/// Returns everything about an inference that can be counted from outside, and its answer.
fn observe(input: &Input) -> ([Log; 2], [Report; 2], Vec<i64>) {
    let (logs, reports, answer) = logged(&tiny(), input);
    let integers = answer.integers[0].data().to_vec();
    (logs, reports, integers)
}

/// Compares kind and length of every message in its order on the wire, and the traffic of every
/// phase on both ends; and bytes and round trips are those that the program predicts.
#[test]
fn two_texts_of_one_bucket_send_the_same_messages() {
    // A short text and a full one, padded to the same length.
    let (first, second) = (words(2, 1, 0), words(2, 2, 3));
    assert!(first.ids != second.ids && first.types != second.types);
    let (logs, reports, answer) = observe(&first);
    assert!(logs.iter().all(|log| log.len() > 20), "nothing was logged");
    let (other_logs, other_reports, other_answer) = observe(&second);
    assert_eq!(logs, other_logs);
    assert_eq!(reports, other_reports);
    assert_ne!(answer, other_answer);
    predicted(&reports[0]);
    // The log does tell what is not hidden: the length.
    let lengths = [&first, &words(3, 2, 0)].map(|input| observe(input).0);
    assert_ne!(lengths[0], lengths[1]);
}

fn predicted(report: &Report) {
    let program = program(&tiny(), 2, Reveal::Outputs);
    let parts = cost::parts(&program).total();
    let cost = parts.bytes;
    let (offline, online) = (report.under("offline"), report.under("online"));
    assert_eq!(offline.bytes_sent, cost.offline_up);
    assert_eq!(offline.bytes_received, cost.offline_down);
    assert_eq!(online.bytes_sent, cost.online_up);
    assert_eq!(online.bytes_received, cost.online_down);
    assert_eq!(online.rounds, parts.rounds_online);
}

/// Counts the online round trips of a layer, as the difference that one more layer makes: one for
/// each product of secrets and each stop, none for linear and local steps, and one for all that
/// need nothing of each other. Stated in docs/protocol/session.md.
#[test]
fn the_round_trips_of_a_layer() {
    let run = |layers| {
        let model = small(layers, (16, 2), classify());
        let run = infer(&model, &words(2, 2, 0));
        (model, run.client.under("online").rounds)
    };
    let ((model, one), (_, two)) = (run(1), run(2));
    let plan = model.plan(2).unwrap();
    let silent = |op: &Op| {
        matches!(op, Op::Embed { .. } | Op::Linear { .. })
            || matches!(op, Op::Exponents { .. } | Op::RowSum { .. })
    };
    let interactive = |step: &&Step| step.layer == Some(0) && !silent(&step.op);
    let steps = plan.graph().steps.iter().filter(interactive).count();
    // Queries, keys, values, and the scores of those that are on their way; powers; reciprocals;
    // the activation; and six products with the stop that follows each: a requantisation, or the
    // root of a LayerNorm, in the trip of which its input is lifted.
    assert_eq!(two - one, 10);
    assert_eq!(steps, 22);
}
