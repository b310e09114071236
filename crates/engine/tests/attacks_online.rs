//! Clients that ask and do not follow the protocol: all that the server says to them, up to the
//! output, is coins of its own.
//!
//! The attacker is a client that follows the protocol but for one message online, of each kind that
//! there is, which has an error in it. Its own coins are the same in every run. What it knows of a
//! value that the server masks is then the same too (but for what truncation drops), so if a mask
//! were missing, or used twice, the server's message would be the same at the same place. With
//! fresh masks two messages agree in one byte of 256. The test counts where they agree, by kind of
//! message, for servers of different weights: all of their messages have the one distribution that
//! does not depend on anything.
#![allow(missing_docs)]

mod common;

use common::attack::{BATCH, client_prepares, server_prepares, twins, two_batches};
use common::frames::{Frame, Frames, honest, meet};
use common::{bound, served, words};
use primer_engine::{Program, Reveal, client, server};
use primer_model::quantise::IntModel;
use primer_plan::graph::{Op, ValueId};
use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use primer_ring::pack::unpack;
use primer_wire::kind::garbled::LABELS;
use primer_wire::kind::protocol::{MASK_SECRET, OPENED, OUTPUT};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Cursor;
use std::sync::Arc;

const TOKENS: usize = 2;
/// More than the attacks that there are.
const BUNDLES: usize = 20;
/// Deviations from what is expected that no test of this file reaches by chance.
const MOST: f64 = 7.0;

/// Both halves of some bundles, the client's always made with the same seed.
struct Prepared {
    reveal: Reveal,
    program: Program,
    ours: Vec<Vec<u8>>,
    theirs: Vec<Vec<u8>>,
}

fn prepared(model: &Arc<IntModel>, server: (Reveal, u8)) -> Prepared {
    prepared_by(model, server, honest)
}

/// Prepares the same, with what the client sends meanwhile changed.
fn prepared_by(
    model: &Arc<IntModel>,
    server: (Reveal, u8),
    edit: impl FnMut(usize, &mut Frame) + Send + 'static,
) -> Prepared {
    let met = meet(
        edit,
        |channel| client_prepares(channel, model, TOKENS, 1, BUNDLES).unwrap(),
        |channel| server_prepares(channel, model, server, BUNDLES).unwrap(),
    );
    let (program, ours) = met.client;
    let theirs = met.server;
    Prepared {
        reveal: server.0,
        program,
        ours,
        theirs,
    }
}

/// What the server said to a client that spent a bundle, and the answer.
struct Spent {
    said: Frames,
    sent: Frames,
    logits: Vec<f64>,
    /// What each value was opened with, in the order of the messages that opened them.
    masks: Vec<Vec<u64>>,
}

/// Spends a bundle with an error in the first message of a kind.
fn spend(model: &Arc<IntModel>, prepared: &Prepared, bundle: usize, kind: Option<u8>) -> Spent {
    let edit = move |place: usize, frame: &mut Frame| {
        if place == 0 && Some(frame.kind) == kind {
            // Bits that every byte has, but for the last one, which may not be full.
            match &mut frame.payload[..] {
                [one] => *one ^= 1,
                [most @ .., _] => most.iter_mut().for_each(|byte| *byte ^= 0b1_0101),
                [] => {}
            }
        }
    };
    let bound = bound(model, TOKENS, prepared.reveal);
    let served = served(model, &bound).unwrap();
    let graph = bound.plan().graph();
    let (mut made, mut opened) = (HashSet::new(), Vec::new());
    // Results of linear steps are shown when they are made, and again if they are opened.
    let mut see = |id: ValueId, share: &Matrix<u64>| {
        let linear = matches!(graph.maker(id).op, Op::Embed { .. } | Op::Linear { .. });
        if !linear || !made.insert(id) {
            opened.push(share.data().to_vec());
        }
    };
    let met = meet(
        edit,
        |channel| {
            let half = client::Bundle::new(Cursor::new(prepared.ours[bundle].clone()));
            client::infer(channel, &prepared.program, half, &words(TOKENS, 2, 0))
        },
        |channel| {
            let half = server::Bundle::new(Cursor::new(prepared.theirs[bundle].clone()));
            server::infer_watched(channel, &served, half, &mut see)
        },
    );
    met.server.expect("the server notices nothing");
    let answer = met.client.unwrap();
    Spent {
        masks: masks(&met.down, &opened),
        said: met.down,
        sent: met.up,
        logits: answer
            .reals
            .first()
            .map_or_else(Vec::new, |reals| reals.data().to_vec()),
    }
}

