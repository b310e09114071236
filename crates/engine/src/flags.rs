//! A party's shares of the range flags of one inference, and what they are compared with.
//!
//! The material of the comparison ([`Comparison`]) stands at the front of a bundle, right behind
//! its header: it is small, and needed after the last stop that has flags.

use crate::error::Result;
use crate::program::Program;
use crate::stored;
use primer_ring::prg::Prg;
use primer_ring::wipe::SecretBytes;
use primer_stops::flags::PendingComparison;
use primer_stops::{Comparison, FlagShares, StoredBytes};
use primer_wire::Channel;
use std::io::Read;

/// The flags of an inference under way.
pub(crate) struct Flags {
    shares: FlagShares,
    /// The number of flags that there will be.
    all: usize,
    comparison: Comparison,
    material: SecretBytes,
}

impl Flags {
    /// Reads the material of a bundle's comparison, of which `length` says how much a party has;
    /// none if the program has no flags.
    pub(crate) fn read(
        source: &mut dyn Read,
        program: &Program,
        length: impl Fn(StoredBytes) -> u64,
    ) -> Result<Option<Self>> {
        let Some(comparison) = program.comparison() else {
            return Ok(None);
        };
        let all = program.flags();
        Ok(Some(Self {
            shares: FlagShares::with_capacity(all),
            all,
            material: stored::read_bytes(source, length(comparison.stored()))?,
            comparison,
        }))
    }

    /// Adds the shares of one stop.
    pub(crate) fn append(&mut self, shares: &FlagShares) {
        self.shares.append(shares);
    }

    /// Tells whether all flags are there.
    pub(crate) fn are_complete(&self) -> bool {
        self.shares.len() == self.all
    }

    /// Asks whether any is set: the client.
    pub(crate) fn ask(self, channel: &mut Channel, rng: &mut Prg) -> Result<PendingComparison> {
        let mut stored = &self.material[..];
        Ok((self.comparison).ask(channel, &mut stored, &self.shares, rng)?)
    }

    /// Answers whether any is set: the server.
    pub(crate) fn answer(self, channel: &mut Channel) -> Result<()> {
        let mut stored = &self.material[..];
        Ok((self.comparison).answer(channel, &mut stored, &self.shares)?)
    }
}
