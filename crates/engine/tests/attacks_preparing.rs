//! Clients that prepare and do not follow the protocol: what the server says to them depends on
//! nothing but its coins.
//!
//! The attacker is a client whose messages are changed on their way. The same messages then go to
//! another server, with the same coins and other weights. If it says the same, byte for byte, then
//! what preparing shows is no function of the weights: neither of what was sent here nor, since the
//! attacker may be any program, of what it does next. The power of these tests: the same test of
//! `primer_paper` tells the answers of the paper's schemes apart.
#![allow(missing_docs)]

mod common;

use common::attack::{client_prepares, server_prepares, twins};
use common::bound;
use common::frames::{Frame, Frames, bytes, honest, meet, replay};
use primer_engine::{Program, ProtocolError, Reveal};
use primer_wire::Kind;
use primer_wire::kind::protocol::{ENCRYPTED, MASK_SECRET, WELCOME};
use primer_wire::kind::transfer::{EXTENSION, TREES};
use std::collections::BTreeMap;

const TOKENS: usize = 3;
const SEEDS: [u8; 2] = [1, 2];
const REVEALS: [Reveal; 2] = [Reveal::Outputs, Reveal::Label];
/// Of an encrypted mask: the bytes in front of a ciphertext's residues, and the bits of one.
const FIRST_RESIDUE: usize = 39 + 16;
const RESIDUE_BITS: usize = 30;

/// What two servers with different weights say to the same messages of a client.
struct Views {
    said: [Frames; 2],
    /// What they serve.
    programs: [Program; 2],
    /// What the client sent.
    sent: Frames,
    /// Whether the first got to the end, or its error.
    end: Result<(), ProtocolError>,
}

fn views(edit: impl FnMut(usize, &mut Frame) + Send + 'static) -> Views {
    views_of(Reveal::Outputs, edit)
}

fn views_of(reveal: Reveal, edit: impl FnMut(usize, &mut Frame) + Send + 'static) -> Views {
    let [one, other] = twins();
    let bundles = 2;
    let place = (reveal, SEEDS[1]);
    let serve = |channel: &mut _, model| server_prepares(channel, model, place, bundles);
    let met = meet(
        edit,
        |channel| client_prepares(channel, &one, TOKENS, SEEDS[0], bundles).err(),
        |channel| serve(channel, &one),
    );
    let (end, said) = replay(bytes(&met.up), |channel| serve(channel, &other));
    // They end at the same place, in the same way.
    let text = |end: &Result<_, ProtocolError>| end.as_ref().err().map(ToString::to_string);
    assert_eq!(text(&met.server), text(&end));
    Views {
        said: [met.down, said],
        programs: [&one, &other].map(|model| bound(model, TOKENS, reveal)),
        sent: met.up,
        end: met.server.map(|_| ()),
    }
}

/// Takes the root of a program's hint out of a welcome, and the hash that covers it. They are the
/// name of a message that is the same for all clients, and all that may differ here.
fn unnamed(welcome: &Frame, program: &Program) -> Frame {
    const HASH: usize = 32;
    let mut frame = welcome.clone();
    let nonce = frame.payload.len() - HASH;
    let root = nonce - HASH;
    let fingerprint = root - HASH;
    let hint = program.hint().unwrap();
    for (at, expected) in [(root, &hint.root), (fingerprint, program.fingerprint())] {
        let found = &mut frame.payload[at..at + HASH];
        assert_eq!(found, expected);
        found.fill(0);
    }
    frame
}

/// Asserts that both views are one, but for the name of the hint in the welcome.
fn assert_same(views: &Views, attack: &str) {
    let [one, other] = &views.said;
    let [ours, theirs] = &views.programs;
    assert_eq!(one.len(), other.len(), "{attack}");
    assert!(!one.is_empty());
    for (a, b) in one.iter().zip(other) {
        assert_eq!((a.kind, a.payload.len()), (b.kind, b.payload.len()));
        let welcome = a.kind == WELCOME.code();
        let same = a == b || welcome && unnamed(a, ours) == unnamed(b, theirs);
        assert!(same, "{attack}: a message of kind {} differs", a.kind);
    }
}

