//! The garbler of circuits: what it makes offline, and what it must remember for the online phase.

use super::Circuits;
use crate::error::{Result, StopError, unusable};
use primer_garble::circuit::LANES;
use primer_garble::garbler::Garbler;
use primer_garble::{LABEL_BYTES, Label, Offset};
use primer_ot::CotSender;
use primer_ring::prg::{Prg, SECRET_SEED_BYTES, SecretSeed};
use primer_wire::kind::garbled::{GARBLED, NONCE};
use primer_wire::{Channel, NetError};
use std::io;
use zeroize::Zeroizing;

/// What a garbler's labels can be made from again: the seed of the zero labels that it drew, and
/// the offset.
pub(crate) struct Secret {
    seed: Zeroizing<SecretSeed>,
    offset: Offset,
}

impl Secret {
    /// The length of the secret in a store, in bytes.
    pub(crate) const BYTES: usize = SECRET_SEED_BYTES + LABEL_BYTES;

    /// Draws a seed, to be used with the offset of these transfers.
    ///
    /// # Panics
    /// If the offset does not have its lowest bit set; that of transfers always does.
    fn draw(cot: &CotSender, rng: &mut Prg) -> Self {
        let offset = Offset::from_label(cot.delta().label());
        Self {
            seed: Zeroizing::new(rng.secret_seed()),
            offset: offset.expect("the offset of transfers has its lowest bit set"),
        }
    }

    /// Returns the zero labels, starting with the first.
    pub(crate) fn labels(&self) -> ZeroLabels<'_> {
        ZeroLabels {
            drawn: Prg::secret(&self.seed),
            offset: &self.offset,
        }
    }

    /// Returns the bytes for a store.
    pub(crate) fn to_bytes(&self) -> Zeroizing<[u8; Self::BYTES]> {
        let mut bytes = Zeroizing::new([0; Self::BYTES]);
        bytes[..SECRET_SEED_BYTES].copy_from_slice(&*self.seed);
        bytes[SECRET_SEED_BYTES..].copy_from_slice(&*self.offset.to_bytes());
        bytes
    }

    /// Restores the secret from a store's bytes, [`Self::BYTES`] of them.
    ///
    /// # Errors
    /// [`StopError::Material`] if the stored label cannot be an offset.
    pub(crate) fn from_bytes(stop: &'static str, bytes: &[u8]) -> Result<Self> {
        let mut seed = Zeroizing::new(SecretSeed::default());
        seed.copy_from_slice(&bytes[..SECRET_SEED_BYTES]);
        let mut label = Zeroizing::new([0; LABEL_BYTES]);
        label.copy_from_slice(&bytes[SECRET_SEED_BYTES..]);
        let offset = Offset::from_label(Label::from_le_bytes(*label))
            .ok_or_else(|| unusable(stop, "the offset's lowest bit is not set"))?;
        Ok(Self { seed, offset })
    }
}

/// Zero labels of a seed, one after the other.
pub(crate) struct ZeroLabels<'a> {
    drawn: Prg,
    offset: &'a Offset,
}

impl ZeroLabels<'_> {
    /// Draws the next zero labels.
    pub(crate) fn draw(&mut self, labels: &mut [Label]) {
        self.drawn.fill(bytemuck::cast_slice_mut(labels));
        for label in labels {
            *label = Label::from_le(*label);
        }
    }

    /// Draws the next zero labels for ring elements, `bits` each, and turns them into the active
    /// labels of the bits of `shares`, in the byte order of the wire.
    pub(crate) fn draw_active(&mut self, labels: &mut [Label], bits: usize, shares: &[u64]) {
        self.draw(labels);
        self.change(labels, bits, shares);
        for label in labels {
            *label = label.to_le();
        }
    }

    /// Replaces a wire's label by its other one wherever the bit of a share is one: this makes
    /// active labels from zero labels, and zero labels from active ones. No branch depends on a
    /// share.
    pub(crate) fn change(&self, labels: &mut [Label], bits: usize, shares: &[u64]) {
        debug_assert_eq!(labels.len(), bits * shares.len());
        for (labels, share) in labels.chunks_exact_mut(bits).zip(shares) {
            for (i, label) in labels.iter_mut().enumerate() {
                *label = self.offset.choose(*label, share >> i & 1 == 1);
            }
        }
    }
}

impl Circuits {
    /// Garbles all instances and streams them to the evaluator. `place` is called for each batch,
    /// with the labels still to be drawn and the rows of its transfers, and sets the zero labels of
    /// the server's share and of the client's.
    ///
    /// Returns what the labels can be made from again, and the mask of every output. The nonce is
    /// fresh, so that no key of a hash serves twice under one offset. `negated` says for every
    /// instance whether its outputs are negated, which the evaluator cannot tell; if it is empty,
    /// no outputs are negated.
    ///
    /// # Errors
    /// [`StopError`] of the channel and the transfers.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    pub(crate) fn garble(
        &self,
        channel: &mut Channel,
        cot: &mut CotSender,
        rng: &mut Prg,
        negated: &[bool],
        mut place: impl FnMut(&mut ZeroLabels<'_>, &[Label], [&mut [Label]; 2]),
    ) -> Result<(Secret, Zeroizing<Vec<u64>>)> {
        let secret = Secret::draw(cot, rng);
        let nonce = rng.seed();
        let mut own = secret.labels();
        let circuit = self.circuit();
        let mut garbler = Garbler::new(circuit, &secret.offset, Label::from_le_bytes(nonce));
        let (bits, outputs) = (self.bits(), circuit.cost().outputs);
        let mut masks = Zeroizing::new(vec![0; self.all_outputs()]);
        let mut server = Zeroizing::new(vec![0; LANES * bits]);
        let mut client = Zeroizing::new(vec![0; LANES * bits]);
        let (mut told, mut done) = (false, 0);
        for instances in self.chunks() {
            let rows = cot.extend_vec(channel, instances * bits)?;
            if !std::mem::replace(&mut told, true) {
                channel.send(NONCE, &nonce)?;
            }
            let mut stream = channel.send_stream(GARBLED, self.garbled_len(instances))?;
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let (server, client) = (&mut server[..lanes * bits], &mut client[..lanes * bits]);
                let rows = &rows[first * bits..(first + lanes) * bits];
                place(&mut own, rows, [server, client]);
                let masks = &mut masks[(done + first) * outputs..(done + first + lanes) * outputs];
                let garbled = match negated.get(done + first..done + first + lanes) {
                    None => garbler.batch(server, client, masks, &mut stream),
                    Some(signs) => garbler.batch_negated(server, client, signs, masks, &mut stream),
                };
                garbled.map_err(|error| sink_error(error, self.name()))?;
            }
            stream.finish()?;
            done += instances;
        }
        if !told {
            channel.send(NONCE, &nonce)?;
        }
        // They borrow the offset.
        drop((garbler, own));
        Ok((secret, masks))
    }
}

/// Converts an error that a streaming sink reported.
fn sink_error(error: io::Error, stop: &'static str) -> StopError {
    match error.downcast::<NetError>() {
        Ok(net) => StopError::Net(net),
        Err(source) => StopError::Store { stop, source },
    }
}
