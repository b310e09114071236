//! A bundle that is being used up.

use crate::record::Entry;
use std::io::{self, Read};

/// The material of a bundle that is being used up. What was not read is wiped or can be opened by
/// no one once it is dropped.
pub trait Material: Read + Send {
    /// Returns the number of bytes not yet read.
    fn left(&self) -> u64;
}

/// A bundle that is being used up: its material, to be read once.
///
/// When this exists, the store has noted that the bundle is spent, as durably as it keeps bundles,
/// and has forgotten what the bundle's key was derived from (the embedded engine has overwritten
/// the salt of the file and unlinked it; the shared one has deleted half of the salt and deletes
/// the object, with the other half, when this is dropped). Only this handle can read it. It cannot
/// be cloned; its key is wiped when it is dropped.
pub struct Spent {
    entry: Entry,
    attachment: Vec<u8>,
    material: Box<dyn Material>,
}

impl Spent {
    /// Gives a bundle out, as a store does once it has marked it as spent.
    pub fn new(entry: Entry, attachment: Vec<u8>, material: impl Material + 'static) -> Self {
        Self {
            entry,
            attachment,
            material: Box::new(material),
        }
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
