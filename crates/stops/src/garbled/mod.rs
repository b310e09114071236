//! Stops by garbled circuits: the server garbles, the client evaluates.
//!
//! ```text
//! offline   for each chunk of instances
//!           client -> server   choices: transfers for the client's bits, which it knows
//!           server -> client   a nonce (once), the garbled circuits
//! online    server -> client   labels of the server's bits
//!           client -> server   f(x) + A - r, which takes off nothing but A at the server
//! ```
//!
//! Each party's half is a file of its own. A chunk is the unit of the offline phase: the oblivious
//! transfers of its client bits, then its garbled circuits. It is what the server holds labels for
//! at a time, so its memory does not grow with the number of instances.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::{Result, StopsError};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::LABEL_BYTES;
use primer_garble::circuit::{LANES, Party};
use primer_garble::stop::StopCircuit;
use primer_net::PhaseBytes;
use primer_net::frame::HEADER_BYTES;
use primer_ot::cost::extension_as;
use primer_ring::pack::packed_len;
use primer_ring::prg::SECRET_SEED_BYTES;
use std::sync::Arc;

/// AND gates of a stop, at most: 256 GiB of tables, a thousand times a layer of BERT-base.
pub const MAX_GATES: u64 = 1 << 33;
/// Input bits of either party, at most.
pub const MAX_INPUTS: u64 = 1 << 33;
/// Client bits of a chunk, about: 16 MiB of labels.
const CHUNK_BITS: usize = 1 << 20;

/// Some instances of one circuit.
#[derive(Debug, Clone)]
pub struct Garbled {
    circuit: Arc<StopCircuit>,
    instances: usize,
    transfers: Transfers,
}

impl Garbled {
    /// `instances` instances of a circuit.
    ///
    /// # Errors
    /// [`StopsError::Limit`] if that is more than any model needs. Nothing is allocated before this
    /// check.
    pub fn new(circuit: Arc<StopCircuit>, instances: u64) -> Result<Self> {
        let cost = circuit.circuit().cost();
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
                    stop: circuit.name(),
                    instances,
                    what,
                    amount,
                    limit,
                });
            }
        }
        Ok(Self {
            circuit,
            instances: instances as usize,
            transfers: Transfers::default(),
        })
    }

    /// The same on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        Self { transfers, ..self }
    }

    /// The circuit of one instance.
    pub fn circuit(&self) -> &StopCircuit {
        &self.circuit
    }

    fn inputs(&self, party: Party) -> usize {
        self.circuit.circuit().inputs(party)
    }

    /// The instances of each chunk in order: whole batches, but for the last.
    fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        let batches = CHUNK_BITS / (LANES * self.inputs(Party::Evaluator).max(1));
        let size = LANES * batches.max(1);
        let instances = self.instances;
        (0..instances)
            .step_by(size)
            .map(move |first| size.min(instances - first))
    }

    /// Bytes of the garbled circuits of some instances.
    fn garbled_len(&self, instances: usize) -> u64 {
        let len = self.circuit.circuit().garbled_len(instances as u64);
        len.expect("the limits keep instances countable")
    }
}

impl Stop for Garbled {
    fn name(&self) -> &'static str {
        self.circuit.name()
    }

    /// All rows, one after the other.
    fn elements(&self) -> usize {
        self.instances * self.circuit.row()
    }

    fn outputs(&self) -> usize {
        self.instances * self.circuit.circuit().cost().outputs
    }

    fn bytes(&self) -> PhaseBytes {
        let bits = self.inputs(Party::Evaluator);
        let transfers = |n: usize| extension_as(self.transfers.to_client, n * bits).from_receiver;
        let labels = self.instances * self.inputs(Party::Garbler) * LABEL_BYTES;
        let width = self.circuit.circuit().modulus().width();
        let results = packed_len(self.outputs(), width);
        let results = results.expect("the limits keep instances countable");
        PhaseBytes {
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

    /// The client keeps its labels, the nonce and the garbled circuits; the server a seed, the
    /// offset and the masks of the outputs.
    fn stored(&self) -> StoredBytes {
        let bits = self.elements() * self.circuit.ring_bits() as usize;
        let circuits = self.chunks().map(|n| self.garbled_len(n));
        StoredBytes {
            client: ((bits + 1) * LABEL_BYTES) as u64 + circuits.sum::<u64>(),
            server: (SECRET_SEED_BYTES + LABEL_BYTES) as u64 + 8 * self.outputs() as u64,
        }
    }

    fn and_gates(&self) -> u64 {
        (self.circuit.circuit().cost().and_gates * self.instances) as u64
    }

    fn streams(&self) -> bool {
        true
    }

    fn turns(&self) -> Vec<Turn> {
        self.chunks().flat_map(|_| [Turn::Up, Turn::Down]).collect()
    }
}
