//! A peer that refuses, is of another version, disappears, stalls or sends something else: an error
//! that says so, in time, and never a panic.
#![allow(missing_docs)]

mod common;

use common::relay::{self, Fault, From};
use common::{blind, client, hinted, offer, server, tiny, words};
use primer_engine::server::ServerModel;
use primer_engine::session::direct;
use primer_engine::{ProtocolError, Reveal};
use primer_model::quantise::IntModel;
use primer_ring::prg::Prg;
use primer_wire::kind::protocol::{HELLO, WELCOME};
use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, NetError, Options};
use std::time::{Duration, Instant};

fn prg(seed: u8) -> Prg {
    Prg::new(&[seed; 16])
}

fn pair<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    run_parties(Channel::memory_pair(&test_options()), left, right)
}

fn open(channel: &mut Channel, model: &IntModel, tokens: usize) -> Result<(), ProtocolError> {
    common::open(channel, model, tokens, prg(1)).map(|_| ())
}

/// Plays a server that hears what is asked for and answers as it likes.
fn welcome(channel: &mut Channel, value: &impl serde::Serialize) {
    channel.recv(HELLO, 64).unwrap();
    channel.send_value(WELCOME, value).unwrap();
}

#[test]
fn a_length_that_the_model_does_not_take_ends_the_session() {
    let model = tiny();
    for tokens in [321, 0] {
        let (client, server) = pair(
            |channel| open(channel, &model, tokens),
            |channel| server(channel, &model, Reveal::Outputs),
        );
        let error = server.unwrap_err().to_string();
        let expected = format!("{tokens} tokens, but the model takes 1 to 320");
        assert_eq!(error, expected);
        let error = client.unwrap_err().to_string();
        assert!(error.contains("disappeared"), "{error}");
    }
}

#[test]
fn a_plan_that_was_not_asked_for_is_refused() {
    let model = tiny();
    let root = hinted(&model).hint.identity().root;
    let answer = |plan: Vec<u8>| {
        let (client, ()) = pair(
            |channel| open(channel, &model, 4),
            move |channel| {
                let (fingerprint, nonce) = ([0u8; 32], [0u8; 32]);
                let said = (plan, Reveal::Outputs, fingerprint, root, nonce);
                welcome(channel, &said);
            },
        );
        client.unwrap_err()
    };
    let plan = model.plan(5).unwrap().encode();
    let error = answer(plan.clone());
    assert!(matches!(error, ProtocolError::OtherPlan { .. }), "{error}");
    assert!(error.to_string().contains("5 tokens"), "{error}");
    // The right plan, but not the program that the server says it is.
    let error = answer(model.plan(4).unwrap().encode());
    assert!(matches!(error, ProtocolError::OtherPlan { .. }), "{error}");
    assert!(
        error.to_string().contains("program 000000000000"),
        "{error}"
    );
    for cut in [0, 1, plan.len() / 2, plan.len() - 1] {
        let error = answer(plan[..cut].to_vec());
        assert!(matches!(error, ProtocolError::Plan(_)), "{error}");
    }
}

#[test]
fn a_model_of_another_plan_is_refused() {
    let model = tiny();
    let other = common::small(2, (16, 2), common::classify());
    let (_, server) = pair(
        |channel| open(channel, &model, 4),
        |channel| {
            let program = offer(&model, Reveal::Outputs);
            let session = direct::accept(channel, program, prg(2))?;
            ServerModel::new(other, session.program(), None).map(|_| ())
        },
    );
    let error = server.unwrap_err();
    assert!(
        matches!(error, ProtocolError::OtherBundle { what: "model" }),
        "{error}"
    );
}

#[test]
fn an_input_that_does_not_fit_is_refused_before_anything_is_sent() {
    let model = tiny();
    let mut wrong = words(4, 4, 0);
    wrong.ids[2] = 12;
    let (client, server) = pair(
        |channel| client(channel, &model, &wrong, blind),
        |channel| server(channel, &model, Reveal::Outputs),
    );
    assert!(matches!(
        client.err(),
        Some(ProtocolError::Input { found: 12, .. })
    ));
    let error = server.unwrap_err().to_string();
    assert!(error.contains("disappeared"), "{error}");
}

