//! The store of a system with files: two engines behind one type.
//!
//! The embedded engine is a directory of one machine (`local`); the shared one a database and a
//! place for blobs that any number of machines use together ([`crate::fleet`]). The owner of a
//! [`Store`] need not know which it is: the promise is the same.

use crate::bundle_store::BundleStore;
use crate::counts::{Charge, Counting, Counts};
use crate::draft::Draft;
use crate::error::Result;
use crate::fleet::FleetOptions;
use crate::id::BundleId;
use crate::local::{Local, Options};
use crate::quota::{Bounds, Reservation};
use crate::record::{Entry, Meta, Past, Removed, StoredAmount, Usage};
use crate::spent::Spent;
use std::path::Path;

/// Bundles, each given out at most once. Cheap to clone; any number of threads and processes may
/// use one store, and of a shared one any number of machines.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    Local(Local),
    #[cfg(feature = "fleet")]
    Fleet(crate::fleet::Fleet),
}

/// Makes the same call on either engine.
macro_rules! either {
    ($store:expr, $engine:ident => $work:expr) => {
        match &$store.0 {
            Engine::Local($engine) => $work,
            #[cfg(feature = "fleet")]
            Engine::Fleet($engine) => $work,
        }
    };
}

impl Store {
    /// Opens a store, and makes it on first use: a directory that only its owner may enter.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, &Options::default())
    }

    /// Opens a store as [`Options`] say, and removes what a killed process left behind.
    pub fn open_with(dir: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Local::open(dir.as_ref(), options).map(|local| Self(Engine::Local(local)))
    }

    /// Joins a shared store as one of its replicas; the first one makes it.
    ///
    /// # Errors
    /// [`NoFleet`](crate::StoreError::NoFleet) if this program was built without;
    /// [`Epoch`](crate::StoreError::Epoch) if database and blobs do not belong together;
    /// [`Settings`](crate::StoreError::Settings) if the database would forget what it was told;
    /// others that name what cannot be reached.
    #[cfg(feature = "fleet")]
    pub fn connect(options: FleetOptions) -> Result<Self> {
        crate::fleet::Fleet::join(options).map(|fleet| Self(Engine::Fleet(fleet)))
    }

    /// Refuses to join a shared store, which this build cannot.
    ///
    /// # Errors
    /// [`NoFleet`](crate::StoreError::NoFleet).
    #[cfg(not(feature = "fleet"))]
    pub fn connect(_: FleetOptions) -> Result<Self> {
        Err(crate::StoreError::NoFleet)
    }

    /// Returns where it is, for messages: its directory, or its database and blobs without their
    /// secrets.
    pub fn place(&self) -> String {
        either!(self, engine => engine.place())
    }

    /// Takes a bundle as [`BundleStore::spend`] does, and counts it in the same transaction: both
    /// last when this returns, or neither.
    ///
    /// # Errors
    /// As [`BundleStore::spend`]; [`Limit`](crate::StoreError::Limit) if there may be no more: then
    /// the bundle stays.
    pub fn spend_counted(
        &self,
        id: BundleId,
        peer: &[u8; 32],
        charge: &Charge,
        now: u64,
    ) -> Result<Spent> {
        either!(self, engine => engine.spend(id, peer, Some(charge), now))
    }

    /// Counts something; it lasts when this returns, and nothing takes it back.
    ///
    /// # Errors
    /// [`Limit`](crate::StoreError::Limit) if there may be no more: then nothing is counted.
    pub fn count(&self, charge: &Charge, now: u64) -> Result<()> {
        either!(self, engine => engine.count(charge, now))
    }

    /// Returns what was counted for an account: nothing for one that is not known.
    pub fn counts(&self, account: &[u8; 32]) -> Result<Counts> {
        either!(self, engine => engine.counts(account))
    }

    /// Returns what was counted for all accounts that are known.
    pub fn all_counts(&self) -> Result<Vec<Counting>> {
        either!(self, engine => engine.all_counts())
    }

    /// Returns what became of a bundle that is gone, if that is still known.
    pub fn past(&self, id: BundleId) -> Result<Option<Past>> {
        either!(self, engine => engine.past(id))
    }

    /// Returns the tombstones: what became of bundles that are gone, until they are long expired.
    pub fn history(&self) -> Result<Vec<Past>> {
        either!(self, engine => engine.history())
    }

    /// Returns how much is stored, and for whom.
    pub fn usage(&self) -> Result<Usage> {
        either!(self, engine => engine.usage())
    }

    /// Returns how much is stored altogether.
    pub fn held(&self) -> Result<StoredAmount> {
        either!(self, engine => engine.held())
    }

    /// Checks that bundles can be stored and spent. In a directory that is tried: a small file is
    /// written, synced and removed, which takes as long as the disk takes. A shared store is
    /// checked every two seconds by a thread of its own, and this reports what was found.
    ///
    /// # Errors
    /// Why not.
    pub fn ready(&self) -> Result<()> {
        either!(self, engine => engine.ready())
    }

    /// Checks that there is room for marking a bundle as spent, by what the file system says: cheap
    /// enough to ask each time before a peer spends its half.
    ///
    /// # Errors
    /// [`Space`](crate::StoreError::Space).
    pub fn check_mark(&self) -> Result<()> {
        either!(self, engine => engine.check_mark())
    }

    /// Returns the number of bytes free where the bulk of bundles is; none if that is not known.
    pub fn free(&self) -> Result<Option<u64>> {
        either!(self, engine => engine.free())
    }

    /// Tells whether a replica of a shared store had noticed, at the last look, that it was rolled
    /// back: then it cannot be used until `primer store renew`, however long one waits.
    pub fn is_rolled_back(&self) -> bool {
        match &self.0 {
            Engine::Local(_) => false,
            #[cfg(feature = "fleet")]
            Engine::Fleet(fleet) => fleet.is_rolled_back(),
        }
    }

    /// Gives back this process's place in a shared store, and does what was left for later, as
    /// dropping the last clone does. The store must not be used afterwards.
    pub fn leave(&self) {
        match &self.0 {
            Engine::Local(_) => {}
            #[cfg(feature = "fleet")]
            Engine::Fleet(fleet) => fleet.leave(),
        }
    }

    /// Returns the shared store behind it, if it is one.
    #[cfg(feature = "fleet")]
    pub fn fleet(&self) -> Option<&crate::fleet::Fleet> {
        match &self.0 {
            Engine::Local(_) => None,
            Engine::Fleet(fleet) => Some(fleet),
        }
    }
}

