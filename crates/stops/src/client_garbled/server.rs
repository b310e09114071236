//! The server's side of a client-garbled stop: the evaluator.
//!
//! Its random choices, `m` bits for each element, come from a seed that it keeps. Its store holds
//! the seed, what [`crate::circuits`] keeps for an evaluator, and `A + r` of every output, packed.
//! Its shares of range flags are among the outputs that it evaluates, so it has them with its
//! results.

use super::{ClientGarbled, KNOWN_LABEL};
use crate::circuits::{flag_shares, from_wire};
use crate::error::{Result, expect_count, unusable};
use crate::flags::FlagShares;
use crate::material;
use crate::stop::{ServerStop, ServerTools, Stop, Waiting};
use primer_ring::pack::{pack, unpack};
use primer_ring::prg::{Prg, SECRET_SEED_BYTES, SecretSeed};
use primer_ring::wipe::SecretBytes;
use primer_wire::Channel;
use primer_wire::kind::client_garbled::{CHOICES, LABELS, MASKS};
use rand_core::Rng;
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ServerStop for ClientGarbled {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            transfers: cot,
            rng,
            ..
        } = tools;
        let seed = Zeroizing::new(rng.secret_seed());
        material::keep(self.name(), sink, &*seed)?;
        (self.circuits).receive(channel, cot, &self.choices(&seed), sink)?;
        let modulus = self.circuits.modulus();
        let mut masks = Zeroizing::new(vec![0; self.outputs()]);
        channel.recv_residues(MASKS, modulus.width(), modulus.order(), &mut masks)?;
        let length = self.circuits.outputs_len() as usize;
        let mut bytes = SecretBytes::with_capacity(length);
        pack(masks.iter().copied(), modulus.width(), &mut bytes);
        material::keep(self.name(), sink, &bytes)
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn Waiting>> {
        let name = self.name();
        expect_count(name, "shares", self.elements(), shares.len())?;
        let head = material::take(name, stored, SECRET_SEED_BYTES as u64)?;
        let mut seed = Zeroizing::new(SecretSeed::default());
        seed.copy_from_slice(&head);
        let received = material::take(name, stored, self.circuits.received_len())?;
        let packed = material::take(name, stored, self.circuits.outputs_len())?;
        let modulus = self.circuits.modulus();
        let mut masks = Zeroizing::new(vec![0; self.outputs()]);
        unpack(&packed, modulus.width(), modulus.order(), &mut masks)
            .map_err(|error| unusable(name, error))?;
        let m = self.ring_bits();
        let choices = self.choices(&seed);
        let choices = choices.iter().zip(shares);
        let choices = choices.map(|(random, share)| (random ^ share) & ((1 << m) - 1));
        channel.send_residues(CHOICES, m, choices)?;
        Ok(Box::new(Requested {
            stop: self.clone(),
            received,
            masks,
        }))
    }
}

/// A server that has shown its bits under pads.
struct Requested {
    stop: ClientGarbled,
    /// Rows, nonce and circuits.
    received: SecretBytes,
    /// `A + r` of every output.
    masks: Zeroizing<Vec<u64>>,
}

impl Waiting for Requested {
    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        Ok(self.receive_flagged(channel)?.0)
    }

    fn receive_flagged(self: Box<Self>, channel: &mut Channel) -> Result<(Vec<u64>, FlagShares)> {
        let circuits = &self.stop.circuits;
        let mut stream = channel.recv_stream(LABELS, self.stop.labels_len())?;
        let mut stored = &self.received[..];
        let evaluated = circuits.evaluate(&mut stored, |rows, [server, client]| {
            stream.get(bytemuck::cast_slice_mut(server))?;
            from_wire(server);
            for (label, row) in server.iter_mut().zip(rows) {
                *label ^= row;
            }
            match self.stop.late {
                true => {
                    stream.get(bytemuck::cast_slice_mut(client))?;
                    from_wire(client);
                }
                false => client.fill(KNOWN_LABEL),
            }
            Ok(())
        })?;
        stream.finish()?;
        let mut outputs = evaluated.outputs;
        let flags = flag_shares(&circuits.split_flags(&mut outputs));
        let modulus = circuits.modulus();
        let results = outputs.iter().zip(self.masks.iter());
        let results = results.map(|(&result, &mask)| modulus.sub(result, mask));
        Ok((results.collect(), flags))
    }
}

impl ClientGarbled {
    /// Returns the random choices of a seed: a number of `m` bits for each element.
    fn choices(&self, seed: &SecretSeed) -> Zeroizing<Vec<u64>> {
        let mut prg = Prg::secret(seed);
        let mask = (1 << self.ring_bits()) - 1;
        let choices = (0..self.elements()).map(|_| prg.next_u64() & mask);
        Zeroizing::new(choices.collect())
    }
}
