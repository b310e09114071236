//! The client's side of a client-garbled stop: the garbler.
//!
//! Zero labels of a batch come from the seed in this order: `D_j` of all the server's bits in it,
//! then, if the client's shares are late, the zero labels of all the client's bits in it. Offline
//! the former are added to the rows of the transfers; online both are made again and sent in the
//! same order, active. Shares that are known offline go into the circuits as the zero labels of
//! their bits.
//!
//! # One Δ for pads and labels
//!
//! Δ is also the secret of requantisations and look-ups, whose pads are hashes of rows. The client
//! is the only garbler on it, as the server is on the offset of the other direction. Three hashes
//! see points that differ by Δ, each under AES keys of its own: garbling under `nonce ⊕ counter`,
//! with 128 random bits for each stop; pads of transfers (`ot/src/hash.rs`) under one key, blake3
//! of the session in a context of its own; strings of look-ups (`ot/src/onehot/keys.rs`) under `κ ⊕
//! position`, blake3 in another context. One of `g` garbling keys is one of `h` others with
//! probability at most `g·h/2^128`, and the nonce is drawn by the party that Δ protects, after the
//! session's name is fixed. For different keys the ideal cipher is an independent permutation, and
//! bounds add up. Rows are not used raw: `q_j` is hidden in `Z_j` by `D_j`, and a row of an
//! extension goes into this stop or into a pad, never both.

use super::{ClientGarbled, KNOWN_LABEL};
use crate::circuits::{Secret, ZeroLabels, flag_shares};
use crate::error::{Result, StopError, expect_count, unusable};
use crate::flags::FlagShares;
use crate::material;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_garble::Label;
use primer_garble::circuit::LANES;
use primer_ot::Bits;
use primer_wire::Channel;
use primer_wire::kind::client_garbled::{CHOICES, LABELS, MASKS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for ClientGarbled {
    /// Takes no shares if they are late, and sends the masks with the circuits.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        let [early, _] = self.shares();
        expect_count(self.name(), "shares", early, shares.len())?;
        self.garble(tools, shares, masks, &[], sink)
    }

    /// Garbles so that the labels of negated outputs open negated residues: this costs nothing, and
    /// no branch depends on `negated`.
    fn prepare_signed(
        &self,
        tools: &mut ClientTools<'_>,
        masks: &[u64],
        negated: &[bool],
        sink: &mut dyn Write,
    ) -> Result<()> {
        if !self.late {
            return Err(StopError::Negated { stop: self.name() });
        }
        let instances = self.circuits.instances();
        expect_count(self.name(), "signs", instances, negated.len())?;
        self.garble(tools, &[], masks, negated, sink)
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>> {
        let name = self.name();
        let [_, shares] = self.shares();
        expect_count(name, "late shares", shares, late.len())?;
        expect_count(name, "masks", self.outputs(), masks.len())?;
        let bytes = material::take(name, stored, self.stored().client)?;
        let (secret, flags) = bytes.split_at(Secret::BYTES);
        let secret = Secret::from_bytes(name, secret)?;
        let flags = Bits::from_bytes(flags.to_vec(), self.flags());
        let flags = flag_shares(&flags.map_err(|error| unusable(name, error))?);
        // They are public: one-time pads.
        let mut choices = vec![0; self.elements()];
        let m = self.ring_bits();
        channel.recv_residues(CHOICES, m, 1 << m, &mut choices)?;
        Ok(Box::new(Listened {
            stop: self.clone(),
            secret,
            choices,
            late: Zeroizing::new(late.to_vec()),
            flags,
        }))
    }
}

impl ClientGarbled {
    /// Garbles and sends everything, with the outputs of the instances in `negated` negated;
    /// `early` are the shares, if they are known.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    fn garble(
        &self,
        tools: &mut ClientTools<'_>,
        mut early: &[u64],
        masks: &[u64],
        negated: &[bool],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let ClientTools {
            channel,
            transfers: cot,
            rng,
            ..
        } = tools;
        let circuits = &self.circuits;
        let m = self.ring_bits() as usize;
        let place = |own: &mut ZeroLabels<'_>, rows: &[Label], labels: [&mut [Label]; 2]| {
            let [server, client] = labels;
            own.draw(server);
            for (label, row) in server.iter_mut().zip(rows) {
                *label ^= row;
            }
            if self.late {
                own.draw(client);
                return;
            }
            let (now, later) = early.split_at(client.len() / m);
            early = later;
            client.fill(KNOWN_LABEL);
            own.change(client, m, now);
        };
        let (secret, mut garbler_masks) = circuits.garble(channel, cot, rng, negated, place)?;
        let flags = circuits.split_flags(&mut garbler_masks);
        let modulus = circuits.modulus();
        let both = garbler_masks.iter().zip(masks);
        let both = both.map(|(&own, &new)| modulus.add(own, new));
        channel.send_residues(MASKS, modulus.width(), both)?;
        channel.flush()?;
        material::keep(self.name(), sink, &*secret.to_bytes())?;
        material::keep(self.name(), sink, flags.bytes())
    }
}

/// A client that has the server's choices.
struct Listened {
    stop: ClientGarbled,
    secret: Secret,
    choices: Vec<u64>,
    /// The client's shares, if they are late.
    late: Zeroizing<Vec<u64>>,
    flags: FlagShares,
}

impl PendingAnswer for Listened {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        let bits = self.stop.ring_bits() as usize;
        let mut stream = channel.send_stream(LABELS, self.stop.labels_len())?;
        let mut own = self.secret.labels();
        let batch = LANES * self.stop.circuit().row();
        let mut labels = Zeroizing::new(vec![0; batch * bits]);
        let mut late = self.late.chunks(batch);
        for choices in self.choices.chunks(batch) {
            for elements in [Some(choices), late.next()].into_iter().flatten() {
                let labels = &mut labels[..elements.len() * bits];
                own.draw_active(labels, bits, elements);
                stream.put(bytemuck::cast_slice(labels))?;
            }
        }
        stream.finish()?;
        channel.flush()?;
        Ok(Vec::new())
    }
}
