//! The server's side of a lift: the receiver of its transfers.

use super::{Lift, Lifted};
use crate::error::{Result, expect_count, unusable};
use crate::material;
use crate::requantise::lifted;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_ot::{Bits, PadReceiver};
use primer_ring::modulus::{self, K, P};
use primer_ring::pack::{pack, unpack};
use primer_wire::Channel;
use primer_wire::kind::lift::{CHOICES, TURNED};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ServerStop for Lift {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            transfers,
            rng,
            ..
        } = tools;
        let n = self.elements;
        let choices = Bits::random(n, *rng);
        // Reserved at once: a buffer that grows would leave copies behind.
        let mut kept = Zeroizing::new(Vec::with_capacity(self.stored().server as usize));
        kept.extend_from_slice(choices.bytes());
        let pads = PadReceiver::prepare(transfers, channel, choices, 1, P)?;
        let mut messages = Zeroizing::new(vec![0; 2 * n]);
        channel.recv_residues(CHOICES, K, P, &mut messages)?;
        let (pairs, _) = messages.as_chunks::<2>();
        let chosen = pairs
            .iter()
            .enumerate()
            .map(|(i, &pair)| pads.choice(i, pair));
        pack(chosen, K, &mut kept);
        material::keep(self.name(), sink, &kept)
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>> {
        expect_count(self.name(), "shares", self.elements, shares.len())?;
        let bytes = material::take(self.name(), stored, self.stored().server)?;
        let (m, n) = (self.ring_bits, self.elements);
        let (choices, kept) = bytes.split_at(n.div_ceil(8));
        let choices =
            Bits::from_bytes(choices.to_vec(), n).map_err(|error| unusable(self.name(), error))?;
        let mut own = Zeroizing::new(vec![0; n]);
        unpack(kept, K, P, &mut own).map_err(|error| unusable(self.name(), error))?;
        let tops = Bits::from_fn(n, |i| lifted(shares[i], m).0 >> (m - 1) == 1);
        let turned = tops.xor(&choices)?;
        channel.send(TURNED, turned.bytes())?;
        // `a - 2^(m-2) - α·2^m ± w`.
        for (i, (own, &a)) in own.iter_mut().zip(shares).enumerate() {
            let (a, offset) = lifted(a, m);
            let wrap = a >> (m - 1) << m;
            let rest = modulus::sub(modulus::sub(a, offset), wrap);
            // What is turned is public.
            *own = match turned.get(i) {
                true => modulus::sub(rest, *own),
                false => modulus::add(rest, *own),
            };
        }
        let shares = own;
        Ok(Box::new(AwaitedLift(Some(Lifted { shares, turned }))))
    }
}

/// A server that has its shares and waits for no answer.
struct AwaitedLift(Option<Lifted>);

impl AwaitedAnswer for AwaitedLift {
    fn lifted(&mut self) -> Option<Lifted> {
        self.0.take()
    }

    fn receive(self: Box<Self>, _: &mut Channel) -> Result<Vec<u64>> {
        let shares = self.0.map(|mut lifted| std::mem::take(&mut *lifted.shares));
        Ok(shares.unwrap_or_default())
    }
}