/// Takes the server's shares of the values that it opened off the messages.
fn masks(said: &Frames, opened: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let messages = said.iter().filter(|frame| frame.kind == OPENED.code());
    let messages: Vec<&Frame> = messages.collect();
    assert_eq!(messages.len(), opened.len());
    let one = |(frame, shares): (&&Frame, &Vec<u64>)| {
        let mut differences = vec![0; shares.len()];
        unpack(&frame.payload, K, P, &mut differences).unwrap();
        let pairs = shares.iter().zip(differences);
        pairs.map(|(share, d)| modulus::sub(*share, d)).collect()
    };
    messages.iter().zip(opened).map(one).collect()
}

/// Measures how far the number of bytes that agree is from what is expected of uniform ones, in
/// standard deviations, for each kind of message. The output is left out, as is the last byte of a
/// message, which may not be full.
fn agreement(runs: &[Frames]) -> BTreeMap<u8, f64> {
    let mut counts = BTreeMap::<u8, (u64, u64)>::new();
    for (i, one) in runs.iter().enumerate() {
        for other in &runs[..i] {
            assert_eq!(one.len(), other.len());
            for (a, b) in one.iter().zip(other) {
                assert_eq!((a.kind, a.payload.len()), (b.kind, b.payload.len()));
                let whole = a.payload.len() - 1;
                let pairs = a.payload[..whole].iter().zip(&b.payload[..whole]);
                let (all, same) = counts.entry(a.kind).or_default();
                *all += whole as u64;
                *same += pairs.filter(|(a, b)| a == b).count() as u64;
            }
        }
    }
    counts.remove(&OUTPUT.code());
    let deviations = counts.into_iter().map(|(kind, (all, same))| {
        let expected = all as f64 / 256.0;
        (
            kind,
            (same as f64 - expected).abs() / expected.max(1.0).sqrt(),
        )
    });
    deviations.collect()
}

fn assert_uniform(runs: &[Frames], what: &str) {
    for (kind, deviations) in agreement(runs) {
        assert!(
            deviations < MOST,
            "{what}: kind {kind} is {deviations:.1} off"
        );
    }
}

/// Lists the kinds of messages of a client that has a bundle.
fn kinds(sent: &Frames) -> BTreeSet<u8> {
    sent.iter().map(|frame| frame.kind).collect()
}

#[test]
fn an_error_in_any_message_shows_nothing_before_the_output() {
    let mut changed = Vec::new();
    for (model, name) in twins().iter().zip(["one", "other"]) {
        let server = |seed| prepared(model, (Reveal::Outputs, seed));
        let all: Vec<Prepared> = (2..7).map(server).collect();
        changed.extend(errors_show_nothing(model, &all, name));
    }
    // They were attacks: most moved the answer.
    let moved = changed.iter().filter(|moved| **moved).count();
    assert!(2 * moved > changed.len(), "{changed:?}");
}

/// Checks answers that reveal only a label: the server garbles circuits that find it and sends
/// their labels.
#[test]
fn an_error_in_any_message_shows_nothing_but_a_label() {
    let [model, _] = twins();
    let server = |seed| prepared(&model, (Reveal::Label, seed));
    let all: Vec<Prepared> = (2..5).map(server).collect();
    let said = spend(&model, &all[0], BUNDLES - 1, None).said;
    assert!(said.iter().any(|frame| frame.kind == LABELS.code()));
    assert!(said.iter().all(|frame| frame.kind != OUTPUT.code()));
    errors_show_nothing(&model, &all, "a label");
}

