//! Bundles in memory: where there is no disk, or nothing is to be left on it.
//!
//! Material lies in chunks that are wiped when they have been read, or when the bundle is deleted.
//! It is not encrypted: the key would lie beside it. All bundles are lost with the process that
//! made them, and so no crash brings a spent one back; what their peer holds of them expires there.

use crate::bundle_store::BundleStore;
use crate::draft::{Draft, Pending};
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::quota::{Bounds, Quota, Reservation};
use crate::record::{Entry, Fate, Meta, Past, Removed, Usage, tombstone};
use crate::spent::{Material, Spent};
use primer_ring::wipe::SecretBytes;
use std::collections::{BTreeMap, VecDeque};
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
    shelf: Mutex<Shelf>,
    quota: Arc<Quota>,
    limit: u64,
}

#[derive(Default)]
struct Shelf {
    bundles: BTreeMap<BundleId, Stored>,
    past: BTreeMap<BundleId, Past>,
}

struct Stored {
    entry: Entry,
    attachment: Vec<u8>,
    material: Chunks,
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
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usage(&self) -> Usage {
        let (mut usage, shelf) = (Usage::default(), self.shelf());
        shelf.bundles.values().for_each(|b| usage.add(&b.entry));
        usage.tombstones = shelf.past.len() as u64;
        usage
    }
}

impl Shelf {
    fn check_free(&self, id: BundleId) -> Result<()> {
        match self.bundles.contains_key(&id) || self.past.contains_key(&id) {
            true => Err(StoreError::Taken { id }),
            false => Ok(()),
        }
    }

    /// Takes a bundle out, and leaves its tombstone.
    fn bury(&mut self, id: BundleId, fate: Fate, now: u64) -> Option<Stored> {
        let stored = self.bundles.remove(&id)?;
        self.past.insert(id, tombstone(&stored.entry, fate, now));
        Some(stored)
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
        let mut shelf = self.0.shelf();
        if let Some(past) = shelf.past.get(&id).filter(|past| past.peer == *peer) {
            let (fate, at) = (past.fate, past.at);
            return Err(StoreError::Gone { id, fate, at });
        }
        let stored = shelf.bundles.get(&id);
        let stored = stored.filter(|stored| stored.entry.peer == *peer);
        let expires = stored.ok_or(StoreError::Unknown { id })?.entry.expires;
        if expires <= now {
            return Err(StoreError::Expired { id, expires, now });
        }
        let taken = shelf.bury(id, Fate::Spent, now);
        let Stored {
            entry,
            attachment,
            material,
        } = taken.expect("found a moment ago, under the same lock");
        Ok(Spent::new(entry, attachment, material))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let shelf = self.0.shelf();
        let mut entries: Vec<_> = shelf.bundles.values().map(|b| b.entry.clone()).collect();
        entries.sort_by_key(|entry| (entry.expires, entry.id));
        Ok(entries)
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
        let usage = || Ok(self.0.usage());
        Quota::reserve(&self.0.quota, peer, needed, bounds, usage, |_| Ok(()))
    }

    fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        let mut shelf = self.0.shelf();
        match (shelf.bury(id, Fate::Deleted, now), shelf.past.get(&id)) {
            (Some(_), _) => Ok(()),
            (None, Some(&Past { fate, at, .. })) => Err(StoreError::Gone { id, fate, at }),
            (None, None) => Err(StoreError::Unknown { id }),
        }
    }

    fn delete_expired(&self, now: u64) -> Result<Removed> {
        let mut shelf = self.0.shelf();
        let mut removed = Removed::default();
        let before = shelf.past.len();
        shelf.past.retain(|_, past| past.until > now);
        removed.tombstones = (before - shelf.past.len()) as u64;
        let all = shelf.bundles.values();
        let expired = all.filter(|stored| stored.entry.expires <= now);
        let expired: Vec<_> = expired.map(|stored| stored.entry.id).collect();
        for id in expired {
            let gone = shelf.bury(id, Fate::Expired, now);
            removed.bundles += 1;
            removed.bytes += gone.map_or(0, |stored| stored.entry.file_bytes);
        }
        Ok(removed)
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
        shelf.bundles.insert(meta.id, stored);
        Ok(())
    }
}
