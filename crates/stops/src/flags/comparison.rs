//! The comparison of two strings of flags: one instance of a garbled circuit, whose evaluator, the
//! client, knows its bits only online.
//!
//! Zero labels come from a seed that the server drew, in this order: `D_j` of the client's bits,
//! then the zero labels of the server's own. Offline the former are added to the rows of the
//! transfers; online both are made again and sent in the same order, active.

use super::{FlagShares, SUBSETS};
use crate::bytes::StoredBytes;
use crate::circuits::{Circuits, Secret, ZeroLabels, from_wire};
use crate::error::Result;
use crate::material;
use crate::stop::{ClientTools, ServerTools};
use crate::transfers::Transfers;
use primer_garble::stop::StopCircuit;
use primer_garble::{LABEL_BYTES, Label};
use primer_ot::cost::extension_as;
use primer_ring::prg::{Prg, SEED_BYTES};
use primer_ring::wipe::SecretBytes;
use primer_wire::frame::HEADER_BYTES;
use primer_wire::kind::flags::{LABELS, SEED};
use primer_wire::{Channel, PhaseBytes};
use rand_core::Rng;
use std::io::{Read, Write};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of the parities.
const PARITIES_BYTES: usize = SUBSETS as usize / 8;
/// Bytes of the client's question.
const ASKED_BYTES: usize = SEED_BYTES + PARITIES_BYTES;
/// Labels of the server's answer, for the parities of both parties.
const LABELS_COUNT: usize = 2 * SUBSETS as usize;

/// How the flags of one inference are compared.
#[derive(Debug, Clone)]
pub struct Comparison {
    circuits: Circuits,
    transfers: Transfers,
}

impl Comparison {
    /// Makes a comparison on transfers of some variants.
    pub fn over(transfers: Transfers) -> Self {
        let circuits = Circuits::new(Arc::new(StopCircuit::equality(SUBSETS)), 1);
        Self {
            circuits: circuits.expect("one small instance is within all limits"),
            transfers,
        }
    }

    /// Returns the bytes that are sent for it, frame headers included, for any number of flags.
    pub fn bytes(&self) -> PhaseBytes {
        let rows = extension_as(self.transfers.to_client, SUBSETS as usize);
        PhaseBytes {
            offline_up: rows.from_receiver,
            offline_down: 2 * HEADER_BYTES + LABEL_BYTES as u64 + self.circuits.garbled_len(1),
            online_up: HEADER_BYTES + ASKED_BYTES as u64,
            online_down: HEADER_BYTES + (LABELS_COUNT * LABEL_BYTES) as u64,
        }
    }

    /// Returns the bytes that it leaves in the stores: the client's random choices, rows and
    /// circuit, the server's seed and offset.
    pub fn stored(&self) -> StoredBytes {
        StoredBytes {
            client: 8 + self.circuits.received_len(),
            server: Secret::BYTES as u64,
        }
    }

    /// Counts the AND gates.
    pub fn and_gates(&self) -> u64 {
        self.circuits.and_gates()
    }

    /// Draws the client's choices and receives the circuit, offline.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel, the transfers and the sink.
    pub fn client_prepare(&self, tools: &mut ClientTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let choices = Zeroizing::new([tools.rng.next_u64() & ((1 << SUBSETS) - 1)]);
        let bytes = Zeroizing::new(choices[0].to_le_bytes());
        material::keep(self.circuits.name(), sink, &*bytes)?;
        (self.circuits).receive(tools.channel, tools.labels, &*choices, sink)
    }

    /// Garbles the circuit for the server, offline.
    ///
    /// # Errors
    /// As [`Self::client_prepare`].
    pub fn server_prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            labels: cot,
            rng,
            ..
        } = tools;
        let place =
            |own: &mut ZeroLabels<'_>, rows: &[Label], [server, client]: [&mut [Label]; 2]| {
                own.draw(client);
                for (label, row) in client.iter_mut().zip(rows) {
                    *label ^= row;
                }
                own.draw(server);
            };
        let (secret, _) = self.circuits.garble(channel, cot, rng, &[], place)?;
        channel.flush()?;
        material::keep(self.circuits.name(), sink, &*secret.to_bytes())
    }

    /// Sends the client's question, with subsets of its own choice, online. `stored` gives what
    /// went to the sink. The answer comes later.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel and of material that is not this comparison's.
    pub fn ask(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        flags: &FlagShares,
        rng: &mut Prg,
    ) -> Result<PendingComparison> {
        let material = material::take(self.circuits.name(), stored, self.stored().client)?;
        let (choices, received) = material.split_at(8);
        let choices = u64::from_le_bytes(choices.try_into().expect("eight bytes"));
        let seed = rng.seed();
        let pad = flags.parities(&seed) ^ choices;
        let mut message = [0; ASKED_BYTES];
        message[..SEED_BYTES].copy_from_slice(&seed);
        message[SEED_BYTES..].copy_from_slice(&pad.to_le_bytes()[..PARITIES_BYTES]);
        channel.send(SEED, &message)?;
        Ok(PendingComparison {
            circuits: self.circuits.clone(),
            received: received.to_vec().into(),
        })
    }

    /// Sends the server's answer, online.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn answer(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        flags: &FlagShares,
    ) -> Result<()> {
        let name = self.circuits.name();
        let secret = material::take(name, stored, self.stored().server)?;
        let secret = Secret::from_bytes(name, &secret)?;
        let mut message = [0; ASKED_BYTES];
        channel.recv_exact(SEED, &mut message)?;
        let mut seed = [0; SEED_BYTES];
        seed.copy_from_slice(&message[..SEED_BYTES]);
        let mut pad = [0; 8];
        pad[..PARITIES_BYTES].copy_from_slice(&message[SEED_BYTES..]);
        let mut own = secret.labels();
        let mut labels = Zeroizing::new(vec![0; LABELS_COUNT]);
        let bits = [u64::from_le_bytes(pad), flags.parities(&seed)];
        for (labels, bits) in labels.chunks_mut(SUBSETS as usize).zip(bits) {
            own.draw_active(labels, SUBSETS as usize, &[bits]);
        }
        channel.send(LABELS, bytemuck::cast_slice(&labels))?;
        Ok(channel.flush()?)
    }
}

/// A client that has asked.
pub struct PendingComparison {
    circuits: Circuits,
    /// Rows, nonce and circuit.
    received: SecretBytes,
}

impl PendingComparison {
    /// Tells whether no flag is set.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel and of material that is not this comparison's.
    pub fn receive(self, channel: &mut Channel) -> Result<bool> {
        let mut labels = Zeroizing::new(vec![0; LABELS_COUNT]);
        channel.recv_exact(LABELS, bytemuck::cast_slice_mut(&mut labels))?;
        from_wire(&mut labels);
        let (ours, theirs) = labels.split_at(SUBSETS as usize);
        let mut stored = &self.received[..];
        let evaluated = (self.circuits).evaluate(&mut stored, |rows, [server, client]| {
            for ((label, row), sent) in client.iter_mut().zip(rows).zip(ours) {
                *label = row ^ sent;
            }
            server.copy_from_slice(theirs);
            Ok(())
        })?;
        Ok(evaluated.revealed[0])
    }
}
