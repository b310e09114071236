//! A peer that disappears or sends something else, or material that is damaged: the result is a
//! clear error or a wrong answer, and never a panic.
#![allow(missing_docs)]

mod common;

use common::{ask, input, model, serve, tiny};
use primer_model::synthetic::bert_shape;
use primer_paper_gc::{GcError, client, server};
use primer_paper_plan::Form;
use primer_plan::plan::Plan;
use primer_plan::shape::Shape;
use primer_ring::prg::Prg;
use primer_testkit::relay::{self, Fault, From};
use primer_wire::Channel;
use primer_wire::kind::gc::PLAN;
use primer_wire::pair::{run_parties, test_options};
use std::io::Cursor;
use std::sync::Arc;

#[test]
fn every_damaged_frame_is_noticed() {
    let model = model(&tiny());
    let input = input(1, 1, 12);
    let run = |fault| {
        relay::run(
            fault,
            |channel| ask(channel, &input).err(),
            |channel| serve(channel, &model, 1).err(),
        )
    };
    let (client, server, clean) = run(None);
    assert!(client.is_none() && server.is_none());
    let kinds = [Fault::Cut, Fault::Kind, Fault::Length];
    let mut faults = Vec::new();
    for at in 0..clean[0].len() {
        faults.push((From::Client, at, kinds[at % 3]));
    }
    // Of the server's many frames, the first, the last and some in between. A byte behind the very
    // last belongs to no message.
    let frames = clean[1].len();
    for (i, at) in [0, 1, 2, frames / 2, frames - 2, frames - 1]
        .into_iter()
        .enumerate()
    {
        faults.push((From::Server, at, kinds[(i + 2) % 3]));
    }
    for (from, at, fault) in faults {
        let (client, server, _) = run(Some((from, at, fault)));
        let error = match from {
            From::Client => server,
            From::Server => client,
        };
        let Some(error) = error else {
            panic!("{from:?} {at} {fault:?}: the receiver noticed nothing");
        };
        let text = error.to_string();
        match fault {
            Fault::Cut => assert!(text.contains("disappeared"), "{at}: {text}"),
            Fault::Kind => assert!(text.contains("of kind 255"), "{at}: {text}"),
            // The plan's length is not known beforehand, but with one more byte it is not a plan.
            _ => assert!(text.contains("announced") || at == 0, "{at}: {text}"),
        }
    }
}

/// Prepares for real and infers with the bundle changed.
fn with_bundle(change: impl FnOnce(&mut Vec<u8>) + Send) -> Result<Vec<i64>, GcError> {
    let model = model(&tiny());
    let (client, _) = run_parties(
        Channel::memory_pair(&test_options()),
        |channel| {
            let mut session = client::Session::open(channel, Prg::new(&[1; 16]))?;
            let mut bundle = Vec::new();
            session.prepare(channel, &mut bundle)?;
            change(&mut bundle);
            let bundle = client::Bundle::new(Cursor::new(bundle));
            let answer = session.infer(channel, bundle, &input(2, 2, 12))?;
            Ok(answer.integers[0].data().to_vec())
        },
        |channel| serve(channel, &model, 2),
    );
    client
}

#[test]
fn damaged_material_is_an_error_or_gives_something_else() {
    let right = with_bundle(|_| ()).unwrap();
    for keep in [0, 100, 1_000_000] {
        let short = with_bundle(|bundle| bundle.truncate(keep));
        let text = short.unwrap_err().to_string();
        assert!(text.contains("garbled material"), "{keep}: {text}");
    }
    // A wrong nonce, and all tables after it are noise.
    let wrong = with_bundle(|bundle| bundle[2 + 12 * 16] ^= 1).unwrap();
    assert_ne!(right, wrong);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let model = model(&tiny());
    for (wrong, message) in [
        (input(3, 3, 12), "the input has 3 tokens, the plan 2"),
        (input(2, 2, 1000), "token"),
    ] {
        let (client, _) = run_parties(
            Channel::memory_pair(&test_options()),
            |channel| ask(channel, &wrong).err(),
            |channel| serve(channel, &model, 2).err(),
        );
        let text = client.unwrap().to_string();
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn plans_that_are_none_or_too_large_are_refused() {
    let open = |channel: &mut Channel| {
        let session = client::Session::open(channel, Prg::new(&[1; 16]));
        session.map(|_| ()).unwrap_err()
    };
    let (error, ()) = run_parties(Channel::memory_pair(&test_options()), open, |channel| {
        channel.send(PLAN, b"not a plan").unwrap();
    });
    assert!(matches!(error, GcError::Plan(_)), "{error}");
    // Scales of a small model serve a shape that is too large to run, since they do not depend on
    // sizes.
    let small = model(&tiny());
    let large = Shape {
        head: tiny().head,
        ..bert_shape(1, 768, 12)
    };
    let plan = Plan::by(&Form::Separate, &large, 30, small.scales().clone()).unwrap();
    let (error, ()) = run_parties(Channel::memory_pair(&test_options()), open, |channel| {
        channel.send(PLAN, &plan.encode()).unwrap();
    });
    assert!(matches!(error, GcError::TooLarge { .. }), "{error}");
    let (_, error) = run_parties(
        Channel::memory_pair(&test_options()),
        |_| (),
        |channel| {
            let rng = Prg::new(&[2; 16]);
            let session = server::Session::accept(channel, Arc::clone(&small), 17, rng);
            session.map(|_| ()).unwrap_err()
        },
    );
    assert!(matches!(error, GcError::Plan(_)), "{error}");
}
