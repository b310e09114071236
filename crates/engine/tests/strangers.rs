//! Clients that do not follow the protocol, against the server's own code.
//!
//! The attack: in one transfer the client uses another choice in one block of the server's offset Δ
//! than in all others. The server's row then differs from the client's by the bits of Δ in that
//! block. If these are what the client guesses (here: zeros, so that its row needs no change), all
//! goes on as if nothing had happened; if not, the answer is garbage. When all bundles of a session
//! had one Δ, a few hundred answers gave all of it, and with it everything that the server masks.
//!
//! The client here is an honest one whose message is changed behind it, so its proof is for the
//! message that it meant. One that proves what it sent passes if its guess is right and not
//! otherwise: unit tests of `primer_ot`, `check` and `tags`.
#![allow(missing_docs)]

mod common;

use common::frames::{Frame, meet};
use common::{blind, client, offer, open, served, tiny, words};
use primer_engine::means::TRANSFERS;
use primer_engine::session::ServerSession;
use primer_engine::{ProtocolError, Reveal, server};
use primer_model::quantise::IntModel;
use primer_ot::OtError;
use primer_ring::prg::Prg;
use primer_stops::StopsError;
use primer_wire::Channel;
use primer_wire::kind::transfer::EXTENSION;
use std::collections::HashMap;
use std::io::{self, Cursor};
use std::sync::Arc;

/// Bytes of an extension in front of the choices.
const POSITION: usize = 8;
/// Bytes of a checked extension behind the choices.
const PROOF: usize = 48;
/// Bytes of choices of each block that mask a check.
const MASKING: usize = 16;

/// Where a client deviates: in which of its extensions, in which block of Δ.
#[derive(Clone, Copy)]
struct Deviation {
    extension: usize,
    block: usize,
}

impl Deviation {
    /// Changes the first choice of one block.
    fn apply(&self, place: usize, frame: &mut Frame) {
        if frame.kind != EXTENSION.code() || place != self.extension {
            return;
        }
        let blocks = 128 / TRANSFERS.to_client.bits();
        let each = (frame.payload.len() - POSITION - PROOF) / blocks - MASKING;
        assert!(each > 0 && each < 2048, "one block of transfers");
        frame.payload[POSITION + self.block * (each + MASKING)] ^= 1;
    }
}

/// What came of a session: the client's logits, and what the server says.
struct Outcome {
    logits: Option<Vec<f64>>,
    server: Result<(), ProtocolError>,
}

/// Runs a server with this seed, until its last message.
fn serve(channel: &mut Channel, model: &Arc<IntModel>, seed: u8) -> Result<(), ProtocolError> {
    let rng = Prg::new(&[seed; 16]);
    let mut session = ServerSession::accept(channel, offer(model, Reveal::Outputs), rng)?;
    let served = served(model, session.program())?;
    let mut kept = Vec::new();
    session.prepare(channel, &served, &mut kept)?;
    let bundle = server::Bundle::new(Cursor::new(kept));
    server::infer(channel, &served, bundle)?;
    Ok(())
}

/// Runs a client that may deviate and a server with this seed.
fn session(model: &Arc<IntModel>, seed: u8, at: Option<Deviation>) -> Outcome {
    let input = words(2, 2, 0);
    let met = meet(
        move |place, frame| {
            if let Some(at) = at {
                at.apply(place, frame);
            }
        },
        |channel| client(channel, model, &input, blind),
        |channel| serve(channel, model, seed),
    );
    let logits = met.client.ok();
    Outcome {
        logits: logits.map(|answer| answer.reals[0].data().to_vec()),
        server: met.server,
    }
}

/// Finds the offset that a party keeps of a bundle: it lies in the material of everything that the
/// party garbles, and it is the one thing of 16 bytes that lies in several places.
fn offset(kept: &[u8]) -> u128 {
    let mut seen = HashMap::new();
    for bytes in kept.windows(16) {
        let label = u128::from_le_bytes(bytes.try_into().unwrap());
        *seen.entry(label).or_insert(0) += 1;
    }
    let often = |label: &u128| label.count_ones() > 32 && label & 1 == 1;
    let found = seen.iter().filter(|(label, _)| often(label));
    let (label, times) = found.max_by_key(|(_, times)| **times).unwrap();
    assert!(*times > 1, "the offset of some garbled stops");
    *label
}

/// Counts the extensions that a client sends.
fn extensions(model: &Arc<IntModel>) -> usize {
    let (logs, ..) = common::logged(model, &words(2, 2, 0));
    let kinds = logs[0].iter().filter(|(kind, _)| *kind == EXTENSION.code());
    kinds.count()
}

/// The client has no offset in a bundle that opens anything of another one, of the same batch or of
/// another batch of the session.
#[test]
fn offsets_are_a_bundles_own() {
    let model = tiny();
    let twice = |prepare: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>)| {
        let mut kept = [const { Vec::new() }; 4];
        for pair in kept.chunks_exact_mut(2) {
            let [one, other] = pair else { unreachable!() };
            prepare(one, other);
        }
        kept
    };
    let met = meet(
        |_, _| (),
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let mut session = open(channel, &model, 2, rng).unwrap();
            twice(&mut |one, other| {
                session
                    .prepare_together(channel, &mut [one, other])
                    .unwrap();
            })
        },
        |channel| {
            let rng = Prg::new(&[2; 16]);
            let offer = offer(&model, Reveal::Outputs);
            let mut session = ServerSession::accept(channel, offer, rng).unwrap();
            let served = served(&model, session.program()).unwrap();
            twice(&mut |one, other| {
                let sinks = &mut [one as &mut (dyn io::Write + Send), other];
                session.prepare_together(channel, &served, sinks).unwrap();
            })
        },
    );
    // The client's is found by what it garbles; the server garbles one circuit, so its own lies in
    // one place and cannot be told from other material.
    let kept = met.client;
    for (i, bundle) in kept.iter().enumerate() {
        let label = offset(bundle).to_le_bytes();
        for (j, other) in kept.iter().enumerate() {
            let there = other.windows(16).any(|bytes| bytes == label);
            assert_eq!(there, i == j, "the offset of bundle {i} in {j}");
        }
    }
    assert!(met.server.iter().all(|kept| !kept.is_empty()));
}

/// The session ends while the bundle is prepared, for any Δ, and no answer tells anything: the
/// choices of a new offset, labels of a circuit and pads of a look-up alike. The power of this
/// test: the same attack in `primer_paper`, whose transfers are not checked.
#[test]
fn a_checked_client_learns_nothing() {
    let model = tiny();
    let honest = session(&model, 1, None);
    honest.server.unwrap();
    assert!(honest.logits.is_some());
    let last = extensions(&model) - 1;
    for (seed, extension) in (0..=16).map(|seed| (seed, usize::from(seed) * last / 16)) {
        let at = Deviation {
            extension,
            block: usize::from(seed) % 32,
        };
        let outcome = session(&model, seed, Some(at));
        assert!(outcome.logits.is_none(), "seed {seed}: there was an answer");
        let error = outcome.server.unwrap_err();
        let caught = match extension {
            0 => matches!(error, ProtocolError::Ot(OtError::Inconsistent)),
            _ => matches!(
                error,
                ProtocolError::Stops(StopsError::Ot(OtError::Inconsistent))
            ),
        };
        assert!(caught, "seed {seed}: {error}");
        assert!(error.is_cheating(), "it is counted as what it is");
    }
}
