//! The client's side of classed look-ups: that of every class in turn.

use super::ClassedLookups;
use crate::error::{Result, expect_count};
use crate::flags::FlagShares;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_wire::Channel;
use std::io::{Read, Write};

impl ClientStop for ClassedLookups {
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        for class in &self.classes {
            let [shares, masks] = [shares, masks].map(|all| class.of(all));
            ClientStop::prepare(&class.lookups, tools, &shares, &masks, sink)?;
        }
        Ok(())
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
        let pending = self.classes.iter().map(|class| {
            let masks = class.of(masks);
            class.lookups.listen(channel, stored, &[], &masks)
        });
        Ok(Box::new(Listened {
            flags: self.flags(),
            pending: pending.collect::<Result<_>>()?,
        }))
    }
}

/// A client that has the requests of all classes.
struct Listened {
    flags: usize,
    pending: Vec<Box<dyn PendingAnswer>>,
}

impl PendingAnswer for Listened {
    fn flags(&mut self) -> FlagShares {
        let mut flags = FlagShares::with_capacity(self.flags);
        for pending in &mut self.pending {
            flags.append(&pending.flags());
        }
        flags
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        for pending in self.pending {
            pending.answer(channel)?;
        }
        Ok(Vec::new())
    }
}
