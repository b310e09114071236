//! The client's side of look-ups: it knows its share of the index offline, and answers online.

use super::{Lookups, negated_if, ones, packed};
use crate::error::{Result, StopsError, expect_count, unusable};
use crate::flags::FlagShares;
use crate::stop::{ClientStop, ClientTools, Owing, Stop};
use primer_net::Channel;
use primer_net::kind::lookup::{CHOICES, DELTAS, PRODUCTS};
use primer_ot::{Bits, PadReceiver, PadSender, onehot};
use primer_ring::modulus::{self, P};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for Lookups {
    /// Needs no masks before it runs.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let store = |source| StopsError::Store {
            stop: self.name(),
            source,
        };
        let ClientTools {
            channel,
            labels,
            transfers,
            ..
        } = tools;
        // Ring elements: a share that does not fit is cut to one.
        let mask = self.shape.entries() as u64 - 1;
        let indices = shares.iter().map(|share| (share & mask) as u16);
        let indices = Zeroizing::new(indices.collect::<Vec<_>>());
        let mut counts = Zeroizing::new(Vec::with_capacity(self.elements));
        onehot::send(transfers, channel, self.shape, &indices, |_, strings| {
            let strings_of = strings.chunks_exact(self.shape.vector_bytes());
            counts.extend(strings_of.map(ones));
            sink.write_all(strings).map_err(store)
        })?;
        // Second bit of the number of ones, plus one.
        let signs = Bits::from_fn(self.elements, |i| (counts[i] + 1) >> 1 & 1 == 1);
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
    ) -> Result<Box<dyn Owing>> {
        expect_count(self.name(), "late shares", 0, late.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let (n, results) = (self.elements, self.outputs());
        let damaged = |error| unusable(self.name(), error);
        let mut deltas = vec![0; n];
        channel.recv_residues(DELTAS, self.index_bits, 1 << self.index_bits, &mut deltas)?;
        let deltas: Vec<u16> = deltas.iter().map(|&delta| delta as u16).collect();
        let (sums, flags) = self.selected(stored, &deltas)?;
        let chooses = self.read(stored, packed(n, 1) + packed(results, modulus::K))?;
        let chooses = PadReceiver::from_bytes(&chooses, n, self.each(), P).map_err(damaged)?;
        let sends = self.read(stored, packed(2 * results, modulus::K))?;
        let sends = PadSender::from_bytes(&sends, n, self.each(), P).map_err(damaged)?;
        let mut products = vec![0; results];
        channel.recv_residues(PRODUCTS, modulus::K, P, &mut products)?;
        let answers = (0..results).flat_map(|i| {
            let own = negated_if(chooses.mask(i), sums[i]);
            let g = modulus::sub(chooses.product(i, products[i]), masks[i]);
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
    /// Two for each result. They are masked already.
    answers: Vec<u64>,
    flags: FlagShares,
}

impl Owing for Listened {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        channel.send_residues(CHOICES, modulus::K, self.answers.iter().copied())?;
        channel.flush()?;
        Ok(Vec::new())
    }
}