/// Asks servers of different seeds with an error in each kind of message. Returns which of them
/// moved the answer.
fn errors_show_nothing(model: &Arc<IntModel>, all: &[Prepared], name: &str) -> Vec<bool> {
    let honest: Vec<Spent> = all.iter().map(|p| spend(model, p, 0, None)).collect();
    let kinds = kinds(&honest[0].sent);
    assert!((8..BUNDLES).contains(&kinds.len()), "{kinds:?}");
    let said = |runs: Vec<Spent>| runs.into_iter().map(|run| run.said).collect::<Vec<_>>();
    assert_uniform(&said(honest), name);
    let errors = kinds.iter().enumerate().map(|(bundle, kind)| {
        let runs = all.iter().map(|p| spend(model, p, bundle + 1, Some(*kind)));
        let runs: Vec<Spent> = runs.collect();
        // From the same halves comes the same answer, to the last bit, unless it was moved.
        let unmoved = spend(model, &all[0], bundle + 1, None).logits;
        let moved = runs[0].logits != unmoved;
        assert_uniform(&said(runs), &format!("{name}, an error in kind {kind}"));
        moved
    });
    errors.collect()
}

/// Uses bundles whose masks are not what they should be: the server's shares of linear steps are
/// then no shares of anything, and what is made of them is masked as ever.
#[test]
fn messages_about_masks_show_nothing_online() {
    for model in &twins() {
        for zero in [true, false] {
            let runs = (2..6).map(|seed| {
                let mut first = Vec::new();
                let edit = move |place: usize, frame: &mut Frame| {
                    if frame.kind != MASK_SECRET.code() {
                        return;
                    }
                    match (zero, place) {
                        (true, _) => frame.payload.fill(0),
                        (false, 0) => first.clone_from(&frame.payload),
                        (false, _) => frame.payload.clone_from(&first),
                    }
                };
                let prepared = prepared_by(model, (Reveal::Outputs, seed), edit);
                spend(model, &prepared, 0, None).said
            });
            assert_uniform(&runs.collect::<Vec<_>>(), "b");
        }
    }
}

/// Spends two batches of one session, for which the client draws the same coins, and asks the same.
fn spend_batches(model: &Arc<IntModel>, reveal: Reveal) -> Vec<Spent> {
    let batches = two_batches(model, TOKENS, reveal, true);
    let prepared = Prepared {
        reveal,
        program: batches.program,
        ours: batches.ours,
        theirs: batches.theirs,
    };
    let each = 0..prepared.ours.len();
    each.map(|bundle| spend(model, &prepared, bundle, None))
        .collect()
}

/// Checks that what the server says over one bundle is as far from what it says over another, of
/// the same batch or of another one of the session, as from what another server says.
#[test]
fn bundles_of_a_session_have_nothing_in_common() {
    for model in &twins() {
        for reveal in [Reveal::Outputs, Reveal::Label] {
            let runs = spend_batches(model, reveal).into_iter().map(|run| run.said);
            assert_uniform(&runs.collect::<Vec<_>>(), &format!("{reveal:?}"));
        }
    }
}

/// Checks that no residue of what the server opens with occurs twice, in any place of any value of
/// any of four bundles: neither are masks of two values, rows or bundles the same, nor parts of
/// them. Of a thousand residues below 2^41 two are the same by chance once in four million
/// sessions. (The client's own masks differ in a batch, whatever coins it has, so this is more than
/// messages can tell.)
#[test]
fn no_mask_opens_twice() {
    let [model, _] = twins();
    let runs = spend_batches(&model, Reveal::Outputs);
    assert_eq!(runs.len(), 2 * BATCH);
    let masks: Vec<u64> = runs
        .into_iter()
        .flat_map(|run| run.masks)
        .flatten()
        .collect();
    let distinct: HashSet<u64> = masks.iter().copied().collect();
    assert_eq!(distinct.len(), masks.len());
}

/// Shows the power of this test: a server whose coins are the same in two runs, which is to say
/// whose masks are used twice, is found by every kind of message.
#[test]
fn masks_that_are_used_twice_are_noticed() {
    let [model, _] = twins();
    for reveal in [Reveal::Outputs, Reveal::Label] {
        let one = prepared(&model, (reveal, 2));
        let runs: Vec<Frames> = (0..3).map(|_| spend(&model, &one, 0, None).said).collect();
        let found = agreement(&runs);
        assert!(found.len() > 5, "{found:?}");
        assert!(found.values().all(|off| *off > MOST), "{found:?}");
    }
}
