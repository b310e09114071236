//! Whether the place of the blobs accepts writes, and how much room it has.
//!
//! That it can be listed, which the keeper tries at every beat, does not say so: a disk may be full
//! and a bucket's key may be read-only. For the database the lease says it, since renewing it is a
//! commit; here a small object is written and deleted now and then. All replicas use one name for
//! it, so that those that die in between leave at most one.

use super::blobs::Blobs;
use super::core::lock;
use crate::error::Result;
use crate::space;
use std::time::{Duration, Instant};

/// How often it is tried while it works; while it does not, every call tries it.
const EVERY: Duration = Duration::from_secs(10);

const NAME: &str = "probe";

impl Blobs {
    /// Writes and deletes a small object, unless that worked a moment ago.
    pub(super) fn try_writing(&self) -> Result<()> {
        let mut worked = lock(&self.worked);
        if worked.is_some_and(|at| at.elapsed() < EVERY) {
            return Ok(());
        }
        *worked = None;
        self.wait(async {
            self.put(NAME, &[0; 16]).await?;
            self.delete(NAME).await
        })??;
        *worked = Some(Instant::now());
        Ok(())
    }

    /// Returns the bytes that are free; none if it is not a directory of this machine.
    pub(super) fn free(&self) -> Result<Option<u64>> {
        let free = self.directory.as_deref().map(space::free);
        Ok(free.transpose()?.flatten())
    }

    /// Checks that `needed` bytes fit, as far as this machine can know.
    pub(super) fn check_room(&self, needed: u64) -> Result<()> {
        match &self.directory {
            Some(directory) => space::check_bundles(directory, needed),
            None => Ok(()),
        }
    }
}
