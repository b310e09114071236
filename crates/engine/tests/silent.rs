//! Silent linear steps: what the server hears and says, which hints go together, and that no secret
//! is used twice.
#![allow(missing_docs)]

mod common;

use common::attack::{client_prepares, server_prepares};
use common::frames::{Frame, Frames, meet};
use common::{bound, classify, hinted, offer, open, served, tiny, words};
use primer_engine::hints::Build;
use primer_engine::server::ServerModel;
use primer_engine::session::direct;
use primer_engine::{Program, ProtocolError, Reveal, client};
use primer_hint::error::HintError;
use primer_hint::server::HintSecret;
use primer_model::quantise::IntModel;
use primer_plan::graph::{Graph, Op};
use primer_plan::shape::{Head, Pooling};
use primer_ring::prg::Prg;
use primer_wire::kind::protocol::{INPUT_CORRECTION, MASK_SECRET};
use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, Kind};
use std::collections::HashSet;
use std::io::{self, Cursor};
use std::sync::{Arc, Mutex};

const TOKENS: usize = 3;

/// What came of a preparation over a link that changes what the client sends.
struct Prepared {
    end: Result<(), ProtocolError>,
    /// What the client said by messages of one kind, before they were changed.
    seen: Vec<Vec<u8>>,
    /// What the server said.
    said: Frames,
}

/// Prepares some bundles. The payloads of one kind are kept, and all their bytes become another if
/// there is one.
fn prepared(
    model: &Arc<IntModel>,
    (bundles, seed): (usize, u8),
    kind: Kind,
    byte: Option<u8>,
) -> Prepared {
    let kept: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let seen = Arc::clone(&kept);
    let edit = move |_: usize, frame: &mut Frame| {
        if frame.kind == kind.code() {
            seen.lock().unwrap().push(frame.payload.clone());
            if let Some(byte) = byte {
                frame.payload.fill(byte);
            }
        }
    };
    let met = meet(
        edit,
        |channel| client_prepares(channel, model, TOKENS, seed, bundles),
        |channel| server_prepares(channel, model, (Reveal::Outputs, 2), bundles),
    );
    let end = met.server.and(met.client).map(|_| ());
    let seen = std::mem::take(&mut *kept.lock().unwrap());
    let said = met.down;
    Prepared { end, seen, said }
}

/// Checks that offline the server says nothing that depends on what a client says about its masks:
/// an honest message, zeros, or anything else. There is nothing for an attack on the noise of
/// answers to work on. The power of this test: the same test of `primer_paper`.
#[test]
fn what_a_client_says_about_masks_is_not_answered() {
    let model = tiny();
    let said = |kind, byte, messages| {
        let prepared = prepared(&model, (1, 1), kind, byte);
        prepared.end.unwrap();
        assert_eq!(prepared.seen.len(), messages);
        prepared.said
    };
    // The input, four values of the layer, what the pooler and the head read.
    let honest = said(MASK_SECRET, None, 7);
    assert!(!honest.is_empty());
    for byte in [0, 1, 0x55] {
        assert!(said(MASK_SECRET, Some(byte), 7) == honest, "{byte}");
    }
    for byte in [0, 1] {
        assert!(said(INPUT_CORRECTION, Some(byte), 1) == honest, "{byte}");
    }
}

/// Checks that what corrects the masks of inputs is padded by them: it does not look the same
/// twice, neither for two bundles of a batch nor for two batches.
#[test]
fn corrections_of_inputs_are_padded() {
    let model = tiny();
    let prepared = |bundles, seed, byte| prepared(&model, (bundles, seed), INPUT_CORRECTION, byte);
    let seen = [1, 2].map(|seed| prepared(4, seed, None).seen).concat();
    assert_eq!(seen.len(), 8);
    for (i, a) in seen.iter().enumerate() {
        for b in &seen[..i] {
            let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!(same * 50 < a.len(), "{same} of {}", a.len());
        }
        // Half of all bits are set, within seven deviations.
        let set: u32 = a.iter().map(|byte| byte.count_ones()).sum();
        let (bits, set) = (8.0 * a.len() as f64, f64::from(set));
        assert!(
            (set - bits / 2.0).abs() < 3.5 * bits.sqrt(),
            "{set} of {bits}"
        );
    }
    let error = prepared(1, 1, Some(0xff)).end.unwrap_err();
    assert!(matches!(error, ProtocolError::Net(_)), "{error}");
}

/// Checks that every value, every 256 rows and every preparation has a secret of its own, and so a
/// message of its own, also after one that failed.
#[test]
fn no_secret_is_used_twice() {
    let model = tiny();
    let prepared = |bundles, seed, byte| prepared(&model, (bundles, seed), MASK_SECRET, byte);
    // 32 bundles of 3 tokens are one group, of which there is one message for each value.
    let many = prepared(32, 1, None);
    many.end.unwrap();
    assert_eq!(many.seen.len(), 7);
    // The same client again, after a preparation that failed in the middle: it begins with another
    // seed, since a session in which something failed is not used again.
    let cut = prepared(1, 2, Some(0xff));
    let error = cut.end.unwrap_err();
    let expected = matches!(error, ProtocolError::Hint(HintError::Bytes { .. }));
    assert!(expected, "{error}");
    let last = prepared(1, 3, None);
    last.end.unwrap();
    let seen = [many.seen, cut.seen, last.seen].concat();
    let distinct: HashSet<&[u8]> = seen.iter().map(Vec::as_slice).collect();
    assert!(seen.len() > 14);
    assert_eq!(distinct.len(), seen.len());
}

