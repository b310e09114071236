//! Jobs: how many instances of a stop, cut into chunks of bounded size, and what they cost.
//!
//! A chunk is the unit of the offline phase: the oblivious transfers of its client bits, then its garbled
//! circuits. It is what the server holds labels for at a time, so its memory does not grow with the job.

use crate::error::{Result, StopsError};
use primer_garble::LABEL_BYTES;
use primer_garble::circuit::{LANES, Party};
use primer_garble::stop::Stop;
use primer_net::frame::HEADER_BYTES;
use primer_ring::pack::packed_len;
use primer_ring::prg::SEED_BYTES;
use std::ops::AddAssign;
use std::sync::Arc;

/// AND gates of a job, at most: 256 GiB of tables, a thousand times a layer of BERT-base.
pub const MAX_GATES: u64 = 1 << 33;
/// Input bits of either party, at most.
pub const MAX_INPUTS: u64 = 1 << 33;
/// Client bits of a chunk, about: 16 MiB of labels.
const CHUNK_BITS: usize = 1 << 20;

/// Some instances of one stop. Both parties make the same job from the plan.
#[derive(Debug, Clone)]
pub struct Job {
    stop: Arc<Stop>,
    instances: usize,
}

/// Bytes of a step in each direction, frame headers included. The client is below, the server above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Offline, from the client to the server.
    pub offline_up: u64,
    /// Offline, from the server to the client.
    pub offline_down: u64,
    /// Online, from the client to the server.
    pub online_up: u64,
    /// Online, from the server to the client.
    pub online_down: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.offline_up += other.offline_up;
        self.offline_down += other.offline_down;
        self.online_up += other.online_up;
        self.online_down += other.online_down;
    }
}

impl Job {
    /// `instances` instances of a stop.
    ///
    /// # Errors
    /// [`StopsError::Limit`] if that is more than any model needs. Nothing is allocated before this check.
    pub fn new(stop: Arc<Stop>, instances: u64) -> Result<Self> {
        let cost = stop.circuit().cost();
        let amounts = [
            ("AND gates", cost.and_gates, MAX_GATES),
            ("input bits", cost.garbler_inputs, MAX_INPUTS),
            ("input bits", cost.evaluator_inputs, MAX_INPUTS),
            ("outputs", cost.outputs, MAX_INPUTS),
            ("instances", 1, MAX_INPUTS),
        ];
        for (what, each, limit) in amounts {
            let amount = each as u128 * u128::from(instances);
            if amount > u128::from(limit) {
                return Err(StopsError::Limit {
                    stop: stop.name(),
                    instances,
                    what,
                    amount,
                    limit,
                });
            }
        }
        let instances = instances as usize;
        Ok(Self { stop, instances })
    }

    /// The stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Its instances.
    pub const fn instances(&self) -> usize {
        self.instances
    }

    /// Ring elements that go in: all rows, one after the other.
    pub fn elements(&self) -> usize {
        self.instances * self.stop.row()
    }

    /// Arithmetic results that come out.
    pub fn outputs(&self) -> usize {
        self.instances * self.stop.circuit().cost().outputs
    }

    pub(crate) fn inputs(&self, party: Party) -> usize {
        self.stop.circuit().inputs(party)
    }

    /// The instances of each chunk in order: whole batches, but for the last.
    pub fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        let batches = CHUNK_BITS / (LANES * self.inputs(Party::Evaluator).max(1));
        let size = LANES * batches.max(1);
        let instances = self.instances;
        (0..instances)
            .step_by(size)
            .map(move |first| size.min(instances - first))
    }

    /// Bytes of the garbled circuits of some instances.
    pub(crate) fn garbled_len(&self, instances: usize) -> u64 {
        let len = self.stop.circuit().garbled_len(instances as u64);
        len.expect("the limits keep jobs countable")
    }

    /// Bytes that the client stores of the offline phase: its labels, the nonce and the garbled circuits.
    pub fn stored_len(&self) -> u64 {
        let labels = (self.elements() * self.stop.ring_bits() as usize * LABEL_BYTES) as u64;
        labels + LABEL_BYTES as u64 + self.chunks().map(|n| self.garbled_len(n)).sum::<u64>()
    }

    /// Bytes that the server stores of the offline phase: a seed, the offset and the masks of the outputs.
    pub fn server_stored_len(&self) -> u64 {
        (SEED_BYTES + LABEL_BYTES) as u64 + 8 * self.outputs() as u64
    }

    /// What the job costs.
    pub fn cost(&self) -> Cost {
        let bits = self.inputs(Party::Evaluator);
        let transfers = |n: usize| primer_ot::cost::extension(n * bits).from_receiver;
        let labels = self.instances * self.inputs(Party::Garbler) * LABEL_BYTES;
        let width = self.stop.circuit().modulus().width();
        let results = packed_len(self.outputs(), width).expect("the limits keep jobs countable");
        Cost {
            offline_up: self.chunks().map(transfers).sum(),
            offline_down: HEADER_BYTES
                + LABEL_BYTES as u64
                + (self.chunks())
                    .map(|n| HEADER_BYTES + self.garbled_len(n))
                    .sum::<u64>(),
            online_up: match self.outputs() {
                0 => 0,
                _ => HEADER_BYTES + results as u64,
            },
            online_down: HEADER_BYTES + labels as u64,
        }
    }
}
