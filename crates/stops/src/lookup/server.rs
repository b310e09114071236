//! The server's side of look-ups: it draws the offsets offline, and asks online.

use super::{Lookups, negated_if, ones, packed};
use crate::error::{Result, StopError, expect_count, unusable};
use crate::flags::FlagShares;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_ot::{Bits, PadReceiver, PadSender, onehot};
use primer_ring::modulus::{self, P};
use primer_ring::pack::{pack, unpack};
use primer_wire::Channel;
use primer_wire::kind::lookup::{CHOICES, DELTAS, PRODUCTS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ServerStop for Lookups {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let store = |source| StopError::Store {
            stop: self.name(),
            source,
        };
        let ServerTools {
            channel,
            labels,
            transfers,
            rng,
        } = tools;
        let n = self.elements;
        let mut counts = Zeroizing::new(Vec::with_capacity(n));
        let mut offsets = Zeroizing::new(Vec::with_capacity(n));
        let (shape, bytes) = (self.shape, self.shape.vector_bytes());
        let both = (&mut **transfers, &mut **labels);
        onehot::with_offsets(both, channel, shape, n, *rng, |_, drawn, strings| {
            counts.extend(strings.chunks_exact(bytes).map(ones));
            offsets.extend_from_slice(drawn);
            sink.write_all(strings).map_err(store)
        })?;
        // Second bit of the number of ones.
        let signs = Bits::from_fn(n, |i| counts[i] >> 1 & 1 == 1);
        let sends = PadSender::prepare(labels, channel, self.to_client() * n, self.each(), P)?;
        let chooses = PadReceiver::prepare(transfers, channel, signs, self.each(), P)?;
        channel.flush()?;
        // Reserved at once: a buffer that grows would leave copies behind.
        let room = packed(n, self.index_bits) as usize;
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        pack(
            offsets.iter().map(|&u| u.into()),
            self.index_bits,
            &mut bytes,
        );
        sink.write_all(&bytes).map_err(store)?;
        sink.write_all(&sends.into_bytes()).map_err(store)?;
        sink.write_all(&chooses.into_bytes()).map_err(store)
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        let (n, results, m) = (self.elements, self.outputs(), self.index_bits);
        let damaged = |error| unusable(self.name(), error);
        // The shifts, which come after the strings, are needed first.
        let strings = self.read(stored, self.strings())?;
        let mut offsets = Zeroizing::new(vec![0; n]);
        unpack(&self.read(stored, packed(n, m))?, m, 1 << m, &mut offsets)
            .map_err(|error| unusable(self.name(), error))?;
        let (each, down) = (self.each(), self.to_client());
        let sends = self.read(stored, packed(2 * down * results, modulus::K))?;
        let sends = PadSender::from_bytes(&sends, down * n, each, P).map_err(damaged)?;
        let chooses = self.read(stored, packed(n, 1) + packed(results, modulus::K))?;
        let chooses = PadReceiver::from_bytes(&chooses, n, each, P).map_err(damaged)?;

        // Masked by the offsets, so both parties may know them, as both know whether an element's
        // top bit is set.
        let deltas = shares.iter().zip(offsets.iter());
        let deltas = deltas.map(|(a, u)| (a.wrapping_sub(*u) & ((1 << m) - 1)) as u16);
        let deltas: Vec<u16> = deltas.collect();
        let sent = deltas.iter().zip(shares);
        let sent = sent.map(|(&delta, &a)| u64::from(delta) | u64::from(self.top_bit(a)) << m);
        channel.send_residues(DELTAS, self.share_bits(), sent)?;
        // At once: then both parties add up at the same time.
        channel.flush()?;
        let (mut own, flags) = self.selected(&mut &strings[..], &deltas)?;
        let mut products = vec![0; down * results];
        for (i, own) in own.iter_mut().enumerate() {
            let a = negated_if(chooses.mask(i), *own);
            if !self.counted {
                let (sent, share) = sends.product(i, modulus::neg(modulus::add(a, a)));
                (products[i], *own) = (sent, modulus::add(a, share));
                continue;
            }
            // Public: what the client said under a pad.
            let kappa = self.top_bit(shares[i / each]);
            let (second, part) = match kappa {
                false => (a, 0),
                true => (modulus::neg(a), a),
            };
            let (sent, share) = sends.product(i, modulus::neg(a));
            let (sent_too, share_too) = sends.product(results + i, second);
            (products[i], products[results + i]) = (sent, sent_too);
            *own = modulus::add(part, modulus::add(share, share_too));
        }
        channel.send_residues(PRODUCTS, modulus::K, products.into_iter())?;
        Ok(Box::new(Requested {
            chooses,
            own,
            flags,
        }))
    }
}

/// A server that has sent its shifts and products.
struct Requested {
    chooses: PadReceiver,
    /// The server's part of the results.
    own: Zeroizing<Vec<u64>>,
    flags: FlagShares,
}

impl AwaitedAnswer for Requested {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let mut answers = vec![[0; 2]; self.own.len()];
        channel.recv_residues(CHOICES, modulus::K, P, answers.as_flattened_mut())?;
        let results = self.own.iter().zip(&answers).enumerate();
        Ok(results
            .map(|(i, (&own, &sent))| modulus::add(own, self.chooses.choice(i, sent)))
            .collect())
    }
}
