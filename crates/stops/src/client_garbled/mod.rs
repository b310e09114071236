//! Stops by circuits that the *client* garbles and the server evaluates.
//!
//! A circuit that the server garbles ([`crate::garbled`]) leaves its tables with the client, which
//! keeps them until its text comes. With the roles swapped the client keeps a seed, and the tables
//! are kept where all other large data is: at the server.
//!
//! ```text
//! offline    for each chunk of instances
//!            server -> client   columns: transfers with random choices c'
//!            client -> server   a nonce (once), the garbled circuits
//!            client -> server   A + r for every output                       41 bits each
//! online     server -> client   d = c ⊕ c', with c the bits of a             m bits
//!            client -> server   D_j ⊕ d_j·Δ for each bit of a,               16 bytes each
//!                               if b is late, labels of the bits of b        16 bytes each
//!            server             evaluates: f(x) + A - (A + r) = f(x) - r
//! ```
//!
//! The circuits are those of [`StopCircuit`], with the same inputs: the sum of the shares does not
//! depend on who garbles (`circuits`). Only circuits that show nothing are allowed, because what
//! they show would be shown to the server.
//!
//! **The client's share `b`** may be known offline, as after a linear step. Then it goes into the
//! circuits: the client gives the wire of each of its bits the zero label `b_i·Δ`, and the server
//! uses the label 0. Nothing is sent or stored for it. A label must reveal nothing but its colour,
//! which is 0 here for either value of the bit, and the garbling hash requires only that the two
//! labels of a wire differ by Δ (`docs/garbling.md`, section 2). Or `b` is
//! [late](ClientGarbled::late): after a product of two secrets the server knows its share `a`
//! before it speaks, the client its share only when it has received what the server opened. A
//! circuit that the server garbles would take another trip, in which the client shares `b` anew;
//! here the labels of its bits go up with the others, and the function of a product is computed in
//! the product's own trip.
//!
//! **Labels of the server's bits.** The transfers give the client rows `q_j` and the server
//! `t_j = q_j ⊕ c'_j·Δ`. The client draws `D_j` from a seed, and the zero label of the wire is
//! `Z_j = q_j ⊕ D_j`. Online it sends `x_j = D_j ⊕ d_j·Δ`, for which it needs nothing but the seed
//! and Δ: no row is stored. The server has
//!
//! ```text
//! t_j ⊕ x_j  =  q_j ⊕ c'_j·Δ ⊕ D_j ⊕ d_j·Δ  =  Z_j ⊕ c_j·Δ
//! ```
//!
//! the active label `L_j` of its bit and nothing else: `x_j = t_j ⊕ L_j` is a function of what the
//! server already had and of a label that an evaluator is supposed to have. That `Z_j` is not `q_j`
//! itself is essential. The server holds `q_j ⊕ c'_j·Δ`, the label of a *random* bit, and to move
//! it to the bit `c_j` the client would have to send `d_j·Δ`: Δ in the clear, wherever a choice was
//! wrong.
//!
//! **Flags.** The last output of a flagged circuit is `flag + A`, and nothing is sent that removes
//! its `A`: the lowest bit of what the server evaluates and that of `A` are shares of the flag. The
//! client keeps its bits, one for each instance; the server has its own when it has the answer.
//!
//! **Who learns what.** The client receives `d`, the bits of `a` under a one-time pad; the
//! extension hides `c'`. The server receives circuits, active labels, and `A + r` with `r` drawn by
//! the client and used for nothing else; it ends with `f(x) - r`, uniform as `r` is. A simulator
//! that has this share `s` (which it may draw itself) can produce all of this: active labels and
//! tables at random, evaluated to `y`, `y - s` instead of `A + r`, and `t_j ⊕ L_j` online.
//! `server` has the argument against a server that deviates, `client` why one Δ may serve
//! garbling and the pads of transfers, and `docs/protocol/stops.md` what a client that deviates can
//! do, which is *more* than it can do with a circuit that the server garbles.
//!
//! **Memory.** The client stores a seed and Δ, 48 bytes for any number of instances, and the bits
//! of flags. The server stores rows and circuits and reads them whole when it needs them: this kind
//! of stop is meant for functions of rows, thousands of instances, not for functions of every
//! element.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::circuits::{Circuits, Secret};
use crate::error::{Result, StopError};
use crate::kind::StopKind;
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::stop::StopCircuit;
use primer_garble::{LABEL_BYTES, Label};
use primer_ot::cost::extension_as;
use primer_ring::pack::packed_len;
use primer_ring::prg::SECRET_SEED_BYTES;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::sync::Arc;

