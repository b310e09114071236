//! Garbled circuits as stops use them, whichever party garbles.
//!
//! The *garbler* is the sender of some transfers, whose offset is the offset of its labels; the
//! *evaluator* is their receiver.
//!
//! ```text
//! offline   for each chunk of instances
//!           evaluator -> garbler   columns of an extension, for choices of the evaluator's
//!           garbler -> evaluator   a nonce (the first time), the garbled circuits
//! ```
//!
//! Kinds of stops differ in how the rows of the extension relate to the labels of the circuit's
//! inputs: they say it when they call [`Circuits::garble`] and [`Circuits::evaluate`].
//!
//! The garbler keeps a [`Secret`], a seed of zero labels and the offset. The evaluator keeps, chunk
//! by chunk, its rows and the circuits, with the nonce after the first rows. The garbler holds
//! labels for one chunk at a time, so its memory does not grow with the number of instances.
//!
//! **Inputs.** A [`StopCircuit`] adds two shares. Its inputs of [`Party::Garbler`] are always the
//! *server's* share and those of [`Party::Evaluator`] the *client's*, whichever party garbles: they
//! name two groups of wires. Garbling takes zero labels of both groups and evaluation active labels
//! of both, and neither depends on whose they are.

mod evaluator;
mod garbler;

pub(crate) use evaluator::from_wire;
pub(crate) use garbler::{Secret, ZeroLabels};

use crate::error::{Result, StopError};
use crate::flags::FlagShares;
use primer_garble::circuit::{Circuit, LANES, Modulus, Party};
use primer_garble::stop::StopCircuit;
use primer_ot::Bits;
use primer_ring::pack::packed_len;
use std::sync::Arc;
use zeroize::Zeroizing;

/// AND gates of a stop, at most: 256 GiB of tables, a thousand times a layer of BERT-base.
const MAX_GATES: u64 = 1 << 33;
/// Input bits of either party, at most.
const MAX_INPUTS: u64 = 1 << 33;
/// Transfers of a chunk, about: 16 MiB of rows.
const CHUNK_BITS: usize = 1 << 20;

/// Some instances of one circuit.
#[derive(Debug, Clone)]
pub(crate) struct Circuits {
    stop: Arc<StopCircuit>,
    instances: usize,
}

impl Circuits {
    /// Makes `instances` instances of a circuit.
    ///
    /// # Errors
    /// [`StopError::Limit`] if that is more than any model needs. Nothing is allocated before this
    /// check.
    pub(crate) fn new(stop: Arc<StopCircuit>, instances: u64) -> Result<Self> {
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
                return Err(StopError::Limit {
                    stop: stop.name(),
                    instances,
                    what,
                    amount,
                    limit,
                });
            }
        }
        Ok(Self {
            stop,
            instances: instances as usize,
        })
    }

    /// Returns the circuit with the shape of its data.
    pub(crate) fn stop(&self) -> &StopCircuit {
        &self.stop
    }

    /// Returns the name of what it computes.
    pub(crate) fn name(&self) -> &'static str {
        self.stop.name()
    }

    /// Returns the number of instances.
    pub(crate) const fn instances(&self) -> usize {
        self.instances
    }

    /// Returns the number of ring elements that go in: all rows, one after the other.
    pub(crate) fn elements(&self) -> usize {
        self.instances * self.stop.row()
    }

    /// Returns the number of residues that come out, range flags not counted.
    pub(crate) fn outputs(&self) -> usize {
        self.instances * (self.circuit().cost().outputs - usize::from(self.stop.is_flagged()))
    }

    /// Returns the number of range flags.
    pub(crate) fn flags(&self) -> usize {
        self.instances * usize::from(self.stop.is_flagged())
    }

    /// Removes the range flags from all outputs of the circuits, and returns the party's shares of
    /// them.
    pub(crate) fn split_flags(&self, outputs: &mut Zeroizing<Vec<u64>>) -> Bits {
        let each = self.circuit().cost().outputs;
        let flag = |instance: usize| outputs[(instance + 1) * each - 1] & 1 == 1;
        let flags = Bits::from_fn(self.flags(), flag);
        if !flags.is_empty() {
            for instance in 0..self.instances {
                let (from, to) = (instance * each, instance * (each - 1));
                outputs.copy_within(from..from + each - 1, to);
            }
            outputs.truncate(self.outputs());
        }
        flags
    }

    /// Returns the number of residues that circuits give, range flags included.
    pub(crate) fn all_outputs(&self) -> usize {
        self.outputs() + self.flags()
    }

    /// Returns the number of AND gates of all instances.
    pub(crate) fn and_gates(&self) -> u64 {
        (self.circuit().cost().and_gates * self.instances) as u64
    }

    /// Returns the modulus of the outputs.
    pub(crate) fn modulus(&self) -> Modulus {
        self.circuit().modulus()
    }

    /// Returns the number of bytes of all outputs, packed.
    pub(crate) fn outputs_len(&self) -> u64 {
        let packed = packed_len(self.outputs(), self.modulus().width());
        packed.expect("the limits keep instances countable") as u64
    }

    /// Returns the number of bytes of a party's shares of the range flags, packed.
    pub(crate) fn flags_len(&self) -> u64 {
        self.flags().div_ceil(8) as u64
    }

    fn circuit(&self) -> &Circuit {
        self.stop.circuit()
    }

    /// Returns the number of input bits that each party has in an instance: a share for each
    /// element of its row.
    pub(crate) fn bits(&self) -> usize {
        let bits = self.stop.row() * self.stop.ring_bits() as usize;
        debug_assert_eq!(bits, self.circuit().inputs(Party::Garbler));
        debug_assert_eq!(bits, self.circuit().inputs(Party::Evaluator));
        bits
    }

    /// Returns the number of instances of each chunk in order: whole batches, except in the last.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        let batches = CHUNK_BITS / (LANES * self.bits().max(1));
        let size = LANES * batches.max(1);
        let instances = self.instances;
        (0..instances)
            .step_by(size)
            .map(move |first| size.min(instances - first))
    }

    /// Returns the number of bytes of the garbled circuits of `instances` instances.
    pub(crate) fn garbled_len(&self, instances: usize) -> u64 {
        let len = self.circuit().garbled_len(instances as u64);
        len.expect("the limits keep instances countable")
    }
}

/// Converts the bits of a party's shares of range flags for the comparison.
pub(crate) fn flag_shares(bits: &Bits) -> FlagShares {
    let mut shares = FlagShares::with_capacity(bits.len());
    (0..bits.len()).for_each(|i| shares.push(bits.get(i)));
    shares
}
