//! The server's side of a client-garbled stop: the evaluator.
//!
//! Its random choices, `m` bits for each element, come from a seed that it keeps. Its store holds
//! the seed, what [`crate::circuits`] keeps for an evaluator, and `A + r` of every output, packed.
//! Its shares of range flags are among the outputs that it evaluates, so it has them with its
//! results.
//!
//! # Why a server may choose its bits after it has the tables
//!
//! If the server's bits are independent of the tables, the security of garbling says that the
//! simulator of [`super`] cannot be told from the protocol. A server that deviates chooses `d` when
//! it has the tables, `A + r` and its labels of the known bits. For it the argument of
//! `docs/garbling.md`, section 2, needs two things, which hold here as where the server garbles.
//!
//! * *Bits whose labels come early are fixed before the tables are.* These are the client's known
//!   bits, with the label 0. The client knows them when it garbles, and the server cannot change
//!   them afterwards.
//! * *The evaluator has no label of any other wire until the last bit is chosen.* Every gate
//!   depends on the server's share: the labels of its wires contain some `Z_j`, or a hash of a
//!   label that does, and `Z_j` is padded by `D_j`, which serves once and is heard of only in the
//!   answer to `d`. All choices are in the one `d`, and the answer comes as a whole. Up to then
//!   every table and row is uniform to the server for all bits that it may choose, unless it
//!   guesses a point of the cipher. The label `Z_j ⊕ c_j·Δ` that it then gets is uniform given all
//!   that it has seen, for either value of `c_j`, and what the cipher says at the active labels is
//!   still open.
//!
//! This would fail if labels came one after the other, or the server could choose a bit after
//! evaluating a part. `A + r` is known early in both cases and binds nothing: `r` is uniform and in
//! no other message. `tests/stops/client_garbled_views.rs` tests that the client's view is uniform,
//! that no two labels that the server sees differ by Δ and none is Δ (asked twice with different
//! choices, the client shows it), that tables are uniform, and the server's shares and flags; each
//! test is also seen to fail where a pad or a mask is used twice or missing.

use super::{ClientGarbled, KNOWN_LABEL};
use crate::circuits::{flag_shares, from_wire};
use crate::error::{Result, expect_count, unusable};
use crate::flags::FlagShares;
use crate::material;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
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
    ) -> Result<Box<dyn AwaitedAnswer>> {
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

impl AwaitedAnswer for Requested {
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
