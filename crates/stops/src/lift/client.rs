//! The client's side of a lift: the sender of its transfers.

use super::{Lift, Lifted, both, second_part};
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_ot::{Bits, PadSender};
use primer_ring::modulus::{self, K, P};
use primer_ring::pack::{pack, unpack};
use primer_wire::Channel;
use primer_wire::kind::lift::{CHOICES, TURNED};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for Lift {
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        expect_count(self.name(), "masks", self.elements, masks.len())?;
        let ClientTools {
            channel, transfers, ..
        } = tools;
        let pads = PadSender::prepare(transfers, channel, self.elements, 1, P)?;
        // `b - β·2^m - r0` and `b - r0`, under their pads.
        let each = shares.iter().zip(masks).enumerate();
        let messages = each.flat_map(|(i, (&b, &r))| {
            pads.choice(i, both(self.ring_bits, b).map(|b| modulus::sub(b, r)))
        });
        let messages: Vec<u64> = messages.collect();
        channel.send_residues(CHOICES, K, messages.iter().copied())?;
        channel.flush()?;
        // Reserved at once: a buffer that grows would leave copies behind.
        let mut kept = Zeroizing::new(Vec::with_capacity(self.stored().client as usize));
        let ring = (1 << self.ring_bits) - 1;
        pack(shares.iter().map(|b| b & ring), self.ring_bits, &mut kept);
        material::keep(self.name(), sink, &kept)
    }

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
        let mut shares = Zeroizing::new(vec![0; self.elements]);
        unpack(&bytes, self.ring_bits, 1 << self.ring_bits, &mut shares)
            .map_err(|error| unusable(self.name(), error))?;
        let mut turned = vec![0; self.elements.div_ceil(8)];
        channel.recv_exact(TURNED, &mut turned)?;
        let turned = Bits::from_bytes(turned, self.elements)?;
        for (i, (share, &mask)) in shares.iter_mut().zip(masks).enumerate() {
            let second = second_part(self.ring_bits, *share, mask);
            // What is turned is public.
            *share = match turned.get(i) {
                true => modulus::add(mask, second),
                false => mask,
            };
        }
        Ok(Box::new(Heard(Some(Lifted { shares, turned }))))
    }
}

/// A client that has its shares and owes no answer.
struct Heard(Option<Lifted>);

impl PendingAnswer for Heard {
    fn lifted(&mut self) -> Option<Lifted> {
        self.0.take()
    }

    fn answer(self: Box<Self>, _: &mut Channel) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }
}
