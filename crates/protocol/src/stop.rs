//! Stops: an accumulator becomes a fixed value, by a garbled circuit or one oblivious transfer for each
//! element.
//!
//! Both parties truncate their share locally to the stop's ring (`primer_ring::truncate`), which is free,
//! and hand it to `primer_stops`. The client's share is known offline, so its labels or transfers
//! are too; online the server sends its part and gets `f(x) - r'` back, `r'` drawn by the client offline.
//!
//! ```text
//! offline   client <-> server  transfers for the client's bits; garbled circuits
//! online    server -> client   labels of the server's bits, or correction bits
//!           client -> server   f(x) - r'
//! ```
//!
//! **Bytes:** `primer_stops::Job::cost` and `primer_stops::requantise::cost`. **Rounds:** one online.
//! **Learned:** nothing; the server sees a uniform matrix.
//!
//! Softmax is masked here, without a word: the padding `m` (1 for a padded key) is shared like the
//! input, `m̂ + ρ`, and `-C·m` is linear, so each party adds its part to its share of the scores.

use crate::client::{self, Masks};
use crate::error::Result;
use crate::server;
use crate::share::{Share, power};
use crate::spool::Spool;
use primer_garble::stop::Stop;
use primer_net::Channel;
use primer_plan::function::{Function, Softmax};
use primer_plan::graph::ValueId;
use primer_plan::plan::Plan;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_stops::{ClientMaterial, Job, RequantiseClient, RequantiseServer, ServerMaterial};
use std::sync::Arc;
use zeroize::Zeroizing;

/// What the client needs of a stop online.
pub(crate) enum ClientStop {
    /// A requantisation.
    Requantise(RequantiseClient),
    /// A garbled circuit, where it is stored, and the mask of its result.
    Garbled {
        material: Box<ClientMaterial>,
        stored: Spool,
        mask: Arc<Share>,
    },
}

/// What the server needs of a stop online.
pub(crate) enum ServerStop {
    /// A requantisation.
    Requantise(RequantiseServer),
    /// A garbled circuit.
    Garbled(Box<ServerMaterial>),
}

/// The job of a stop over a matrix: rows for softmax, elements for everything else.
pub(crate) fn job(function: &Function, rows: usize, cols: usize) -> Result<Job> {
    let (row, instances) = match function {
        Function::Softmax(_) => (cols, rows),
        _ => (1, rows * cols),
    };
    let stop = Arc::new(Stop::new(function, row)?);
    Ok(Job::new(stop, instances as u64)?)
}

/// Adds a party's part of `-C·m` to its share of the scores, and the public `offset`.
fn mask_scores(
    plan: &Plan,
    softmax: &Softmax,
    input: ValueId,
    share: &mut Share,
    padding: &Share,
    offset: i64,
) {
    let unit = power(plan.truncation(input).shift());
    let weight = modulus::mul(modulus::from_signed(softmax.mask), unit);
    let offset = modulus::mul(modulus::from_signed(offset), unit);
    for r in 0..share.rows() {
        for (v, pad) in share.row_mut(r).iter_mut().zip(padding.data()) {
            *v = modulus::add(*v, modulus::sub(offset, modulus::mul(weight, *pad)));
        }
    }
}

/// Offline, the client: the mask that becomes its share of the result.
pub(crate) fn client_offline(
    preparation: &mut client::Preparation<'_>,
    channel: &mut Channel,
    index: usize,
    (input, output): (ValueId, ValueId),
    masks: &Masks,
    witness: client::Witness<'_>,
) -> Result<(Arc<Share>, ClientStop)> {
    let plan = preparation.program.plan();
    let mut share = masks.get(input).first_rows(plan.graph().value(input).rows);
    let function = plan.function(index);
    if let Some(Function::Softmax(softmax)) = function {
        mask_scores(plan, softmax, input, &mut share, &masks.padding, 0);
    }
    witness(input, &share);
    let (by, value) = (plan.truncation(input), plan.graph().value(output));
    let mask = Arc::new(Share::random(value.rows, value.cols, preparation.rng));
    let ring: Zeroizing<Vec<u64>> =
        Zeroizing::new(share.data().iter().map(|v| by.client(*v)).collect());
    let stop = match function {
        None => ClientStop::Requantise(RequantiseClient::prepare(
            channel,
            preparation.transfers,
            by.ring_bits(),
            &ring,
            mask.data(),
        )?),
        Some(function) => {
            let job = job(function, share.rows(), share.cols())?;
            let mut stored = preparation.storage.spool(job.stored_len())?;
            let material =
                ClientMaterial::prepare(channel, preparation.labels, &job, &ring, &mut stored)?;
            ClientStop::Garbled {
                material: Box::new(material),
                stored,
                mask: Arc::clone(&mask),
            }
        }
    };
    Ok((mask, stop))
}

/// Offline, the server.
pub(crate) fn server_offline(
    preparation: &mut server::Preparation<'_>,
    channel: &mut Channel,
    index: usize,
    input: ValueId,
) -> Result<ServerStop> {
    let plan = preparation.program.plan();
    let value = plan.graph().value(input);
    Ok(match plan.function(index) {
        None => ServerStop::Requantise(RequantiseServer::prepare(
            channel,
            preparation.transfers,
            plan.truncation(input).ring_bits(),
            value.rows * value.cols,
            preparation.rng,
        )?),
        Some(function) => {
            let job = job(function, value.rows, value.cols)?;
            let (labels, rng) = (&mut *preparation.labels, &mut *preparation.rng);
            let material = ServerMaterial::prepare(channel, labels, &job, rng)?;
            ServerStop::Garbled(Box::new(material))
        }
    })
}

/// Online, the client.
pub(crate) fn client_online(channel: &mut Channel, stop: ClientStop) -> Result<()> {
    match stop {
        ClientStop::Requantise(material) => Ok(material.finish(channel)?),
        ClientStop::Garbled {
            material,
            stored,
            mask,
        } => Ok(material.finish(channel, &mut stored.rewind()?, mask.data())?),
    }
}

/// Online, the server: its share of the result.
pub(crate) fn server_online(
    channel: &mut Channel,
    plan: &Plan,
    index: usize,
    (input, output): (ValueId, ValueId),
    mut share: Share,
    padding: &Share,
    stop: ServerStop,
) -> Result<Share> {
    if let Some(Function::Softmax(softmax)) = plan.function(index) {
        mask_scores(plan, softmax, input, &mut share, padding, softmax.offset);
    }
    let by = plan.truncation(input);
    let ring: Zeroizing<Vec<u64>> =
        Zeroizing::new(share.data().iter().map(|v| by.server(*v)).collect());
    let results = match stop {
        ServerStop::Requantise(material) => material.finish(channel, &ring)?,
        ServerStop::Garbled(material) => material.finish(channel, &ring)?,
    };
    let value = plan.graph().value(output);
    Ok(Matrix::from_vec(value.rows, value.cols, results).into())
}
