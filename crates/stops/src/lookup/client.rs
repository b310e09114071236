//! The client's side of look-ups: it knows its share of the index offline, and answers online.

use super::{Lookups, negated_if, ones, packed};
use crate::error::{Result, StopError, expect_count, unusable};
use crate::flags::FlagShares;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_ot::{Bits, PadReceiver, PadSender, onehot};
use primer_ring::modulus::{self, P};
use primer_wire::Channel;
use primer_wire::kind::lookup::{CHOICES, DELTAS, PRODUCTS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for Lookups {
    /// Prepares strings and pads, for which it needs no masks yet.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let store = |source| StopError::Store {
            stop: self.name(),
            source,
        };
        let ClientTools {
            channel,
            labels,
            transfers,
            rng,
        } = tools;
        // Ring elements: a share that does not fit is cut to one.
        let mask = self.shape.entries() as u64 - 1;
        let indices = shares.iter().map(|share| (share & mask) as u16);
        let indices = Zeroizing::new(indices.collect::<Vec<_>>());
        let mut counts = Zeroizing::new(Vec::with_capacity(self.elements));
        let (both, shape) = ((&mut **transfers, &mut **labels), self.shape);
        onehot::with_indices(both, channel, shape, &indices, *rng, |_, strings| {
            let strings_of = strings.chunks_exact(self.shape.vector_bytes());
            counts.extend(strings_of.map(ones));
            sink.write_all(strings).map_err(store)
        })?;
        // Second bit of the number of ones, plus one; then the same where elements may not count.
        let n = self.elements;
        let signs = Bits::from_fn(self.to_client() * n, |i| {
            let sign = (counts[i % n] + 1) >> 1 & 1 == 1;
            sign ^ (i >= n && self.top_bit(shares[i % n]))
        });
        let chooses = PadReceiver::prepare(labels, channel, signs, self.each(), P)?;
        let sends = PadSender::prepare(transfers, channel, self.elements, self.each(), P)?;
        sink.write_all(&chooses.into_bytes()).map_err(store)?;
        sink.write_all(&sends.into_bytes()).map_err(store)
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>> {
        expect_count(self.name(), "late shares", 0, late.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let (n, results) = (self.elements, self.outputs());
        let damaged = |error| unusable(self.name(), error);
        let (each, down) = (self.each(), self.to_client());
        let mut sent = vec![0; n];
        channel.recv_residues(DELTAS, self.share_bits(), 1 << self.share_bits(), &mut sent)?;
        let mask = self.shape.entries() as u64 - 1;
        let deltas: Vec<u16> = sent.iter().map(|&delta| (delta & mask) as u16).collect();
        let (sums, flags) = self.selected(stored, &deltas)?;
        let chooses = packed(down * n, 1) + packed(down * results, modulus::K);
        let chooses = self.read(stored, chooses)?;
        let chooses = PadReceiver::from_bytes(&chooses, down * n, each, P).map_err(damaged)?;
        let sends = self.read(stored, packed(2 * results, modulus::K))?;
        let sends = PadSender::from_bytes(&sends, n, each, P).map_err(damaged)?;
        let mut products = vec![0; down * results];
        channel.recv_residues(PRODUCTS, modulus::K, P, &mut products)?;
        let answers = (0..results).flat_map(|i| {
            let mut own = negated_if(chooses.mask(i), sums[i]);
            let mut g = modulus::sub(chooses.product(i, products[i]), masks[i]);
            if self.counted {
                let second = results + i;
                g = modulus::add(g, chooses.product(second, products[second]));
                // The two choices differ by π, and what the server sent is κ.
                let kappa = u64::from(self.top_bit(sent[i / each])).wrapping_neg();
                own &= chooses.mask(i) ^ chooses.mask(second) ^ kappa;
            }
            sends.choice(i, [modulus::sub(g, own), modulus::add(g, own)])
        });
        Ok(Box::new(Listened {
            answers: answers.collect(),
            flags,
        }))
    }
}

/// A client that has the server's shifts and products.
struct Listened {
    /// Two for each result, masked already.
    answers: Vec<u64>,
    flags: FlagShares,
}

impl PendingAnswer for Listened {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        channel.send_residues(CHOICES, modulus::K, self.answers.iter().copied())?;
        channel.flush()?;
        Ok(Vec::new())
    }
}