/// Prepares in one session after the other: fresh secrets each time.
#[test]
fn a_session_draws_fresh_secrets_for_each_preparation() {
    let model = tiny();
    let mut bundles = Vec::new();
    let (ours, ()) = run_parties(
        Channel::memory_pair(&test_options()),
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let mut session = open(channel, &model, TOKENS, rng).unwrap();
            for _ in 0..2 {
                let mut bundle = Vec::new();
                session.prepare(channel, &mut bundle).unwrap();
                bundles.push(bundle);
            }
            bundles
        },
        |channel| {
            let offer = offer(&model, Reveal::Outputs);
            let mut session = direct::accept(channel, offer, Prg::new(&[2; 16])).unwrap();
            let served = served(&model, session.program()).unwrap();
            for _ in 0..2 {
                session.prepare(channel, &served, &mut io::sink()).unwrap();
            }
        },
    );
    // Behind the header come the comparison of flags and masks of values.
    let (first, second) = (&ours[0][66..], &ours[1][66..]);
    let same = first.iter().zip(second).filter(|(a, b)| a == b).count();
    assert!(same * 50 < first.len(), "{same} of {}", first.len());
}

#[test]
fn messages_that_are_not_below_the_modulus_are_named() {
    let model = tiny();
    let prepared = prepared(&model, (1, 1), MASK_SECRET, Some(0xff));
    let error = prepared.end.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the message of a preparation"), "{text}");
}

fn pair<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    run_parties(Channel::memory_pair(&test_options()), left, right)
}

/// Checks that client, server, program and bundle all name one hint; another one is refused
/// wherever it meets them, before anything is said that depends on it.
#[test]
fn hints_of_other_models_and_secrets_are_refused() {
    let model = tiny();
    let secret = HintSecret::new([77; 32]);
    let build = Build::new(&model, &secret).unwrap();
    let (other, multipliers) = build.in_memory(|_, _| ()).unwrap();
    let ours = hinted(&model);
    assert_ne!(other.identity(), ours.hint.identity());
    assert_eq!(other.identity().bytes, ours.hint.identity().bytes);
    let program = bound(&model, TOKENS, Reveal::Outputs);
    let elsewhere = program.with_hint(other.identity()).unwrap();
    assert_ne!(elsewhere.fingerprint(), program.fingerprint());
    let refused = ServerModel::new(model.clone(), &program, Some(Arc::new(multipliers))).err();
    let expected = matches!(refused, Some(ProtocolError::OtherBundle { what: "hint" }));
    assert!(expected, "{refused:?}");
    let other = Arc::new(other);
    let (client, _) = pair(
        |channel| {
            let rng = Prg::new(&[1; 16]);
            direct::open(channel, TOKENS, other, rng).err()
        },
        |channel| {
            let offer = offer(&model, Reveal::Outputs);
            direct::accept(channel, offer, Prg::new(&[2; 16])).err()
        },
    );
    let found = client.unwrap().to_string();
    assert!(found.contains("the server's hint is"), "{found}");
    // A bundle that was made with one hint is of no use with another.
    let header = |program: &Program| {
        let version = primer_engine::VERSION.to_le_bytes();
        [&version[..], program.fingerprint(), &[0; 32]].concat()
    };
    let (client, ()) = pair(
        |channel| {
            let bundle = client::Bundle::new(Cursor::new(header(&elsewhere)));
            client::infer(channel, &program, bundle, &words(TOKENS, 2, 0)).err()
        },
        |_| (),
    );
    let expected = matches!(client, Some(ProtocolError::OtherBundle { what: "program" }));
    assert!(expected, "{client:?}");
}

/// Checks that a server without multipliers spends bundles, but does not prepare any.
#[test]
fn preparing_takes_multipliers() {
    let model = tiny();
    let (_, server) = pair(
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let session = open(channel, &model, TOKENS, rng);
            session.unwrap().prepare(channel, &mut io::sink()).err()
        },
        |channel| {
            let offer = offer(&model, Reveal::Outputs);
            let mut session = direct::accept(channel, offer, Prg::new(&[2; 16]))?;
            let served = ServerModel::new(model.clone(), session.program(), None)?;
            session.prepare(channel, &served, &mut io::sink())
        },
    );
    let error = server.unwrap_err();
    let expected = matches!(error, ProtocolError::HintMissing);
    assert!(expected, "{error}");
}

/// Checks that no raw sum leaves: it would show what its product errs by, and with it something of
/// the weights.
#[test]
fn outputs_leave_through_a_stop() {
    let model = tiny();
    let mean = Head::Sentence {
        pooling: Pooling::Mean,
        normalised: true,
    };
    let tokens = Head::Tokens {
        labels: vec!["O".into(), "B".into()],
    };
    let encoder = Head::Encoder { pooled: true };
    for head in [classify(), Head::Span, tokens, mean, encoder] {
        let mut shape = model.shape().clone();
        shape.head = head;
        let graph = Graph::new(&shape, TOKENS);
        for output in &graph.outputs {
            let maker = &graph.maker(*output).op;
            assert!(matches!(maker, Op::Stop { .. }), "{maker:?}");
        }
    }
}
