//! Bundles whose material is sealed on its way to a disk or an object store, and opened on its way
//! back: what the engines for directories and for replicas have in common.
//!
//! Sealing and writing happen in a thread of their own (`background`).

use crate::background::Background;
use crate::draft::{Draft, Pending};
use crate::error::{Result, StoreError};
use crate::files::StoreKey;
use crate::record::{Entry, Meta};
use crate::seal::{BundleKey, Chunks, HEADER_BYTES, MAGIC, Opener, SALT_BYTES};
use crate::spent::{Material, Spent};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Where the sealed bytes of a draft go. A bulk that is dropped unpublished leaves nothing behind.
pub(crate) trait Bulk: Write + Send {
    /// Starts to bring what was written so far to durable storage, if that can be done before the
    /// end: then less is left to wait for.
    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes what was written durable, then the bundle visible, which has `bytes` bytes of
    /// material.
    fn publish(self: Box<Self>, meta: &Meta, bytes: u64) -> Result<()>;
}

/// Begins a draft with a header whose salt is fresh. `other_salt` is kept elsewhere: the key can be
/// derived only from both.
pub(crate) fn draft(
    meta: Meta,
    store_key: &StoreKey,
    other_salt: Option<&[u8; SALT_BYTES]>,
    place: PathBuf,
    mut bulk: Box<dyn Bulk>,
) -> Result<Draft> {
    let mut salt = Zeroizing::new([0; SALT_BYTES]);
    getrandom::fill(&mut *salt).expect("the operating system provides randomness");
    let mut header = Zeroizing::new([0; HEADER_BYTES]);
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..].copy_from_slice(&*salt);
    bulk.write_all(&*header)
        .map_err(StoreError::file("write", &place))?;
    let key = BundleKey::derive_from(store_key, meta.id, &salt, other_salt);
    let sealing = Sealing {
        background: Background::new(Chunks::new(bulk, key)),
        place: place.clone(),
    };
    Ok(Draft::new(meta, place, sealing))
}

/// The bulk of a draft.
struct Sealing {
    background: Background,
    place: PathBuf,
}

impl Write for Sealing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.background.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pending for Sealing {
    fn commit(self: Box<Self>, meta: &Meta) -> Result<()> {
        let written = self.background.finish();
        let (bulk, bytes) = written.map_err(StoreError::file("write", &self.place))?;
        bulk.publish(meta, bytes)
    }
}

/// Where sealed bytes come from.
pub(crate) type SealedReader = Box<dyn Read + Send>;

/// Gives a bundle out that was marked as spent: its sealed bytes, and the only key to them.
pub(crate) fn spent(
    entry: Entry,
    attachment: Vec<u8>,
    key: BundleKey,
    sealed: u64,
    source: SealedReader,
) -> Result<Spent> {
    let id = entry.id;
    let material = Opener::new(source, key, sealed).map_err(|error| StoreError::Damaged {
        id,
        fault: error.to_string(),
    })?;
    Ok(Spent::new(entry, attachment, material))
}

impl Material for Opener<SealedReader> {
    fn left(&self) -> u64 {
        Opener::left(self)
    }
}
