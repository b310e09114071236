//! What a store knows of its bundles where one process alone has them: in memory, or in slots.

use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::record::{Entry, Fate, Past, Removed, Usage, tombstone};
use std::collections::BTreeMap;

/// A bundle, and where its material is.
pub(crate) struct Stored<M> {
    pub(crate) entry: Entry,
    pub(crate) attachment: Vec<u8>,
    pub(crate) material: M,
}

/// Bundles that are there, and tombstones of others.
pub(crate) struct Shelf<M> {
    pub(crate) bundles: BTreeMap<BundleId, Stored<M>>,
    pub(crate) past: BTreeMap<BundleId, Past>,
}

impl<M> Default for Shelf<M> {
    fn default() -> Self {
        Self {
            bundles: BTreeMap::new(),
            past: BTreeMap::new(),
        }
    }
}

impl<M> Shelf<M> {
    /// Checks that a name was never given.
    pub(crate) fn check_free(&self, id: BundleId) -> Result<()> {
        match self.bundles.contains_key(&id) || self.past.contains_key(&id) {
            true => Err(StoreError::Taken { id }),
            false => Ok(()),
        }
    }

    /// Puts a bundle there.
    pub(crate) fn put(&mut self, stored: Stored<M>) {
        self.bundles.insert(stored.entry.id, stored);
    }

    /// Takes a bundle out, and leaves its tombstone.
    pub(crate) fn bury(&mut self, id: BundleId, fate: Fate, now: u64) -> Option<Stored<M>> {
        let stored = self.bundles.remove(&id)?;
        self.past.insert(id, tombstone(&stored.entry, fate, now));
        Some(stored)
    }

    /// Takes a bundle of a peer to be spent.
    pub(crate) fn spend(&mut self, id: BundleId, peer: &[u8; 32], now: u64) -> Result<Stored<M>> {
        if let Some(past) = self.past.get(&id).filter(|past| past.peer == *peer) {
            let (fate, at) = (past.fate, past.at);
            return Err(StoreError::Gone { id, fate, at });
        }
        let stored = self.bundles.get(&id);
        let stored = stored.filter(|stored| stored.entry.peer == *peer);
        let expires = stored.ok_or(StoreError::Unknown { id })?.entry.expires;
        if expires <= now {
            return Err(StoreError::Expired { id, expires, now });
        }
        let taken = self.bury(id, Fate::Spent, now);
        Ok(taken.expect("found a moment ago"))
    }

    /// Takes a bundle to be deleted.
    pub(crate) fn delete(&mut self, id: BundleId, now: u64) -> Result<Stored<M>> {
        match (self.bury(id, Fate::Deleted, now), self.past.get(&id)) {
            (Some(stored), _) => Ok(stored),
            (None, Some(&Past { fate, at, .. })) => Err(StoreError::Gone { id, fate, at }),
            (None, None) => Err(StoreError::Unknown { id }),
        }
    }

    /// Takes what has expired, and forgets old tombstones; with an account of both.
    pub(crate) fn delete_expired(&mut self, now: u64) -> (Removed, Vec<Stored<M>>) {
        let mut removed = Removed::default();
        let before = self.past.len();
        self.past.retain(|_, past| past.until > now);
        removed.tombstones = (before - self.past.len()) as u64;
        let all = self.bundles.values();
        let expired = all.filter(|stored| stored.entry.expires <= now);
        let expired: Vec<_> = expired.map(|stored| stored.entry.id).collect();
        let taken = expired
            .into_iter()
            .filter_map(|id| self.bury(id, Fate::Expired, now));
        let taken: Vec<_> = taken.collect();
        removed.bundles = taken.len() as u64;
        removed.bytes = taken.iter().map(|stored| stored.entry.file_bytes).sum();
        (removed, taken)
    }

    /// Returns the bundles that are there, in the order in which they expire.
    pub(crate) fn list(&self) -> Vec<Entry> {
        let mut entries: Vec<_> = self.bundles.values().map(|b| b.entry.clone()).collect();
        entries.sort_by_key(|entry| (entry.expires, entry.id));
        entries
    }

    /// Counts what is there.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.bundles.values().for_each(|b| usage.add(&b.entry));
        usage.tombstones = self.past.len() as u64;
        usage
    }
}
