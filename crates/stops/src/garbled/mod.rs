//! Stops by garbled circuits: the server garbles, the client evaluates.
//!
//! ```text
//! offline   for each chunk of instances
//!           client -> server   choices: transfers for the client's bits, which it knows
//!           server -> client   a nonce (once), the garbled circuits
//! online    server -> client   labels of the server's bits                        16 bytes each
//!           client -> server   f(x) + A - r, which takes off nothing but A at the server,
//!                              41 bits for each output, none if the result is shown
//! ```
//!
//! Each party's half is in a file of its own; what these stops have in common with circuits that
//! the client garbles ([`crate::client_garbled`]), mainly the chunks, is in `circuits`.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::circuits::{Circuits, Secret};
use crate::error::Result;
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::LABEL_BYTES;
use primer_garble::stop::StopCircuit;
use primer_ot::cost::extension_as;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::sync::Arc;

/// Some instances of one circuit.
#[derive(Debug, Clone)]
pub struct Garbled {
    circuits: Circuits,
    transfers: Transfers,
}

impl Garbled {
    /// Makes a stop of `instances` instances of a circuit.
    ///
    /// # Errors
    /// [`crate::StopError::Limit`] if that is more than any model needs. Nothing is allocated
    /// before this check.
    pub fn new(circuit: Arc<StopCircuit>, instances: u64) -> Result<Self> {
        Ok(Self {
            circuits: Circuits::new(circuit, instances)?,
            transfers: Transfers::default(),
        })
    }

    /// Returns the same stop on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        Self { transfers, ..self }
    }

    /// Returns the circuit of one instance.
    pub fn circuit(&self) -> &StopCircuit {
        self.circuits.stop()
    }
}

impl Stop for Garbled {
    fn name(&self) -> &'static str {
        self.circuits.name()
    }

    /// Returns the number of elements: all rows, one after the other.
    fn elements(&self) -> usize {
        self.circuits.elements()
    }

    fn outputs(&self) -> usize {
        self.circuits.outputs()
    }

    fn flags(&self) -> usize {
        self.circuits.flags()
    }

    fn bytes(&self) -> PhaseBytes {
        let circuits = &self.circuits;
        let bits = circuits.bits();
        let transfers = |n: usize| extension_as(self.transfers.to_client, n * bits).from_receiver;
        let labels = circuits.instances() * bits * LABEL_BYTES;
        PhaseBytes {
            offline_up: circuits.chunks().map(transfers).sum(),
            offline_down: HEADER_BYTES
                + LABEL_BYTES as u64
                + (circuits.chunks())
                    .map(|n| HEADER_BYTES + circuits.garbled_len(n))
                    .sum::<u64>(),
            online_up: match self.outputs() {
                0 => 0,
                _ => HEADER_BYTES + circuits.outputs_len(),
            },
            online_down: HEADER_BYTES + labels as u64,
        }
    }

    /// Counts what each party keeps: the client its labels, the nonce and the garbled circuits; the
    /// server a seed, the offset and the masks of the outputs.
    fn stored(&self) -> StoredBytes {
        StoredBytes {
            client: self.circuits.received_len(),
            server: (Secret::BYTES + 8 * self.circuits.all_outputs()) as u64,
        }
    }

    fn and_gates(&self) -> u64 {
        self.circuits.and_gates()
    }

    fn streams(&self) -> bool {
        true
    }

    fn turns(&self) -> Vec<Turn> {
        let chunks = self.circuits.chunks();
        chunks.flat_map(|_| [Turn::Up, Turn::Down]).collect()
    }
}