/// The server's label of every bit of a share that the client knows offline.
const KNOWN_LABEL: Label = 0;

/// Some instances of one circuit, garbled by the client.
#[derive(Debug, Clone)]
pub struct ClientGarbled {
    circuits: Circuits,
    transfers: Transfers,
    late: bool,
}

impl ClientGarbled {
    /// Makes a stop of `instances` instances of a circuit, for client's shares that are known
    /// offline.
    ///
    /// # Errors
    /// [`StopError::Kind`] if the circuit shows bits to its evaluator or has no outputs,
    /// [`StopError::Limit`] if there are more instances than any model needs. Nothing is allocated
    /// before these checks.
    pub fn new(circuit: Arc<StopCircuit>, instances: u64) -> Result<Self> {
        let cost = circuit.circuit().cost();
        if cost.reveals > 0 || cost.outputs == 0 {
            return Err(StopError::Kind {
                kind: StopKind::ClientGarbling.name(),
                what: circuit.name(),
            });
        }
        Ok(Self {
            circuits: Circuits::new(circuit, instances)?,
            transfers: Transfers::default(),
            late: false,
        })
    }

    /// Returns the same stop for client's shares that are known only online.
    #[must_use]
    pub fn late(self) -> Self {
        Self { late: true, ..self }
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

    fn ring_bits(&self) -> u32 {
        self.circuit().ring_bits()
    }

    /// Returns how many shares the client has offline, and how many online.
    fn shares(&self) -> [usize; 2] {
        match self.late {
            false => [self.elements(), 0],
            true => [0, self.elements()],
        }
    }

    /// Returns the number of bytes of all labels that the client sends.
    fn labels_len(&self) -> u64 {
        let parties = 1 + usize::from(self.late);
        (parties * self.circuits.instances() * self.circuits.bits() * LABEL_BYTES) as u64
    }
}

impl Stop for ClientGarbled {
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

    fn is_late(&self) -> bool {
        self.late
    }

    fn bytes(&self) -> PhaseBytes {
        let circuits = &self.circuits;
        let bits = circuits.bits();
        // The client is the sender of the transfers.
        let transfers = |n: usize| extension_as(self.transfers.to_server, n * bits).from_receiver;
        let garbled = |n: usize| HEADER_BYTES + circuits.garbled_len(n);
        let choices = packed_len(self.elements(), self.ring_bits());
        let choices = choices.expect("the limits keep instances countable");
        PhaseBytes {
            offline_up: HEADER_BYTES
                + LABEL_BYTES as u64
                + circuits.chunks().map(garbled).sum::<u64>()
                + HEADER_BYTES
                + circuits.outputs_len(),
            offline_down: circuits.chunks().map(transfers).sum(),
            online_up: HEADER_BYTES + self.labels_len(),
            online_down: HEADER_BYTES + choices as u64,
        }
    }

    /// Counts what each party keeps: the client a seed, the offset and its bits of flags; the
    /// server the seed of its choices, rows, nonce and circuits, and the masks of the outputs under
    /// the client's.
    fn stored(&self) -> StoredBytes {
        let circuits = &self.circuits;
        StoredBytes {
            client: Secret::BYTES as u64 + circuits.flags_len(),
            server: SECRET_SEED_BYTES as u64 + circuits.received_len() + circuits.outputs_len(),
        }
    }

    fn and_gates(&self) -> u64 {
        self.circuits.and_gates()
    }

    fn streams(&self) -> bool {
        false
    }

    /// Returns two messages for each chunk: the server extends, the client garbles.
    fn turns(&self) -> Vec<Turn> {
        let chunks = self.circuits.chunks();
        chunks.flat_map(|_| [Turn::Down, Turn::Up]).collect()
    }
}
