//! The client's side of a client-garbled stop: the garbler.
//!
//! Zero labels of a batch come from the seed in this order: `D_j` of all its server's bits, then
//! the zero labels of all its client's bits. Offline the former are added to the rows of the
//! transfers; online both are made again and sent in the same order, active.

use super::ClientGarbled;
use crate::circuits::{Secret, ZeroLabels};
use crate::error::{Result, expect_count};
use crate::material;
use crate::stop::{ClientStop, ClientTools, Owing, Stop};
use primer_garble::Label;
use primer_garble::circuit::LANES;
use primer_net::Channel;
use primer_net::kind::client_garbled::{CHOICES, LABELS, MASKS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for ClientGarbled {
    /// Needs no shares before it runs; the masks go out with the circuits.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", 0, shares.len())?;
        self.garble(tools, masks, &[], sink)
    }

    /// The labels of negated outputs open negated residues: that costs nothing, and no branch
    /// depends on it.
    fn prepare_signed(
        &self,
        tools: &mut ClientTools<'_>,
        masks: &[u64],
        negated: &[bool],
        sink: &mut dyn Write,
    ) -> Result<()> {
        let instances = self.circuits.instances();
        expect_count(self.name(), "signs", instances, negated.len())?;
        self.garble(tools, masks, negated, sink)
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn Owing>> {
        expect_count(self.name(), "late shares", self.elements(), late.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let bytes = material::take(self.name(), stored, self.stored().client)?;
        let secret = Secret::from_bytes(self.name(), &bytes)?;
        // They are public: one-time pads.
        let mut choices = vec![0; self.elements()];
        let m = self.ring_bits();
        channel.recv_residues(CHOICES, m, 1 << m, &mut choices)?;
        Ok(Box::new(Listened {
            stop: self.clone(),
            secret,
            choices,
            shares: Zeroizing::new(late.to_vec()),
        }))
    }
}

impl ClientGarbled {
    /// Garbles and sends everything, with the outputs of some instances negated.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    fn garble(
        &self,
        tools: &mut ClientTools<'_>,
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
        let place = |own: &mut ZeroLabels, rows: &[Label], [server, client]: [&mut [Label]; 2]| {
            own.draw(server);
            for (label, row) in server.iter_mut().zip(rows) {
                *label ^= row;
            }
            own.draw(client);
        };
        let (secret, garbler_masks) = circuits.garble(channel, cot, rng, negated, place)?;
        let modulus = self.circuits.modulus();
        let both = garbler_masks.iter().zip(masks);
        let both = both.map(|(&own, &new)| modulus.add(own, new));
        channel.send_residues(MASKS, modulus.width(), both)?;
        channel.flush()?;
        material::keep(self.name(), sink, &*secret.to_bytes())
    }
}

/// A client that has the server's choices.
struct Listened {
    stop: ClientGarbled,
    secret: Secret,
    choices: Vec<u64>,
    /// The client's shares.
    shares: Zeroizing<Vec<u64>>,
}

impl Owing for Listened {
    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        let bits = self.stop.ring_bits() as usize;
        let mut stream = channel.send_stream(LABELS, self.stop.labels_len())?;
        let mut own = self.secret.labels();
        let batch = LANES * self.stop.circuit().row();
        let mut labels = Zeroizing::new(vec![0; batch * bits]);
        let both = (self.choices.chunks(batch)).zip(self.shares.chunks(batch));
        for (choices, shares) in both {
            for elements in [choices, shares] {
                let labels = &mut labels[..elements.len() * bits];
                own.draw(labels);
                self.secret.activate(labels, bits, elements);
                stream.put(bytemuck::cast_slice(labels))?;
            }
        }
        stream.finish()?;
        channel.flush()?;
        Ok(Vec::new())
    }
}
