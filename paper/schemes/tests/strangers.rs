//! Clients that do not follow the protocol: transfers are not checked, and an answer tells a bit of
//! the server's offset Δ.
//!
//! The attack: in one transfer the client uses another choice in one block of Δ than in all others.
//! The server's row then differs from the client's by the bits of Δ in that block. If these are
//! what the client guesses (here: zeros, so that its row needs no change), all goes on as if
//! nothing had happened; if not, the answer is garbage. `primer_engine` checks transfers, and the
//! same attack ends there while the bundle is prepared. What holds here too is that no two bundles
//! share an offset.
#![allow(missing_docs)]

mod common;

use common::frames::{Frame, meet};
use common::{blind, client, offer, served, tiny_for, words};
use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_paper::scheme::TRANSFERS;
use primer_paper::session::{ClientSession, ServerSession};
use primer_paper::{ProtocolError, Scheme, server};
use primer_ring::prg::Prg;
use primer_wire::Channel;
use primer_wire::kind::transfer::EXTENSION;
use std::collections::HashMap;
use std::io::{self, Cursor};
use std::sync::Arc;

/// Bytes of an extension in front of the choices.
const POSITION: usize = 8;
const SCHEME: Scheme = Scheme::Fp;

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
        let each = (frame.payload.len() - POSITION) / blocks;
        assert!(each > 0 && each < 2048, "one block of transfers");
        frame.payload[POSITION + self.block * each] ^= 1;
    }
}

/// What came of a session: the client's logits, what the server says, and what it keeps.
struct Outcome {
    logits: Option<Vec<f64>>,
    server: Result<(), ProtocolError>,
    kept: Vec<u8>,
}

/// Runs a server with this seed, until its last message; its bundle is copied.
fn serve(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    seed: u8,
    kept: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let rng = Prg::new(&[seed; 16]);
    let mut session = ServerSession::accept(channel, offer(model, Reveal::Outputs), rng)?;
    let served = served(model, session.program())?;
    session.prepare(channel, &served, kept)?;
    let bundle = server::Bundle::new(Cursor::new(kept.clone()));
    server::infer(channel, &served, bundle)?;
    Ok(())
}

/// Runs a client that may deviate and a server with this seed.
fn session(model: &Arc<IntModel>, seed: u8, at: Option<Deviation>) -> Outcome {
    let input = words(2, 2, 0);
    let mut kept = Vec::new();
    let met = meet(
        move |place, frame| {
            if let Some(at) = at {
                at.apply(place, frame);
            }
        },
        |channel| client(channel, &input, SCHEME, blind),
        |channel| serve(channel, model, seed, &mut kept),
    );
    let logits = met.client.ok();
    Outcome {
        logits: logits.map(|answer| answer.reals[0].data().to_vec()),
        server: met.server,
        kept,
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
    let (logs, ..) = common::logged(model, &words(2, 2, 0), SCHEME);
    let kinds = logs[0].iter().filter(|(kind, _)| *kind == EXTENSION.code());
    kinds.count()
}

/// Checks that the last labels are those of the pooler.
#[test]
fn an_unchecked_client_learns_a_bit_of_the_offset() {
    let model = tiny_for(SCHEME);
    let at = Deviation {
        extension: extensions(&model) - 1,
        block: 5,
    };
    let mut seen = [false; 2];
    for seed in 2..=20 {
        if seen == [true; 2] {
            break;
        }
        let outcome = session(&model, seed, Some(at));
        outcome.server.unwrap();
        // Under the same seeds an answer is the same to the last bit, unless something is wrong.
        let honest = session(&model, seed, None).logits;
        let right = outcome.logits.unwrap() == honest.unwrap();
        let bit = offset(&outcome.kept) >> at.block & 1;
        assert_eq!(right, bit == 0, "seed {seed}");
        seen[bit as usize] = true;
    }
    assert_eq!(seen, [true; 2], "both kinds of servers were met");
}

/// Checks that the server has no offset in a bundle that opens anything of another one of the
/// session.
#[test]
fn offsets_are_a_bundles_own() {
    let model = tiny_for(SCHEME);
    let met = meet(
        |_, _| (),
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let mut session = ClientSession::open(channel, SCHEME, 2, rng).unwrap();
            for _ in 0..2 {
                session.prepare(channel, &mut io::sink()).unwrap();
            }
        },
        |channel| {
            let rng = Prg::new(&[2; 16]);
            let offer = offer(&model, Reveal::Outputs);
            let mut session = ServerSession::accept(channel, offer, rng).unwrap();
            let served = served(&model, session.program()).unwrap();
            [(); 2].map(|()| {
                let mut kept = Vec::new();
                session.prepare(channel, &served, &mut kept).unwrap();
                kept
            })
        },
    );
    let kept = met.server;
    for (i, bundle) in kept.iter().enumerate() {
        let label = offset(bundle).to_le_bytes();
        for (j, other) in kept.iter().enumerate() {
            let there = other.windows(16).any(|bytes| bytes == label);
            assert_eq!(there, i == j, "the offset of bundle {i} in {j}");
        }
    }
}
