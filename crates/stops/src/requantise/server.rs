//! The server's side of a requantisation: the receiver of its transfers.

use super::{Requantise, lifted};
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_ot::{Bits, ProductReceiver, ProductWaiting};
use primer_ring::modulus::{self, P};
use primer_wire::Channel;
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ServerStop for Requantise {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            transfers,
            rng,
            ..
        } = tools;
        let products = ProductReceiver::prepare(transfers, channel, *rng, self.elements, P)?;
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
        let products = ProductReceiver::from_bytes(&bytes, self.elements, P)
            .map_err(|error| unusable(self.name(), error))?;
        let m = self.ring_bits;
        let choices = Bits::from_fn(shares.len(), |i| lifted(shares[i], m).0 >> (m - 1) == 1);
        let own = shares.iter().map(|&a| {
            let (a, offset) = lifted(a, m);
            modulus::sub(a, offset)
        });
        Ok(Box::new(Requested {
            own: Zeroizing::new(own.collect()),
            products: products.request(channel, &choices)?,
        }))
    }
}

/// A server that has sent its choices.
struct Requested {
    products: ProductWaiting,
    /// The server's part of the results.
    own: Zeroizing<Vec<u64>>,
}

impl AwaitedAnswer for Requested {
    fn provisional(&self) -> Option<Zeroizing<Vec<u64>>> {
        let shares = self.own.iter().zip(self.products.provisional());
        let shares = shares.map(|(&a, share)| modulus::add(a, share));
        Some(Zeroizing::new(shares.collect()))
    }

    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let products = self.products.receive(channel)?;
        let results = self.own.iter().zip(products.iter());
        Ok(results
            .map(|(&a, &product)| modulus::add(a, product))
            .collect())
    }
}