/// Does every kind of damage in both directions: among the keys, in the middle and at the last
/// message.
#[test]
fn damage_anywhere_is_an_error() {
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
    for (from, log) in [From::Client, From::Server].into_iter().zip(&clean) {
        let last = log.len() - 1;
        for (i, at) in [last / 4, last / 2, last].into_iter().enumerate() {
            let fault = [Fault::Cut, Fault::Kind, Fault::Length][i % 3];
            let started = Instant::now();
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
                Fault::Length => assert!(!text.is_empty()),
                Fault::Stall => unreachable!("has a test of its own"),
            }
            assert!(started.elapsed() < Duration::from_secs(19), "{at}: {text}");
        }
    }
}

#[test]
fn a_silent_peer_is_given_up_after_the_time_out() {
    let timeout = Some(Duration::from_millis(300));
    let options = Options {
        timeout,
        ..test_options()
    };
    let model = tiny();
    // Made here: it takes longer than the time-out.
    hinted(&model);
    let (client, ()) = run_parties(
        Channel::memory_pair(&options),
        |channel| open(channel, &model, 4),
        |channel| {
            // Hears what is asked for and says nothing.
            channel.recv(HELLO, 64).unwrap();
            std::thread::sleep(Duration::from_secs(1));
        },
    );
    let error = client.unwrap_err();
    assert!(
        matches!(error, ProtocolError::Net(NetError::Timeout { .. })),
        "{error}"
    );
}

/// Plays a peer that falls silent in the middle of either phase, its connection open.
#[test]
fn a_peer_that_stalls_is_given_up_in_either_phase() {
    let model = tiny();
    let input = words(2, 2, 0);
    let patience = Duration::from_secs(6);
    let run = |patience, fault| {
        relay::run_with(
            patience,
            fault,
            |channel| client(channel, &model, &input, blind).err(),
            |channel| server(channel, &model, Reveal::Outputs).err(),
        )
    };
    // On a busy machine too, this one runs to its end.
    let (_, _, clean) = run(20 * patience, None);
    // The server's frames: the first third is offline, the end is online.
    let frames = clean[1].len();
    for at in [frames / 3, frames - 3] {
        let started = Instant::now();
        let (client, server, _) = run(patience, Some((From::Server, at, Fault::Stall)));
        for end in [client, server] {
            let text = end.expect("both notice").to_string();
            let told = text.contains("no progress") || text.contains("disappeared");
            assert!(told, "{at}: {text}");
        }
        assert!(started.elapsed() < 4 * patience);
    }
}

/// Checks that after a failure the server's half is not used again either.
#[test]
fn a_failed_session_is_not_used_again_by_the_server() {
    let model = tiny();
    let (_, errors) = pair(
        // Gone after the handshake.
        |channel| open(channel, &model, 2),
        |channel| {
            let program = offer(&model, Reveal::Outputs);
            let mut session = direct::accept(channel, program, prg(2)).unwrap();
            let encoded = common::served(&model, session.program()).unwrap();
            let mut fail = || session.prepare(channel, &encoded, &mut std::io::sink());
            [fail().unwrap_err(), fail().unwrap_err()]
        },
    );
    let [first, second] = errors;
    assert!(first.to_string().contains("disappeared"), "{first}");
    assert!(matches!(second, ProtocolError::Spoiled), "{second}");
}

/// Checks that after a failure the client's keys are not used again.
#[test]
fn a_failed_session_is_not_used_again() {
    let model = tiny();
    let (client, _) = pair(
        |channel| {
            let mut session = common::open(channel, &model, 2, prg(1)).unwrap();
            let first = session.prepare(channel, &mut std::io::sink()).unwrap_err();
            let second = session.prepare(channel, &mut std::io::sink()).unwrap_err();
            (first.to_string(), second)
        },
        |channel| {
            let program = offer(&model, Reveal::Outputs);
            // Gone after the handshake.
            direct::accept(channel, program, prg(2)).map(|_| ())
        },
    );
    let (first, second) = client;
    assert!(first.contains("disappeared"), "{first}");
    assert!(matches!(second, ProtocolError::Spoiled), "{second}");
}
