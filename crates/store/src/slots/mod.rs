//! Bundles in a fixed number of files that are open all the time: what a browser keeps for a page.
//!
//! A page's worker can read and write files without waiting for an event loop, but not open them.
//! So a page opens a number of them before the client starts ([`Slots`]), each for itself alone:
//! a second tab cannot open the same, and so cannot spend the same bundle. The first two hold the
//! key and the tombstones (`index`), each of the others at most one bundle (`slot`).
//!
//! The rules are those of a disk. A bundle is written and flushed before the header that makes it
//! one. Spending overwrites the header, with the salt that the bundle's key is derived from, and
//! flushes, before a byte of material is given out: after a crash the bundle is either there and
//! unused, or cannot be opened by anyone. Facts and material are authenticated; a slot that is not
//! what was written is emptied.

mod index;
mod material;
mod slot;
mod turns;

pub use turns::Turns;

use crate::bundle_store::BundleStore;
use crate::draft::Draft;
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::quota::{Bounds, Quota, Reservation};
use crate::record::{Entry, Meta, Removed};
use crate::seal::{BundleKey, Opener, SALT_BYTES, SealError, Sealer};
use crate::shelf::{Shelf, Stored};
use crate::spent::Spent;
use index::{INDEX_SLOTS, Index};
use material::{Drafted, Opened};
use slot::{Kept, Place, Reading, Writing};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// Files, by number. They are open, and for this process alone.
pub trait Slots: Send + Sync {
    /// Returns how many there are.
    fn count(&self) -> usize;

    /// Returns the bytes of one.
    ///
    /// # Errors
    /// What the system says; so of all that follow.
    fn bytes(&self, slot: usize) -> io::Result<u64>;

    /// Fills `out` with the bytes from `at` on; `UnexpectedEof` if there are fewer.
    fn read(&self, slot: usize, out: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of some bytes at a place.
    fn write(&self, slot: usize, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Cuts off what is behind the first `bytes` bytes.
    fn truncate(&self, slot: usize, bytes: u64) -> io::Result<()>;

    /// Makes what was written durable.
    fn flush(&self, slot: usize) -> io::Result<()>;
}

/// Bundles in slots.
#[derive(Clone)]
pub struct SlotStore(Arc<Shared>);

struct Shared {
    slots: Arc<dyn Slots>,
    shelf: Mutex<(Shelf<Kept>, Index)>,
    free: Arc<Mutex<Vec<usize>>>,
    quota: Arc<Quota>,
    limit: u64,
    key: Zeroizing<[u8; 32]>,
}

fn fault(action: &'static str, slot: usize) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::File {
        action,
        path: name(slot),
        source,
    }
}

fn name(slot: usize) -> PathBuf {
    format!("file {slot} of the page").into()
}

impl SlotStore {
    /// Opens a store that takes at most `limit` bytes of bundles. Files that are no store become an
    /// empty one.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn open(slots: Arc<dyn Slots>, limit: u64) -> Result<Self> {
        let (index, past) = Index::open(&*slots)?;
        let key = index.key.clone();
        let mut shelf = Shelf {
            past: past.into_iter().map(|past| (past.id, past)).collect(),
            ..Shelf::default()
        };
        let free = Arc::<Mutex<Vec<usize>>>::default();
        for number in INDEX_SLOTS..slots.count() {
            let place = Place::new(&slots, &free, number);
            // What is no bundle gives its place back.
            if let Some(mut stored) = slot::open(place, &key) {
                match shelf.check_free(stored.entry.id) {
                    Ok(()) => shelf.put(stored),
                    Err(_) => stored.material.blank()?,
                }
            }
        }
        Ok(Self(Arc::new(Shared {
            slots,
            shelf: Mutex::new((shelf, index)),
            free,
            quota: Arc::default(),
            limit,
            key,
        })))
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, (Shelf<Kept>, Index)> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down the tombstones, if there is room: a bundle whose slot was overwritten is gone
    /// without one, and the next that is written has all of them.
    fn note(&self, shelf: &Shelf<Kept>, index: &mut Index) {
        let _ = index.write(&*self.slots, shelf.past.values());
    }

    fn take_place(&self) -> Result<Place> {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let number = free().pop();
        let number = number.ok_or(StoreError::Places {
            places: self.slots.count() - INDEX_SLOTS,
        })?;
        Ok(Place::new(&self.slots, &self.free, number))
    }
}

impl BundleStore for SlotStore {
    fn draft(&self, meta: Meta) -> Result<Draft> {
        meta.check()?;
        self.0.shelf().0.check_free(meta.id)?;
        let place = self.0.take_place()?;
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        getrandom::fill(&mut *salt).expect("the system provides randomness");
        let key = BundleKey::of_slot(&self.0.key, meta.id, &salt);
        let label = name(place.number);
        let pending = Drafted {
            store: Arc::clone(&self.0),
            salt,
            sealer: Sealer::new(Writing::new(place), key),
        };
        Ok(Draft::new(meta, label, pending))
    }

    fn spend(&self, id: BundleId, peer: &[u8; 32], now: u64) -> Result<Spent> {
        let mut guard = self.0.shelf();
        let (shelf, index) = &mut *guard;
        let mut stored = shelf.spend(id, peer, now)?;
        // The salt is in memory alone from here on.
        stored.material.blank()?;
        self.0.note(shelf, index);
        let Stored {
            entry,
            attachment,
            material,
        } = stored;
        let key = BundleKey::of_slot(&self.0.key, id, &material.salt);
        let sealed = material.sealed;
        let opened = Opener::new(Reading::new(material.place, sealed), key, sealed);
        let damaged = |error: SealError| StoreError::Damaged {
            id,
            fault: error.to_string(),
        };
        Ok(Spent::new(
            entry,
            attachment,
            Opened(opened.map_err(damaged)?),
        ))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(self.0.shelf().0.list())
    }

    fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        let stored = self.0.shelf();
        Ok(stored.0.bundles.get(&id).map(|b| b.entry.clone()))
    }

    fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        let stored = self.0.shelf();
        Ok(stored.0.bundles.get(&id).map(|b| b.attachment.clone()))
    }

    fn reserve(&self, peer: &[u8; 32], needed: u64, bounds: Bounds) -> Result<Reservation> {
        let bounds = Bounds {
            total: bounds.total.min(self.0.limit),
            ..bounds
        };
        let usage = || Ok(self.0.shelf().0.usage());
        Quota::reserve(&self.0.quota, peer, needed, bounds, usage, |_| Ok(()))
    }

    fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        let mut guard = self.0.shelf();
        let (shelf, index) = &mut *guard;
        shelf.delete(id, now)?.material.blank()?;
        self.0.note(shelf, index);
        Ok(())
    }

    fn delete_expired(&self, now: u64) -> Result<Removed> {
        let mut guard = self.0.shelf();
        let (shelf, index) = &mut *guard;
        let (removed, expired) = shelf.delete_expired(now);
        for mut stored in expired {
            stored.material.blank()?;
        }
        if removed != Removed::default() {
            self.0.note(shelf, index);
        }
        Ok(removed)
    }
}
