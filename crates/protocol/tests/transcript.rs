//! What an observer of the messages, and the server, can tell two texts of one length apart by: nothing.
#![allow(missing_docs)]

mod common;

use common::relay::{self, Log};
use common::{classify, client, infer, server, small, tiny, words};
use primer_model::text::Input;
use primer_plan::graph::{Op, Step};
use primer_protocol::{Program, Scheme, cost};

fn logs(input: &Input, scheme: Scheme) -> [Log; 2] {
    let model = tiny();
    let (answer, served, logs) = relay::run(
        None,
        |channel| client(channel, input, scheme, &mut |_, _| ()),
        |channel| server(channel, &model),
    );
    answer.unwrap();
    served.unwrap();
    logs
}

#[test]
fn two_texts_of_one_bucket_send_the_same_messages() {
    for scheme in Scheme::ALL {
        // A short pair and a full one, padded to the same length.
        let (first, second) = (words(2, 1, 0), words(2, 2, 3));
        assert!(first.ids != second.ids && first.types != second.types);
        let logs = [logs(&first, scheme), logs(&second, scheme)];
        assert!(
            logs[0].iter().all(|log| log.len() > 20),
            "nothing was logged"
        );
        assert_eq!(logs[0], logs[1], "{}", scheme.name());
    }
    // The log does tell what is not hidden: the length.
    assert_ne!(
        logs(&words(2, 2, 0), Scheme::Fp),
        logs(&words(3, 2, 0), Scheme::Fp)
    );
}

#[test]
fn two_texts_of_one_bucket_have_the_same_traffic_in_every_phase() {
    let model = tiny();
    let first = infer(&model, &words(6, 3, 0), Scheme::Fp);
    let second = infer(&model, &words(6, 6, 5), Scheme::Fp);
    assert_eq!(first.client, second.client);
    assert_eq!(first.server, second.server);
    assert_ne!(
        first.answer.integers[0].data(),
        second.answer.integers[0].data()
    );
}

#[test]
fn the_bytes_are_those_that_the_program_foretells() {
    let model = tiny();
    let input = words(3, 2, 0);
    for scheme in Scheme::ALL {
        let program = Program::new(model.plan(3).unwrap(), scheme).unwrap();
        let cost = cost::inference(&program).unwrap();
        let report = infer(&model, &input, scheme).client;
        let (offline, online) = (report.under("offline"), report.under("online"));
        let found = [
            offline.bytes_sent,
            offline.bytes_received,
            online.bytes_sent,
            online.bytes_received,
        ];
        let foretold = [
            cost.offline_up,
            cost.offline_down,
            cost.online_up,
            cost.online_down,
        ];
        assert_eq!(found, foretold, "{}", scheme.name());
    }
}

/// The online round trips of a layer, as the difference that one more layer makes: one for each product
/// of secrets and each stop, none for linear steps.
#[test]
fn a_layer_takes_at_most_twenty_round_trips() {
    let run = |layers| {
        let model = small(layers, 16, 2, classify());
        let run = infer(&model, &words(2, 2, 0), Scheme::Fp);
        (model, run.client.under("online").rounds)
    };
    let ((model, one), (_, two)) = (run(1), run(2));
    let plan = model.plan(2).unwrap();
    let interactive = |step: &&Step| {
        step.layer == Some(0) && !matches!(step.op, Op::Embed { .. } | Op::Linear { .. })
    };
    let steps = plan.graph().steps.iter().filter(interactive).count();
    assert_eq!(two - one, ROUNDS_PER_LAYER);
    assert_eq!(steps as u64, ROUNDS_PER_LAYER);
}

/// Stated in docs/protocol/session.md; the design allows 20.
const ROUNDS_PER_LAYER: u64 = 18;
