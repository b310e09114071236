//! The material of a bundle on its way into a slot, and out of one.

use super::Shared;
use super::slot::{self, HEADER_BYTES, Kept, Reading, Writing};
use crate::draft::Pending;
use crate::error::{Result, StoreError};
use crate::record::{Entry, Meta};
use crate::seal::{Opener, SALT_BYTES, Sealer};
use crate::shelf::Stored;
use crate::spent::Material;
use std::io::{self, Read, Write};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A draft.
pub(super) struct Drafted {
    pub(super) store: Arc<Shared>,
    pub(super) salt: Zeroizing<[u8; SALT_BYTES]>,
    pub(super) sealer: Sealer<Writing>,
}

impl Write for Drafted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sealer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pending for Drafted {
    fn commit(self: Box<Self>, meta: &Meta) -> Result<()> {
        let id = meta.id;
        let failed = |error: io::Error| StoreError::Draft {
            id,
            fault: error.to_string(),
        };
        let (writing, plain) = self.sealer.finish().map_err(failed)?;
        let Writing { place, at } = writing;
        let sealed = at - HEADER_BYTES as u64;
        let entry = Entry::of(meta, plain, at);
        let mut guard = self.store.shelf();
        guard.0.check_free(id)?;
        let mut stored = Stored {
            entry,
            attachment: meta.attachment.clone(),
            material: Kept {
                place,
                salt: self.salt,
                sealed,
            },
        };
        slot::make(&mut stored, &self.store.key)?;
        guard.0.put(stored);
        Ok(())
    }
}

/// The material of a bundle that is spent.
pub(super) struct Opened(pub(super) Opener<Reading>);

impl Read for Opened {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Material for Opened {
    fn left(&self) -> u64 {
        self.0.left()
    }
}
