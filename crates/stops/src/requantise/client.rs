//! The client's side of a requantisation: the sender of its transfers.

use super::{Requantise, packed};
use crate::error::{Result, StopsError, expect_count, unusable};
use crate::stop::{ClientStop, ClientTools, Owing, Stop};
use primer_net::Channel;
use primer_ot::{ProductAnswering, ProductSender};
use primer_ring::modulus::{self, P};
use primer_ring::pack::{pack, unpack};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for Requantise {
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        expect_count(self.name(), "masks", self.elements, masks.len())?;
        let wrap = 1u64 << self.ring_bits;
        let top = |share: u64| (share >> (self.ring_bits - 1) & 1).wrapping_neg();
        let differences = shares.iter().map(|&b| modulus::neg(wrap & !top(b)));
        let differences = Zeroizing::new(differences.collect::<Vec<_>>());
        let products =
            ProductSender::prepare(tools.transfers, tools.channel, &differences, P)?.into_bytes();
        // `b - β·2^m - r`.
        let offsets = shares.iter().zip(masks).map(|(&b, &r)| {
            let wrapped = modulus::sub(b & (wrap - 1), wrap & top(b));
            modulus::sub(wrapped, r)
        });
        // Reserved at once: a buffer that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.stored().client as usize));
        bytes.extend_from_slice(&products);
        pack(offsets, modulus::K, &mut bytes);
        sink.write_all(&bytes).map_err(|source| StopsError::Store {
            stop: self.name(),
            source,
        })
    }

    /// The masks went into the offsets when the stop was prepared.
    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        _masks: &[u64],
    ) -> Result<Box<dyn Owing>> {
        let mut bytes = Zeroizing::new(vec![0; self.stored().client as usize]);
        let read = stored.read_exact(&mut bytes);
        read.map_err(|error| unusable(self.name(), error))?;
        let (products, rest) = bytes.split_at(packed(2 * self.elements) as usize);
        let mut offsets = Zeroizing::new(vec![0; self.elements]);
        unpack(rest, modulus::K, P, &mut offsets).map_err(|error| unusable(self.name(), error))?;
        let products = ProductSender::from_bytes(products, self.elements, P)
            .map_err(|error| unusable(self.name(), error))?;
        Ok(Box::new(Listened {
            products: products.listen(channel)?,
            offsets,
        }))
    }
}

/// A client that has the server's choices.
struct Listened {
    products: ProductAnswering,
    offsets: Zeroizing<Vec<u64>>,
}

impl Owing for Listened {
    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        self.products.answer(channel, &self.offsets)?;
        Ok(Vec::new())
    }
}
