//! The client's side of a late requantisation: the sender of its transfers.

use super::LateRequantise;
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_ot::{BitAnswering, BitSender, Bits};
use primer_ring::modulus::{self, P};
use primer_wire::Channel;
use primer_wire::kind::late::RESULTS;
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for LateRequantise {
    /// Prepares products of bits, for which it needs neither shares nor masks yet.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", 0, shares.len())?;
        expect_count(self.name(), "masks", self.elements, masks.len())?;
        let ClientTools {
            channel,
            transfers,
            rng,
            ..
        } = tools;
        let products = BitSender::prepare(transfers, channel, *rng, self.elements, P)?;
        material::keep(self.name(), sink, &products.into_bytes())
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>> {
        expect_count(self.name(), "late shares", self.elements, late.len())?;
        expect_count(self.name(), "masks", self.elements, masks.len())?;
        let bytes = material::take(self.name(), stored, self.stored().client)?;
        let products = BitSender::from_bytes(&bytes, self.elements, P)
            .map_err(|error| unusable(self.name(), error))?;
        let m = self.ring_bits;
        // `b - β·2^m - r`.
        let own = late.iter().zip(masks).map(|(&b, &r)| {
            let below = modulus::sub(b & ((1 << m) - 1), self.wrap(b));
            modulus::sub(below, r)
        });
        Ok(Box::new(Listened {
            own: Zeroizing::new(own.collect()),
            tops: Bits::from_fn(late.len(), |i| late[i] >> (m - 1) & 1 == 1),
            products: products.listen(channel)?,
            ring_bits: m,
        }))
    }
}

/// A client that has the server's bits.
struct Listened {
    products: BitAnswering,
    /// The top bits of its shares.
    tops: Bits,
    /// The client's part of the results.
    own: Zeroizing<Vec<u64>>,
    ring_bits: u32,
}

impl PendingAnswer for Listened {
    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        let products = self.products.answer(channel, &self.tops)?;
        let wrap = 1 << self.ring_bits;
        let results = self.own.iter().zip(products.iter());
        let results = results.map(|(&own, &both)| modulus::add(own, modulus::mul(both, wrap)));
        channel.send_residues(RESULTS, modulus::K, results)?;
        channel.flush()?;
        Ok(Vec::new())
    }
}
