//! The server's side: that of every class in turn.

use super::SortedLookups;
use crate::error::{Result, expect_count};
use crate::flags::FlagShares;
use crate::stop::{ServerStop, ServerTools, Stop, Waiting};
use primer_net::Channel;
use std::io::{Read, Write};
use std::ops::Range;

impl ServerStop for SortedLookups {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let mut classes = self.classes.iter();
        classes.try_for_each(|class| ServerStop::prepare(&class.lookups, tools, sink))
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn Waiting>> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        let waiting = self.classes.iter().map(|class| {
            let shares = self.of_class(class, shares);
            let waiting = class.lookups.request(channel, stored, &shares)?;
            Ok((class.columns.clone(), waiting))
        });
        Ok(Box::new(Requested {
            size: (self.rows, self.columns),
            flags: self.flags(),
            waiting: waiting.collect::<Result<_>>()?,
        }))
    }
}

/// A server that has asked for all classes.
struct Requested {
    /// Rows and columns.
    size: (usize, usize),
    flags: usize,
    waiting: Vec<(Range<usize>, Box<dyn Waiting>)>,
}

impl Waiting for Requested {
    fn flags(&mut self) -> FlagShares {
        let mut flags = FlagShares::with_capacity(self.flags);
        for (_, waiting) in &mut self.waiting {
            flags.append(&waiting.flags());
        }
        flags
    }

    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let (rows, columns) = self.size;
        let mut results = vec![0; rows * columns];
        for (some, waiting) in self.waiting {
            let part = waiting.receive(channel)?;
            let rows = results.chunks_exact_mut(columns);
            for (row, part) in rows.zip(part.chunks_exact(some.len())) {
                row[some.clone()].copy_from_slice(part);
            }
        }
        Ok(results)
    }
}
