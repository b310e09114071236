//! Servers to attack: models that differ in their weights and in nothing that is public, and both
//! parties of a preparation and of an answer, with randomness of the test's choice.

use super::{offer, served, tiny_for};
use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_paper::session::{ClientSession, ServerSession};
use primer_paper::{ProtocolError, Scheme};
use primer_ring::prg::Prg;
use primer_testkit::models;
use primer_wire::Channel;
use std::io;
use std::sync::Arc;

/// Returns two models with one plan and different weights.
pub fn twins(scheme: Scheme) -> [Arc<IntModel>; 2] {
    let one = tiny_for(scheme);
    let other = models::twin(&one, |weights| scheme.recipe().form.weights(weights));
    [one, other]
}

/// Runs a client with this seed, until it has a bundle.
pub fn client_prepares(
    channel: &mut Channel,
    (scheme, tokens): (Scheme, usize),
    seed: u8,
) -> Result<(), ProtocolError> {
    let mut session = ClientSession::open(channel, scheme, tokens, Prg::new(&[seed; 16]))?;
    session.prepare(channel, &mut io::sink()).map(|_| ())
}

/// Runs a server with this seed, until it has a bundle.
pub fn server_prepares(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    seed: u8,
) -> Result<(), ProtocolError> {
    let offer = offer(model, Reveal::Outputs);
    let mut session = ServerSession::accept(channel, offer, Prg::new(&[seed; 16]))?;
    let served = served(model, session.program())?;
    let done = session.prepare(channel, &served, &mut io::sink());
    done.map(|_| ())
}
