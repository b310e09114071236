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

use common::attack::two_batches;
use common::frames::{Frame, meet};
use common::{blind, client, offer, served, tiny, words};
use primer_engine::session::direct;
use primer_engine::stop_kinds::TRANSFERS;
use primer_engine::{ProtocolError, Reveal, server};
use primer_model::quantise::IntModel;
use primer_ot::OtError;
use primer_ring::prg::Prg;
use primer_stops::StopError;
use primer_wire::Channel;
use primer_wire::kind::transfer::EXTENSION;
use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an extension in front of the choices.
const POSITION: usize = 8;
/// Bytes of a checked extension behind the choices.
const PROOF: usize = 48;
/// Bytes of choices of each block that mask a check.
const MASKING: usize = 16;

/// Where the seed lies in a bundle: behind its version and the name of its program.
const SEED: Range<usize> = 34..66;

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
    let mut session = direct::accept(channel, offer(model, Reveal::Outputs), rng)?;
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

/// Checks that no party has an offset in a bundle that opens anything of another one, of the same
/// batch or of another batch of the session: neither the client nor the server. Where only labels
/// are revealed the server garbles two circuits of each bundle, so that its offset lies in two
/// places.
#[test]
fn offsets_are_a_bundles_own() {
    let batches = two_batches(&tiny(), 2, Reveal::Label, false);
    for (party, kept) in [("client", batches.ours), ("server", batches.theirs)] {
        for (i, bundle) in kept.iter().enumerate() {
            let label = offset(bundle).to_le_bytes();
            for (j, other) in kept.iter().enumerate() {
                let there = other.windows(16).any(|bytes| bytes == label);
                assert_eq!(there, i == j, "the {party}'s offset of bundle {i} in {j}");
            }
        }
    }
}

/// Checks that most of what a party draws of a bundle follows from the seed in its header.
#[test]
fn seeds_are_a_bundles_own() {
    let batches = two_batches(&tiny(), 2, Reveal::Outputs, false);
    let halves = [&batches.ours[..], &batches.theirs[..]].concat();
    let seeds: HashSet<&[u8]> = halves.iter().map(|kept| &kept[SEED]).collect();
    assert_eq!(seeds.len(), halves.len());
}

/// Checks that what a party keeps of a bundle it keeps in no other one, whatever it is: seeds,
/// offsets, masks, choices, strings of look-ups, rows of transfers.
#[test]
fn nothing_is_kept_in_two_bundles() {
    let batches = two_batches(&tiny(), 2, Reveal::Label, false);
    for (party, bundles) in [("client", batches.ours), ("server", batches.theirs)] {
        let mut seen = HashMap::new();
        for (i, kept) in bundles.iter().enumerate() {
            // Behind the version and the program's name, which are those of all.
            for (at, bytes) in kept[SEED.start..].windows(16).enumerate() {
                let first = *seen.entry(bytes).or_insert(i);
                assert_eq!(first, i, "the {party}'s bundle {i}, at {at}");
            }
        }
    }
}

/// Checks that the session ends while the bundle is prepared, for any Δ, and no answer tells
/// anything: the choices of a new offset, labels of a circuit and pads of a look-up alike. The
/// power of this test: the same attack in `primer_paper`, whose transfers are not checked.
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
                ProtocolError::Stops(StopError::Ot(OtError::Inconsistent))
            ),
        };
        assert!(caught, "seed {seed}: {error}");
        assert!(error.is_cheating(), "it is counted as what it is");
    }
}
