//! Looks at the store, so that a question about it need not wait for it.
//!
//! A thread tries the store at every beat: whether it can be written, how much room it has, how
//! much it holds. A disk may stall and a database may hang, and then so does the thread; health,
//! metrics and new clients are told what it found last, and how long ago. What it has not been able
//! to find out for [`SILENCE`] counts as a fault.
//!
//! *Usable* is a store in which bundles can be marked as spent: without that nothing can be
//! answered. *Short of room* is one in which that still works, but nothing more fits beside the
//! margin that is kept for it: bundles are used up there, and none is prepared.

use super::gate::Gate;
use primer_store::{RESERVE, Store, StoredAmount};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From one look to the next.
const BEAT: Duration = Duration::from_secs(2);
/// A store that has said nothing for this long is not usable, even if it was before.
const SILENCE: Duration = Duration::from_secs(10);

/// What is known of the store.
pub(crate) struct StoreMonitor(Mutex<Findings>);

struct Findings {
    /// Why it cannot be used.
    fault: Option<String>,
    /// When that was tried.
    tried: Instant,
    /// Bytes that are free, if it can be known.
    free: Option<u64>,
    /// What it holds.
    held: StoredAmount,
    /// When that was counted.
    counted: Instant,
}

/// What is told of the store in numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreStatus {
    pub(crate) usable: bool,
    pub(crate) free: Option<u64>,
    pub(crate) held: StoredAmount,
    /// How old that is.
    pub(crate) age: Duration,
}

impl StoreMonitor {
    /// Takes a first look at the store.
    pub(crate) fn new(store: &Store) -> Self {
        let now = Instant::now();
        let monitor = Self(Mutex::new(Findings {
            fault: None,
            tried: now,
            free: None,
            held: StoredAmount::default(),
            counted: now,
        }));
        monitor.look(store);
        monitor
    }

    /// Looks now and at every beat until the server stops.
    pub(crate) fn keep(&self, store: &Store, gate: &Gate) {
        loop {
            self.look(store);
            if gate.sleep(BEAT) {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Findings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the store, with nothing locked meanwhile.
    fn look(&self, store: &Store) {
        let fault = store.ready().err().map(|error| error.to_string());
        let free = store.free().ok().flatten();
        self.tried(fault, free);
        match store.held() {
            Ok(held) => {
                let mut found = self.lock();
                found.held = held;
                found.counted = Instant::now();
            }
            Err(error) => tracing::debug!(%error, "the store's bundles could not be counted"),
        }
    }

    /// Keeps what was found, and says once when it changes.
    fn tried(&self, fault: Option<String>, free: Option<u64>) {
        let mut found = self.lock();
        match (&found.fault, &fault) {
            (None, Some(fault)) => tracing::error!(fault, "the store cannot be used"),
            (Some(_), None) => tracing::info!("the store can be used again"),
            _ => {}
        }
        let (was_short, is_short) = (is_short(found.free), is_short(free));
        if is_short && !was_short {
            tracing::error!(
                free,
                reserve = RESERVE,
                "the store is nearly full: no bundles are prepared"
            );
        }
        if was_short && !is_short {
            tracing::info!(free, "the store has room again");
        }
        found.fault = fault;
        found.free = free;
        found.tried = Instant::now();
    }

    /// Tells whether bundles can be marked as spent, and why not.
    pub(crate) fn usable(&self) -> Result<(), String> {
        let found = self.lock();
        let silence = found.tried.elapsed();
        match &found.fault {
            Some(fault) => Err(format!("the store cannot be used: {fault}")),
            None if silence > SILENCE => Err(format!(
                "the store has not answered for {} s",
                silence.as_secs()
            )),
            None => Ok(()),
        }
    }

    /// Says why no bundle is prepared, though those that there are can be used.
    pub(crate) fn short_of_room(&self) -> Option<String> {
        let free = self.lock().free.filter(|free| is_short(Some(*free)))?;
        Some(format!(
            "no more bundles are prepared: {free} bytes are free for them, and {RESERVE} are \
             reserved for marking bundles as spent"
        ))
    }

    /// Returns the numbers.
    pub(crate) fn status(&self) -> StoreStatus {
        let usable = self.usable().is_ok();
        let found = self.lock();
        StoreStatus {
            usable,
            free: found.free,
            held: found.held,
            age: found.counted.elapsed(),
        }
    }
}

fn is_short(free: Option<u64>) -> bool {
    free.is_some_and(|free| free < RESERVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_last_is_told_until_it_is_too_old() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("store")).unwrap();
        let monitor = StoreMonitor::new(&store);
        assert!(monitor.usable().is_ok() && monitor.status().usable);
        assert!(monitor.status().free.is_some());
        monitor.tried(Some("No space left on device".into()), Some(0));
        let why = monitor.usable().unwrap_err();
        assert!(why.contains("No space left on device"), "{why}");
        assert!(!monitor.status().usable);
        monitor.tried(None, Some(RESERVE - 1));
        assert!(monitor.usable().is_ok(), "marks fit");
        let why = monitor.short_of_room().unwrap();
        assert!(why.contains(&(RESERVE - 1).to_string()), "{why}");
        monitor.tried(None, None);
        assert!(monitor.short_of_room().is_none(), "not known");
        let Some(before) = Instant::now().checked_sub(SILENCE + Duration::from_secs(1)) else {
            return;
        };
        monitor.lock().tried = before;
        monitor.lock().counted = before;
        assert!(monitor.usable().unwrap_err().contains("11 s"));
        assert!(!monitor.status().usable && monitor.status().age > SILENCE);
    }

    #[test]
    fn a_store_that_is_gone_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("store");
        let store = Store::open(&at).unwrap();
        let monitor = StoreMonitor::new(&store);
        std::fs::rename(&at, dir.path().join("elsewhere")).unwrap();
        monitor.look(&store);
        assert!(monitor.usable().is_err());
        std::fs::rename(dir.path().join("elsewhere"), &at).unwrap();
        monitor.look(&store);
        assert!(monitor.usable().is_ok());
    }
}
