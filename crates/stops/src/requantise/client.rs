//! The client's side of a requantisation: the sender of its transfers.

use super::Requantise;
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_ot::{ProductAnswering, ProductSender};
use primer_ring::modulus::{self, P};
use primer_wire::Channel;
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
        // `b - β·2^m - r`.
        let offsets = shares.iter().zip(masks).map(|(&b, &r)| {
            let wrapped = modulus::sub(b & (wrap - 1), wrap & top(b));
            modulus::sub(wrapped, r)
        });
        let offsets = Zeroizing::new(offsets.collect::<Vec<_>>());
        let messages = (&offsets[..], &differences[..]);
        let products = ProductSender::prepare(tools.transfers, tools.channel, messages, P)?;
        material::keep(self.name(), sink, &products.into_bytes())
    }

    /// Takes the server's choices. The masks went into the offsets when the stop was prepared.
    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>> {
        expect_count(self.name(), "late shares", 0, late.len())?;
        expect_count(self.name(), "masks", self.elements, masks.len())?;
        let bytes = material::take(self.name(), stored, self.stored().client)?;
        let products = ProductSender::from_bytes(&bytes, self.elements, P)
            .map_err(|error| unusable(self.name(), error))?;
        Ok(Box::new(Listened(products.listen(channel)?)))
    }
}

/// A client that has the server's choices.
struct Listened(ProductAnswering);

impl PendingAnswer for Listened {
    fn answers(&self) -> Option<Zeroizing<Vec<u64>>> {
        Some(Zeroizing::new(self.0.answers().collect()))
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        self.0.answer(channel)?;
        Ok(Vec::new())
    }
}
