//! A bundle that is being used up.

use crate::error::{Result, StoreError};
use crate::record::Entry;
use crate::seal::{BundleKey, Opener};
use std::io::{self, Read};

/// A bundle that is being used up: its material, to be read once.
///
/// When this exists, the store has durably noted that the bundle is spent, and has forgotten what
/// the bundle's key was derived from (the embedded engine has overwritten the salt of the file and
/// unlinked it; the shared one has deleted half of the salt and deletes the object, with the other
/// half, when this is dropped). Only this handle can read it. It cannot be cloned; its key is wiped
/// when it is dropped.
pub struct Spent {
    entry: Entry,
    attachment: Vec<u8>,
    material: Opener<Source>,
}

/// Where sealed bytes come from.
pub(crate) type Source = Box<dyn Read + Send>;

impl Spent {
    pub(crate) fn new(
        entry: Entry,
        attachment: Vec<u8>,
        key: BundleKey,
        sealed: u64,
        source: Source,
    ) -> Result<Self> {
        let material = Opener::new(source, key, sealed).map_err(|e| StoreError::Damaged {
            id: entry.id,
            fault: e.to_string(),
        })?;
        Ok(Self {
            entry,
            attachment,
            material,
        })
    }

    /// Returns what the bundle was for.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns what was stored beside it.
    pub fn attachment(&self) -> &[u8] {
        &self.attachment
    }

    /// Returns the number of bytes of material not yet read.
    pub fn left(&self) -> u64 {
        self.material.left()
    }
}

impl Read for Spent {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let id = self.entry.id;
        self.material
            .read(out)
            .map_err(|e| io::Error::new(e.kind(), format!("bundle {id}: {e}")))
    }
}
