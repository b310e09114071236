//! How much may be left in a store, for one peer and for all, counting what is still being written.

use crate::error::{Result, StoreError};
use crate::record::Usage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of unspent bundles there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For one peer.
    pub per_peer: u64,
    /// Altogether.
    pub total: u64,
}

impl Bounds {
    /// No bounds but the disk's.
    pub const NONE: Self = Self {
        per_peer: u64::MAX,
        total: u64::MAX,
    };

    /// Checks that `needed` more bytes fit.
    pub(crate) fn check(self, needed: u64, of_peer: u64, all: u64) -> Result<()> {
        if of_peer.saturating_add(needed) > self.per_peer {
            return Err(StoreError::Quota {
                needed,
                stored: of_peer,
                limit: self.per_peer,
            });
        }
        if all.saturating_add(needed) > self.total {
            let limit = self.total;
            return Err(StoreError::Full { needed, limit });
        }
        Ok(())
    }
}

/// Bytes set aside until this is dropped.
#[must_use = "what is set aside is given back when this is dropped"]
pub struct Reservation(#[expect(dead_code, reason = "kept for what its end does")] Box<dyn Send>);

impl Reservation {
    /// Makes one whose end drops what is given.
    pub fn new(kept: impl Send + 'static) -> Self {
        Self(Box::new(kept))
    }
}

/// What this process is writing, by peer.
#[derive(Default)]
pub(crate) struct Quota(Mutex<HashMap<[u8; 32], u64>>);

impl Quota {
    /// Sets bytes aside for a peer, if they are within bounds and `fits` says that the disk takes
    /// them together with all that is being written. What is stored is queried while no other
    /// thread sets bytes aside.
    ///
    /// Bytes already written count twice against the disk, as used and as set aside: near its end
    /// the check is cautious.
    pub(crate) fn reserve(
        this: &Arc<Self>,
        peer: &[u8; 32],
        needed: u64,
        bounds: Bounds,
        usage: impl FnOnce() -> Result<Usage>,
        fits: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Reservation> {
        let mut writing = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = usage()?;
        let of_peer = usage.of(peer).bytes + writing.get(peer).copied().unwrap_or(0);
        let aside = writing.values().sum::<u64>();
        bounds.check(needed, of_peer, usage.total.bytes.saturating_add(aside))?;
        fits(aside.saturating_add(needed))?;
        *writing.entry(*peer).or_default() += needed;
        Ok(Reservation::new(SetAside {
            quota: Arc::clone(this),
            peer: *peer,
            bytes: needed,
        }))
    }
}

struct SetAside {
    quota: Arc<Quota>,
    peer: [u8; 32],
    bytes: u64,
}

impl Drop for SetAside {
    fn drop(&mut self) {
        let mut writing = self.quota.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = writing.get_mut(&self.peer) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                writing.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_count_until_they_are_dropped() {
        let quota = Arc::new(Quota::default());
        let bounds = Bounds {
            per_peer: 100,
            total: 150,
        };
        let usage = || Ok(Usage::default());
        let reserve =
            |peer, bytes| Quota::reserve(&quota, &[peer; 32], bytes, bounds, usage, |_| Ok(()));
        let first = reserve(1, 80).unwrap();
        assert!(matches!(
            reserve(1, 30).err(),
            Some(StoreError::Quota {
                needed: 30,
                stored: 80,
                limit: 100
            })
        ));
        assert!(matches!(
            reserve(2, 90).err(),
            Some(StoreError::Full { .. })
        ));
        drop(first);
        assert!(reserve(2, 90).is_ok());
        assert!(quota.0.lock().unwrap().is_empty());
    }

    /// Checks that the disk must have room for what others are writing as well, and that bytes that
    /// do not fit are not set aside.
    #[test]
    fn the_disk_is_asked_for_all_that_is_being_written() {
        let quota = Arc::new(Quota::default());
        let reserve = |bytes, free: u64| {
            let usage = || Ok(Usage::default());
            let fits = |all| match all <= free {
                true => Ok(()),
                false => Err(StoreError::Full {
                    needed: all,
                    limit: free,
                }),
            };
            Quota::reserve(&quota, &[1; 32], bytes, Bounds::NONE, usage, fits)
        };
        let _first = reserve(80, 100).unwrap();
        let error = reserve(30, 100).err();
        assert!(matches!(error, Some(StoreError::Full { needed: 110, .. })));
        assert!(reserve(20, 100).is_ok());
    }
}
