//! A bundle that is being used up.

use crate::record::Entry;
use crate::seal::Opener;
use std::fs::File;
use std::io::{self, Read};

/// A bundle that is being used up: its material, to be read once.
///
/// When this exists, the store has durably noted that the bundle is spent, the salt of its file is
/// overwritten and the file no longer has a name: only this handle can read it. It cannot be
/// cloned; its key is wiped when it is dropped.
pub struct Spent {
    entry: Entry,
    attachment: Vec<u8>,
    material: Opener<File>,
}

impl Spent {
    pub(crate) fn new(entry: Entry, attachment: Vec<u8>, material: Opener<File>) -> Self {
        Self {
            entry,
            attachment,
            material,
        }
    }

    /// What the bundle was for.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// What was stored beside it.
    pub fn attachment(&self) -> &[u8] {
        &self.attachment
    }

    /// Bytes of material not yet read.
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
