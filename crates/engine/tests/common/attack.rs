//! Servers to attack: models that differ in their weights and in nothing that is public, and both
//! parties of a preparation and of an answer, with randomness of the test's choice.

use super::frames::{honest, meet};
use super::{offer, open, served, tiny};
use primer_engine::session::direct;
use primer_engine::{Program, ProtocolError, Reveal};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_ring::prg::Prg;
use primer_testkit::models;
use primer_wire::Channel;
use std::io::Write;
use std::sync::Arc;

/// Returns two models with one plan and different weights.
pub fn twins() -> [Arc<IntModel>; 2] {
    let one = tiny();
    let other = models::twin(&one, FloatWeights::clone);
    [one, other]
}

/// Prepares some bundles with sinks in memory.
fn filled<E>(
    bundles: usize,
    prepare: impl FnOnce(&mut [&mut (dyn Write + Send)]) -> Result<(), E>,
) -> Result<Vec<Vec<u8>>, E> {
    let mut kept = vec![Vec::new(); bundles];
    let mut sinks: Vec<&mut (dyn Write + Send)> = Vec::new();
    sinks.extend(kept.iter_mut().map(|sink| sink as &mut (dyn Write + Send)));
    prepare(&mut sinks)?;
    Ok(kept)
}

/// Runs a client with this seed, until it has some bundles.
pub fn client_prepares(
    channel: &mut Channel,
    model: &IntModel,
    tokens: usize,
    seed: u8,
    bundles: usize,
) -> Result<(Program, Vec<Vec<u8>>), ProtocolError> {
    let mut session = open(channel, model, tokens, Prg::new(&[seed; 16]))?;
    let kept = filled(bundles, |sinks| {
        session.prepare_together(channel, sinks).map(|_| ())
    })?;
    Ok((session.program().clone(), kept))
}

/// Runs a server with this seed, which reveals no more than this, until it has some bundles.
pub fn server_prepares(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    (reveal, seed): (Reveal, u8),
    bundles: usize,
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let offer = offer(model, reveal);
    let mut session = direct::accept(channel, offer, Prg::new(&[seed; 16]))?;
    let served = served(model, session.program())?;
    filled(bundles, |sinks| {
        session
            .prepare_together(channel, &served, sinks)
            .map(|_| ())
    })
}

/// Bundles of each of two batches.
pub const BATCH: usize = 2;

/// Both halves of two batches, which one session prepared after each other.
pub struct Batches {
    pub program: Program,
    pub ours: Vec<Vec<u8>>,
    pub theirs: Vec<Vec<u8>>,
}

/// Prepares two batches in one session. For the second one the client draws fresh coins, or, if it
/// is told to, the same ones again.
pub fn two_batches(model: &Arc<IntModel>, tokens: usize, reveal: Reveal, again: bool) -> Batches {
    let met = meet(
        honest,
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let mut session = open(channel, model, tokens, rng).unwrap();
            let mut kept = Vec::new();
            for _ in 0..2 {
                if again {
                    session.set_coins(Prg::new(&[7; 16]));
                }
                let one = filled(BATCH, |sinks| {
                    session.prepare_together(channel, sinks).map(|_| ())
                });
                kept.extend(one.unwrap());
            }
            (session.program().clone(), kept)
        },
        |channel| {
            let rng = Prg::new(&[2; 16]);
            let mut session = direct::accept(channel, offer(model, reveal), rng).unwrap();
            let served = served(model, session.program()).unwrap();
            let mut kept = Vec::new();
            for _ in 0..2 {
                let one = filled(BATCH, |sinks| {
                    let times = session.prepare_together(channel, &served, sinks);
                    times.map(|_| ())
                });
                kept.extend(one.unwrap());
            }
            kept
        },
    );
    let (program, ours) = met.client;
    let theirs = met.server;
    Batches {
        program,
        ours,
        theirs,
    }
}
