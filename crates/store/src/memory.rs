//! Bundles in memory: where there is no disk, or nothing is to be left on it.
//!
//! Material lies in chunks that are wiped when they have been read, or when the bundle is deleted.
//! It is not encrypted: the key would lie beside it. All bundles are lost with the process that
//! made them, and so no crash brings a spent one back; what their peer holds of them expires there.

use crate::bundle_store::BundleStore;
use crate::draft::{Draft, Pending};
use crate::error::Result;
use crate::id::BundleId;
use crate::quota::{Bounds, Quota, Reservation};
use crate::record::{Entry, Meta, Removed};
use crate::shelf::{Shelf, Stored};
use crate::spent::{Material, Spent};
use primer_ring::wipe::SecretBytes;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// What messages call the place.
const PLACE: &str = "a bundle in memory";

/// Bundles that live as long as this and its clones.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    shelf: Mutex<Shelf<Chunks>>,
    quota: Arc<Quota>,
    limit: u64,
}

impl MemoryStore {
    /// Makes an empty store that takes at most `limit` bytes of bundles.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared {
            shelf: Mutex::default(),
            quota: Arc::default(),
            limit,
        }))
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf<Chunks>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BundleStore for MemoryStore {
    fn draft(&self, meta: Meta) -> Result<Draft> {
        meta.check()?;
        self.0.shelf().check_free(meta.id)?;
        let writing = Writing {
            store: Arc::clone(&self.0),
            material: Chunks::default(),
        };
        Ok(Draft::new(meta, PLACE, writing))
    }

    fn spend(&self, id: BundleId, peer: &[u8; 32], now: u64) -> Result<Spent> {
        let Stored {
            entry,
            attachment,
            material,
        } = self.0.shelf().spend(id, peer, now)?;
        Ok(Spent::new(entry, attachment, material))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(self.0.shelf().list())
    }

    fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        let shelf = self.0.shelf();
        Ok(shelf.bundles.get(&id).map(|stored| stored.entry.clone()))
    }

    fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        let shelf = self.0.shelf();
        Ok(shelf.bundles.get(&id).map(|b| b.attachment.clone()))
    }

    fn reserve(&self, peer: &[u8; 32], needed: u64, bounds: Bounds) -> Result<Reservation> {
        let bounds = Bounds {
            total: bounds.total.min(self.0.limit),
            ..bounds
        };
        let usage = || Ok(self.0.shelf().usage());
        Quota::reserve(&self.0.quota, peer, needed, bounds, usage, |_| Ok(()))
    }

    fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        self.0.shelf().delete(id, now).map(drop)
    }

    fn delete_expired(&self, now: u64) -> Result<Removed> {
        Ok(self.0.shelf().delete_expired(now).0)
    }
}

/// Secret bytes in the order in which they were written. Chunks never grow, which would leave a
/// copy behind.
#[derive(Default)]
struct Chunks {
    chunks: VecDeque<SecretBytes>,
    /// Bytes of the first chunk that were read.
    given: usize,
    /// Bytes not yet read.
    left: u64,
}

impl Chunks {
    fn push(&mut self, bytes: &[u8]) -> usize {
        if self.chunks.back().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push_back(SecretBytes::with_capacity(CHUNK));
        }
        let last = self.chunks.back_mut().expect("just looked after");
        let taken = bytes.len().min(CHUNK - last.len());
        last.extend_from_slice(&bytes[..taken]);
        self.left += taken as u64;
        taken
    }
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(first) = self.chunks.front() else {
            return Ok(0);
        };
        let given = out.len().min(first.len() - self.given);
        out[..given].copy_from_slice(&first[self.given..self.given + given]);
        self.given += given;
        self.left -= given as u64;
        if self.given == first.len() {
            self.chunks.pop_front();
            self.given = 0;
        }
        Ok(given)
    }
}

impl Material for Chunks {
    fn left(&self) -> u64 {
        self.left
    }
}

/// A draft.
struct Writing {
    store: Arc<Shared>,
    material: Chunks,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes {
            [] => Ok(0),
            _ => Ok(self.material.push(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pending for Writing {
    fn commit(self: Box<Self>, meta: &Meta) -> Result<()> {
        let bytes = self.material.left;
        let stored = Stored {
            entry: Entry::of(meta, bytes, bytes),
            attachment: meta.attachment.clone(),
            material: self.material,
        };
        let mut shelf = self.store.shelf();
        shelf.check_free(meta.id)?;
        shelf.put(stored);
        Ok(())
    }
}
