//! What a party needs of a place for its bundles.

use crate::draft::Draft;
use crate::error::Result;
use crate::id::BundleId;
use crate::quota::{Bounds, Reservation};
use crate::record::{Entry, Meta, Removed};
use crate::spent::Spent;

/// Bundles, each given out at most once.
///
/// A client needs nothing else of a store, so whatever keeps its promise will do: a directory or a
/// database ([`Store`](crate::Store), with feature `files`), memory
/// ([`MemoryStore`](crate::MemoryStore)), or what a browser keeps for a page. The promise is that a
/// bundle is *spent before it is used*: when [`Self::spend`] returns, nothing brings the bundle
/// back, not another thread or process and no crash. `tests/conformance.rs` holds stores to it.
pub trait BundleStore: Send + Sync {
    /// Begins a bundle. Write its material into the draft, then commit it.
    ///
    /// # Errors
    /// If the name is taken, the attachment too large ([`Meta::check`]), or there is no room.
    fn draft(&self, meta: Meta) -> Result<Draft>;

    /// Takes the bundle `id` of `peer`: durably spent when this returns, see [`Spent`].
    ///
    /// # Errors
    /// [`Unknown`](crate::StoreError::Unknown) if there is none of that peer,
    /// [`Gone`](crate::StoreError::Gone) if it was spent (or deleted) before,
    /// [`Expired`](crate::StoreError::Expired), [`Damaged`](crate::StoreError::Damaged).
    fn spend(&self, id: BundleId, peer: &[u8; 32], now: u64) -> Result<Spent>;

    /// Returns the stored bundles in the order in which they expire.
    ///
    /// # Errors
    /// If the store cannot be read; so of all that follow.
    fn list(&self) -> Result<Vec<Entry>>;

    /// Returns the stored bundles of one peer, in the order in which they expire.
    fn list_of(&self, peer: &[u8; 32]) -> Result<Vec<Entry>> {
        let mut entries = self.list()?;
        entries.retain(|entry| entry.peer == *peer);
        Ok(entries)
    }

    /// Returns a stored bundle, if it is there unspent (it may be expired).
    fn entry(&self, id: BundleId) -> Result<Option<Entry>>;

    /// Tells whether the bundle is there, unspent (it may be expired).
    fn contains(&self, id: BundleId) -> Result<bool> {
        Ok(self.entry(id)?.is_some())
    }

    /// Returns what was stored beside a bundle that is there.
    fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>>;

    /// Sets bytes aside for bundles that are about to be written, if they are within bounds
    /// together with all that is stored and all that others are writing.
    ///
    /// # Errors
    /// [`Quota`](crate::StoreError::Quota), [`Full`](crate::StoreError::Full),
    /// [`Space`](crate::StoreError::Space).
    fn reserve(&self, peer: &[u8; 32], needed: u64, bounds: Bounds) -> Result<Reservation>;

    /// Deletes a bundle unspent; its name stays taken.
    fn delete(&self, id: BundleId, now: u64) -> Result<()>;

    /// Deletes what has expired, and forgets what is no longer needed of bundles that are gone.
    fn delete_expired(&self, now: u64) -> Result<Removed>;
}
