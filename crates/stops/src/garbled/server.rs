//! The server's side of a garbled stop: the garbler.
//!
//! Offline, for every chunk: the server extends the oblivious transfers by the client's input bits
//! and garbles. The rows are the zero labels of those bits. The zero labels of its *own* bits come
//! from a seed, so that it can make them again online instead of keeping them. It keeps the seed,
//! the offset and the masks of the outputs, 8 bytes each.
//!
//! Online it sends the labels of its bits, receives `f(x) + A - r`, and subtracts `A`.

use super::Garbled;
use crate::circuits::{Secret, flag_shares};
use crate::error::{Result, expect_count};
use crate::flags::FlagShares;
use crate::material;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_garble::LABEL_BYTES;
use primer_garble::circuit::Modulus;
use primer_wire::Channel;
use primer_wire::kind::garbled::{LABELS, RESULTS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Labels made and sent at a time: 256 KiB.
const LABEL_BLOCK: usize = 1 << 14;

impl ServerStop for Garbled {
    /// Garbles and streams the circuits, and keeps the seed, the offset and the outputs' masks.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            labels: cot,
            rng,
            ..
        } = tools;
        let garbled =
            (self.circuits).garble(channel, cot, rng, &[], |own, rows, [server, client]| {
                own.draw(server);
                client.copy_from_slice(rows);
            });
        let (secret, masks) = garbled?;
        channel.flush()?;
        self.write(&secret, &masks, sink)
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        let (secret, mut masks) = self.read(stored)?;
        self.send_labels(channel, &secret, shares)?;
        let flags = flag_shares(&self.circuits.split_flags(&mut masks));
        Ok(Box::new(Requested {
            modulus: self.circuits.modulus(),
            masks,
            flags,
        }))
    }
}

/// A server that has sent its labels.
struct Requested {
    modulus: Modulus,
    /// The mask of every output, `A`.
    masks: Zeroizing<Vec<u64>>,
    flags: FlagShares,
}

impl AwaitedAnswer for Requested {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let mut results = vec![0; self.masks.len()];
        if results.is_empty() {
            return Ok(results);
        }
        let modulus = self.modulus;
        channel.recv_residues(RESULTS, modulus.width(), modulus.order(), &mut results)?;
        for (result, &mask) in results.iter_mut().zip(self.masks.iter()) {
            *result = modulus.sub(*result, mask);
        }
        Ok(results)
    }
}

impl Garbled {
    fn send_labels(&self, channel: &mut Channel, secret: &Secret, shares: &[u64]) -> Result<()> {
        let bits = self.circuit().ring_bits() as usize;
        let length = (shares.len() * bits * LABEL_BYTES) as u64;
        let mut stream = channel.send_stream(LABELS, length)?;
        let mut own = secret.labels();
        let mut labels = Zeroizing::new(vec![0; LABEL_BLOCK / bits * bits]);
        for block in shares.chunks(LABEL_BLOCK / bits) {
            let labels = &mut labels[..block.len() * bits];
            own.draw_active(labels, bits, block);
            stream.put(bytemuck::cast_slice(labels))?;
        }
        Ok(stream.finish()?)
    }

    fn write(&self, secret: &Secret, masks: &[u64], sink: &mut dyn Write) -> Result<()> {
        // Reserved at once: a buffer that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.stored().server as usize));
        bytes.extend_from_slice(&*secret.to_bytes());
        for mask in masks {
            bytes.extend_from_slice(&mask.to_le_bytes());
        }
        material::keep(self.name(), sink, &bytes)
    }

    /// Reads what [`Self::write`] wrote. Masks are reduced: a damaged one is a wrong mask, not an
    /// error.
    fn read(&self, stored: &mut dyn Read) -> Result<(Secret, Zeroizing<Vec<u64>>)> {
        let bytes = material::take(self.name(), stored, self.stored().server)?;
        let (head, masks) = bytes.split_at(Secret::BYTES);
        let secret = Secret::from_bytes(self.name(), head)?;
        let modulus = self.circuits.modulus();
        let masks = masks.chunks_exact(8).map(|m| {
            let mask = u64::from_le_bytes(m.try_into().expect("eight bytes"));
            modulus.reduce(mask)
        });
        Ok((secret, Zeroizing::new(masks.collect())))
    }
}