/// Changes all messages of a kind.
fn all(
    kind: Kind,
    mut change: impl FnMut(usize, &mut Vec<u8>) + Send + 'static,
) -> impl FnMut(usize, &mut Frame) + Send + 'static {
    move |place, frame| {
        if frame.kind == kind.code() {
            change(place, &mut frame.payload);
        }
    }
}

#[test]
fn an_honest_client_sees_no_weights() {
    for reveal in REVEALS {
        let views = views_of(reveal, honest);
        views.end.as_ref().unwrap();
        assert_same(&views, "none");
    }
}

/// Sends messages about masks: of the secret zero without errors, one for all values, and noise.
#[test]
fn messages_about_masks_are_not_answered() {
    let zero = views(all(MASK_SECRET, |_, b| b.fill(0)));
    zero.end.as_ref().unwrap();
    assert_same(&zero, "b = 0");
    let mut kept = Vec::new();
    let again = views(all(MASK_SECRET, move |place, b| match place {
        0 => kept.clone_from(b),
        _ => b.clone_from(&kept),
    }));
    again.end.as_ref().unwrap();
    assert_same(&again, "b replayed");
    let sparse = all(MASK_SECRET, |place, b| {
        b.fill(0);
        b[place % 7] = 1;
    });
    let sparse = views(sparse);
    sparse.end.as_ref().unwrap();
    assert_same(&sparse, "one coefficient");
    // No residue modulo q': it ends there.
    let beyond = views(all(MASK_SECRET, |_, b| b.fill(0xff)));
    assert!(matches!(beyond.end, Err(ProtocolError::Hint(_))));
    assert_same(&beyond, "b beyond the modulus");
}

/// Sends fractional plaintexts: what is encrypted is a mask and parts of a unit. In the paper's
/// schemes (`paper/schemes`) these come back times the weights, beside what masks the product.
/// Ciphertexts travel as residues of transforms: one that is changed, by one prime alone, adds a
/// polynomial that has fractions of a unit in every coefficient.
#[test]
fn fractional_plaintexts_come_back_as_nothing() {
    for places in [1, 3, 40] {
        let edit = all(ENCRYPTED, move |_, payload| {
            for i in 0..places {
                // The lowest bit of a residue of the first ciphertext.
                let bit = 8 * FIRST_RESIDUE + RESIDUE_BITS * (100 * i + 1);
                payload[bit / 8] ^= 1 << (bit % 8);
            }
        });
        let views = views(edit);
        views.end.as_ref().unwrap();
        assert_same(&views, "fractional");
    }
}

/// Puts an error into the first message of every kind that a client sends until it has its bundles,
/// or in the last, where the server then garbles a circuit that finds a label. Some end the
/// session, most are not noticed; none makes the server say anything about weights.
#[test]
fn errors_while_preparing_show_nothing() {
    for reveal in REVEALS {
        let sent = views_of(reveal, honest).sent;
        let mut kinds = BTreeMap::<u8, usize>::new();
        for frame in &sent {
            *kinds.entry(frame.kind).or_default() += 1;
        }
        assert!(kinds.len() > 12, "{kinds:?}");
        let mut unnoticed = 0;
        for (kind, count) in kinds {
            let at = match reveal {
                Reveal::Outputs => 0,
                Reveal::Label => count - 1,
            };
            let views = views_of(reveal, move |place, frame| {
                if (place, frame.kind) == (at, kind) {
                    let middle = frame.payload.len() / 2;
                    frame.payload[middle] ^= 1;
                }
            });
            assert_same(&views, &format!("an error in kind {kind}"));
            unnoticed += usize::from(views.end.is_ok());
        }
        // Messages about masks, ciphertexts, corrections, correlations and garbled circuits.
        assert!(unnoticed >= 7, "{unnoticed}");
    }
}

/// Checks that choices that are not one string, and trees that are not whole, end the session
/// there.
#[test]
fn choices_that_differ_end_the_session() {
    for kind in [EXTENSION, TREES] {
        let edit = all(kind, |place, payload| {
            if place == 0
                && let Some(last) = payload.last_mut()
            {
                *last ^= 1;
            }
        });
        let views = views(edit);
        assert!(views.end.as_ref().unwrap_err().is_cheating(), "{kind}");
        assert_same(&views, kind.name());
    }
}
