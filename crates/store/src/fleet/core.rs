//! What the parts of a replica's store share: the runtime, the database, the blobs, the keys, and
//! what is going on here.

use super::blobs::Blobs;
use super::database::Database;
use super::epoch::Epoch;
use super::keeper::Chore;
use super::options::Keys;
use super::rollback::Latch;
use super::witness::Witness;
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};

/// One thread that talks to database and object store; callers wait on their own threads.
pub(super) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub(super) fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|e| StoreError::Options {
            fault: format!("a thread for the store cannot be started: {e}"),
        })?;
        Ok(Self(Some(runtime)))
    }

    pub(super) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("taken only when dropped").handle()
    }

    /// Waits for some work, at most `limit`.
    pub(super) fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let limited = async { tokio::time::timeout(limit, work).await };
        self.handle().block_on(limited).ok()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Any request still running is one that no caller waits for.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Sixteen random bytes that a replica has while its lease lasts.
pub(super) type ReplicaId = [u8; 16];

/// How long database and blobs may leave the keeper without an answer before they are taken to be
/// out of reach: three beats.
const SILENCE: Duration = Duration::from_secs(6);

/// What all parts use.
pub(super) struct Core {
    pub(super) database: Database,
    pub(super) blobs: Blobs,
    pub(super) keys: Keys,
    /// What this replica is called.
    pub(super) name: String,
    /// The lease under which it works.
    pub(super) replica: Mutex<ReplicaId>,
    /// Objects that are being written, read or deleted here, and by how many.
    pub(super) busy: Mutex<HashMap<String, usize>>,
    /// What the keeper found when it looked last.
    pub(super) state: Mutex<State>,
    /// When that was.
    pub(super) looked: Mutex<Instant>,
    /// The latest epoch that this replica has seen.
    pub(super) seen: Mutex<Option<Epoch>>,
    /// The rollback that this replica noticed.
    pub(super) latch: Mutex<Option<Latch>>,
    /// Where both are remembered on this machine.
    pub(super) witness: Witness,
    /// What the keeper is to do.
    pub(super) chores: Sender<Chore>,
}

/// What the keeper found when it looked last.
pub(super) enum State {
    /// Database and blobs can be reached and agree.
    Ready,
    /// One of them cannot.
    OutOfReach(String),
    /// They do not agree: nothing is given out.
    Disagreeing(String),
    /// A replica noticed a rollback: nothing is given out until a renewal.
    RolledBack(String),
}

impl State {
    /// Returns why nothing may be stored or given out.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        match self {
            Self::Ready | Self::OutOfReach(_) => None,
            Self::Disagreeing(fault) => Some(StoreError::Epoch {
                fault: fault.clone(),
            }),
            Self::RolledBack(fault) => Some(StoreError::RolledBack {
                fault: fault.clone(),
            }),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing behind these locks can be left half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(super) fn replica(&self) -> ReplicaId {
        *lock(&self.replica)
    }

    /// Checks that bundles may be stored and given out: database and blobs did not disagree.
    pub(super) fn check_agreement(&self) -> Result<()> {
        lock(&self.state).refusal().map_or(Ok(()), Err)
    }

    pub(super) fn seen(&self) -> Option<Epoch> {
        lock(&self.seen).clone()
    }

    /// Returns how long the keeper has been waiting for an answer, if that is too long: what it
    /// last found says nothing about now.
    pub(super) fn silent(&self) -> Option<Duration> {
        Some(lock(&self.looked).elapsed()).filter(|silence| *silence > SILENCE)
    }

    /// Marks an object as in use here: no sweep of ours takes it.
    pub(super) fn hold(&self, blob: &str) {
        *lock(&self.busy).entry(blob.to_owned()).or_default() += 1;
    }

    /// Takes one such mark away.
    pub(super) fn let_go(&self, blob: &str) {
        let mut busy = lock(&self.busy);
        if let Some(count) = busy.get_mut(blob) {
            *count -= 1;
            if *count == 0 {
                busy.remove(blob);
            }
        }
    }

    /// Leaves a chore to the keeper, which does it now or as soon as it can.
    pub(super) fn later(&self, chore: Chore) {
        // Fails if the keeper has gone: then the sweep of another replica does it.
        let _ = self.chores.send(chore);
    }
}

/// Names of objects: `bundles/<bundle>-<replica>-<random>`, each used once.
pub(super) const BUNDLES: &str = "bundles";
/// Objects whose names are epochs.
pub(super) const EPOCHS: &str = "epochs";

/// Draws the name of a new object.
pub(super) fn object_name(id: BundleId, replica: ReplicaId) -> String {
    let mut fresh = [0; 16];
    getrandom::fill(&mut fresh).expect("the operating system provides randomness");
    let digits = BundleId::from_bytes;
    format!("{BUNDLES}/{id}-{}-{}", digits(replica), digits(fresh))
}

/// Returns whose object it is: of which bundle, and written by which replica. None if it is none of
/// ours.
pub(super) fn parse_object(name: &str) -> Option<(BundleId, ReplicaId)> {
    let rest = name.strip_prefix(BUNDLES)?.strip_prefix('/')?;
    let mut parts = rest.split('-').map(|part| part.parse::<BundleId>().ok());
    let mut part = || parts.next().flatten();
    let (id, replica) = (part()?, *part()?.as_bytes());
    part()?;
    parts.next().is_none().then_some((id, replica))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_tell_whose_they_are() {
        let id = BundleId::from_bytes([7; 16]);
        let name = object_name(id, [9; 16]);
        assert_eq!(parse_object(&name), Some((id, [9; 16])));
        assert_ne!(object_name(id, [9; 16]), name);
        for wrong in [
            "",
            "bundles",
            "bundles/",
            "bundles/../x",
            &name[1..],
            &format!("{name}-"),
        ] {
            assert_eq!(parse_object(wrong), None, "{wrong}");
        }
    }
}