/// Bounds count, and names are taken, in this process if the store is a directory, in all replicas
/// if it is shared. On a disk of this machine bundles must fit beside [`RESERVE`](crate::RESERVE).
impl BundleStore for Store {
    fn draft(&self, meta: Meta) -> Result<Draft> {
        meta.check()?;
        either!(self, engine => engine.draft(meta))
    }

    fn spend(&self, id: BundleId, peer: &[u8; 32], now: u64) -> Result<Spent> {
        either!(self, engine => engine.spend(id, peer, None, now))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        either!(self, engine => engine.list())
    }

    fn list_of(&self, peer: &[u8; 32]) -> Result<Vec<Entry>> {
        match &self.0 {
            Engine::Local(local) => {
                let mut entries = local.list()?;
                entries.retain(|entry| entry.peer == *peer);
                Ok(entries)
            }
            #[cfg(feature = "fleet")]
            Engine::Fleet(fleet) => fleet.list_of(peer),
        }
    }

    fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        either!(self, engine => engine.entry(id))
    }

    fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        either!(self, engine => engine.attachment(id))
    }

    fn reserve(&self, peer: &[u8; 32], needed: u64, bounds: Bounds) -> Result<Reservation> {
        either!(self, engine => engine.reserve(peer, needed, bounds))
    }

    fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        either!(self, engine => engine.delete(id, now))
    }

    /// Deletes what has expired, and forgets tombstones that are no longer needed and counts of
    /// passing accounts beyond [`PASSING_ACCOUNTS`](crate::PASSING_ACCOUNTS).
    fn delete_expired(&self, now: u64) -> Result<Removed> {
        either!(self, engine => engine.delete_expired(now))
    }
}
