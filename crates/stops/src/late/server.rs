//! The server's side of a late requantisation: the receiver of its transfers.

use super::LateRequantise;
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::requantise::lifted;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_ot::{BitReceiver, BitWaiting, Bits};
use primer_ring::modulus::{self, P};
use primer_wire::Channel;
use primer_wire::kind::late::RESULTS;
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ServerStop for LateRequantise {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            transfers,
            rng,
            ..
        } = tools;
        let products = BitReceiver::prepare(transfers, channel, *rng, self.elements, P)?;
        material::keep(self.name(), sink, &products.into_bytes())
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        let bytes = material::take(self.name(), stored, self.stored().server)?;
        let products = BitReceiver::from_bytes(&bytes, self.elements, P)
            .map_err(|error| unusable(self.name(), error))?;
        let m = self.ring_bits;
        let tops = Bits::from_fn(shares.len(), |i| lifted(shares[i], m).0 >> (m - 1) == 1);
        // `a - 2^(m-2) - α·2^m`.
        let own = shares.iter().map(|&a| {
            let (a, offset) = lifted(a, m);
            modulus::sub(modulus::sub(a, offset), self.wrap(a))
        });
        Ok(Box::new(Requested {
            own: Zeroizing::new(own.collect()),
            products: products.request(channel, &tops)?,
            ring_bits: m,
        }))
    }
}

/// A server that has shown its bits under pads.
struct Requested {
    products: BitWaiting,
    /// The server's part of the results.
    own: Zeroizing<Vec<u64>>,
    ring_bits: u32,
}

impl AwaitedAnswer for Requested {
    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let products = self.products.receive(channel)?;
        let mut results = vec![0; self.own.len()];
        channel.recv_residues(RESULTS, modulus::K, P, &mut results)?;
        let wrap = 1 << self.ring_bits;
        let own = self.own.iter().zip(products.iter());
        for (result, (&own, &both)) in results.iter_mut().zip(own) {
            let ours = modulus::add(own, modulus::mul(both, wrap));
            *result = modulus::add(*result, ours);
        }
        Ok(results)
    }
}
