//! The server's side of classed look-ups: that of every class in turn.

use super::ClassedLookups;
use crate::error::{Result, expect_count};
use crate::flags::FlagShares;
use crate::stop::{AwaitedAnswer, ServerStop, ServerTools, Stop};
use primer_wire::Channel;
use std::io::{Read, Write};
use std::ops::Range;
use zeroize::Zeroizing;

impl ServerStop for ClassedLookups {
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let mut classes = self.classes.iter();
        classes.try_for_each(|class| ServerStop::prepare(&class.lookups, tools, sink))
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        let waiting = self.classes.iter().map(|class| {
            let waiting = class.lookups.request(channel, stored, &class.of(shares))?;
            let places = class.places.clone();
            Ok(OfClass { places, waiting })
        });
        Ok(Box::new(Requested {
            elements: self.elements,
            flags: self.flags(),
            waiting: waiting.collect::<Result<_>>()?,
        }))
    }
}

/// A server that has asked for all classes.
struct Requested {
    elements: usize,
    flags: usize,
    waiting: Vec<OfClass>,
}

/// A class that was asked for, and the places of its elements.
struct OfClass {
    places: Vec<Range<usize>>,
    waiting: Box<dyn AwaitedAnswer>,
}

impl AwaitedAnswer for Requested {
    fn flags(&mut self) -> FlagShares {
        let mut flags = FlagShares::with_capacity(self.flags);
        for class in &mut self.waiting {
            flags.append(&class.waiting.flags());
        }
        flags
    }

    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let mut results = Zeroizing::new(vec![0; self.elements]);
        for OfClass { places, waiting } in self.waiting {
            let part = Zeroizing::new(waiting.receive(channel)?);
            let mut part = &part[..];
            for place in places {
                let (now, later) = part.split_at(place.len());
                results[place].copy_from_slice(now);
                part = later;
            }
        }
        Ok(std::mem::take(&mut *results))
    }
}
