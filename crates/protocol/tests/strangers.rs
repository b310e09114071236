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
use common::{blind, client, offer, served, tiny_for, words};
use primer_model::quantise::IntModel;
use primer_net::Channel;
use primer_net::kind::transfer::EXTENSION;
use primer_ot::{OtError, Variant};
use primer_protocol::session::ServerSession;
use primer_protocol::{ProtocolError, Reveal, Scheme, server};
use primer_ring::prg::Prg;
use primer_stops::StopsError;
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
    transfers: Variant,
}

impl Deviation {
    /// Changes the first choice of one block.
    fn apply(&self, place: usize, frame: &mut Frame) {
        if frame.kind != EXTENSION.code() || place != self.extension {
            return;
        }
        let blocks = 128 / self.transfers.bits();
        let (proof, masking) = match self.transfers.is_checked() {
            true => (PROOF, MASKING),
            false => (0, 0),
        };
        let each = (frame.payload.len() - POSITION - proof) / blocks - masking;
        assert!(each > 0 && each < 2048, "one block of transfers");
        frame.payload[POSITION + self.block * (each + masking)] ^= 1;
    }
}

/// What came of a session: the client's logits, what the server says, and what it keeps.
struct Outcome {
    logits: Option<Vec<f64>>,
    server: Result<(), ProtocolError>,
    kept: Vec<u8>,
}

/// A server with this seed, until its last message; its bundle is copied.
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
fn session(model: &Arc<IntModel>, scheme: Scheme, seed: u8, at: Option<Deviation>) -> Outcome {
    let input = words(2, 2, 0);
    let mut kept = Vec::new();
    let met = meet(
        move |place, frame| {
            if let Some(at) = at {
                at.apply(place, frame);
            }
        },
        |channel| client(channel, model, &input, scheme, blind),
        |channel| serve(channel, model, seed, &mut kept),
    );
    let logits = met.client.ok();
    Outcome {
        logits: logits.map(|answer| answer.reals[0].data().to_vec()),
        server: met.server,
        kept,
    }
}

/// The offset that a party keeps of a bundle: it lies in the material of everything that the party
/// garbles, and it is the one thing of 16 bytes that lies in several places.
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

/// How many extensions a client sends.
fn extensions(model: &Arc<IntModel>, scheme: Scheme) -> usize {
    let (logs, ..) = common::logged(model, &words(2, 2, 0), scheme);
    let kinds = logs[0].iter().filter(|(kind, _)| *kind == EXTENSION.code());
    kinds.count()
}

/// The power of the test: transfers of the paper's schemes are not checked, and the answer tells a
/// bit of Δ. The last labels are those of the pooler.
#[test]
fn an_unchecked_client_learns_a_bit_of_the_offset() {
    let scheme = Scheme::Fp;
    let model = tiny_for(scheme);
    let at = Deviation {
        extension: extensions(&model, scheme) - 1,
        block: 5,
        transfers: scheme.recipe().transfers.to_client,
    };
    let mut seen = [false; 2];
    for seed in 2..=20 {
        if seen == [true; 2] {
            break;
        }
        let outcome = session(&model, scheme, seed, Some(at));
        outcome.server.unwrap();
        // Under the same seeds an answer is the same to the last bit, unless something is wrong.
        let honest = session(&model, scheme, seed, None).logits;
        let right = outcome.logits.unwrap() == honest.unwrap();
        let bit = offset(&outcome.kept) >> at.block & 1;
        assert_eq!(right, bit == 0, "seed {seed}");
        seen[bit as usize] = true;
    }
    assert_eq!(seen, [true; 2], "both kinds of servers were met");
}

/// No party has an offset in a bundle that opens anything of another one, of the same batch or of
/// another batch of the session: neither the client nor the server. Where only labels are revealed
/// the server garbles two circuits of each bundle, so that its offset lies in two places.
#[test]
fn offsets_are_a_bundles_own() {
    let batches = two_batches(&tiny_for(Scheme::Lean), 2, Reveal::Label, false);
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

/// Most of what a party draws of a bundle follows from the seed in its header.
#[test]
fn seeds_are_a_bundles_own() {
    let batches = two_batches(&tiny_for(Scheme::Lean), 2, Reveal::Outputs, false);
    let halves = [&batches.ours[..], &batches.theirs[..]].concat();
    let seeds: HashSet<&[u8]> = halves.iter().map(|kept| &kept[SEED]).collect();
    assert_eq!(seeds.len(), halves.len());
}

/// What a party keeps of a bundle it keeps in no other one, whatever it is: seeds, offsets, masks,
/// choices, strings of look-ups, rows of transfers.
#[test]
fn nothing_is_kept_in_two_bundles() {
    let batches = two_batches(&tiny_for(Scheme::Lean), 2, Reveal::Label, false);
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

/// In `lean` the session ends while the bundle is prepared, whatever Δ is, and no answer tells
/// anything: the choices of a new offset, labels of a circuit and pads of a look-up alike.
#[test]
fn a_checked_client_learns_nothing() {
    let scheme = Scheme::Lean;
    let model = tiny_for(scheme);
    let honest = session(&model, scheme, 1, None);
    honest.server.unwrap();
    assert!(honest.logits.is_some());
    let last = extensions(&model, scheme) - 1;
    for (seed, extension) in (0..=16).map(|seed| (seed, usize::from(seed) * last / 16)) {
        let at = Deviation {
            extension,
            block: usize::from(seed) % 32,
            transfers: scheme.recipe().transfers.to_client,
        };
        let outcome = session(&model, scheme, seed, Some(at));
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
