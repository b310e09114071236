//! The thread that keeps a replica's place in a shared store.
//!
//! Every two seconds it renews the lease and checks that database and blobs can be reached, accept
//! writes and agree. Once a minute it moves the epoch on and sweeps. In between it does what others
//! leave to it: deleting the objects of spent bundles, giving back what was set aside. A step that
//! fails is tried again at the next beat; if this process dies first, another one sweeps.

use super::core::{Core, State, lock};
use super::{agreement, moves, sweep};
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio_postgres::types::{ToSql, Type};

const BEAT: Duration = Duration::from_secs(2);
const MINUTE: Duration = Duration::from_secs(60);

/// What is left to the keeper.
pub(super) enum Chore {
    /// The object of a bundle that is gone.
    Erase { id: BundleId, blob: String },
    /// An object that no row refers to.
    Discard { blob: String },
    /// Bytes that were set aside.
    Release { reservation: i64 },
    /// The end.
    Stop,
}

/// The thread; it is stopped when this is dropped.
pub(super) struct Keeper {
    chores: Sender<Chore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    pub(super) fn start(core: &Arc<Core>, chores: Receiver<Chore>) -> Result<Self> {
        let sender = core.chores.clone();
        let core = Arc::clone(core);
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || keep(&core, &chores));
        let thread = thread.map_err(|e| StoreError::Options {
            fault: format!("a thread for the store cannot be started: {e}"),
        })?;
        Ok(Self {
            chores: sender,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Makes it do what is left, give the lease back and end. Later calls do nothing.
    pub(super) fn stop(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = self.chores.send(Chore::Stop);
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

fn keep(core: &Core, chores: &Receiver<Chore>) {
    let mut left: Vec<Chore> = Vec::new();
    let mut beat = Instant::now() + BEAT;
    let mut minute = Instant::now();
    loop {
        match chores.recv_timeout(beat.saturating_duration_since(Instant::now())) {
            Ok(Chore::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(chore) => {
                if let Err(chore) = attend(core, chore) {
                    left.push(chore);
                }
                // However many chores there are, the lease is renewed between them.
                if Instant::now() < beat {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let found = look(core);
        let well = matches!(found, State::Ready);
        tell(&core.state, found);
        *lock(&core.looked) = Instant::now();
        if well {
            left = left
                .drain(..)
                .filter_map(|chore| attend(core, chore).err())
                .collect();
        }
        if well && minute <= Instant::now() {
            minute = Instant::now() + MINUTE;
            let done = moves::advance(core, 50.0).and_then(|()| sweep::sweep(core, false));
            match done {
                Ok(swept) if swept.orphans() > 0 => {
                    let (objects, bundles) = (swept.objects, swept.bundles);
                    tracing::info!(objects, bundles, "swept orphaned objects and bundles");
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the shared store could not be swept"),
            }
        }
        beat = Instant::now() + BEAT;
    }
    // What others left is done before the lease goes; at the first failure the rest is left to
    // others.
    let rest = left.into_iter().chain(chores.try_iter());
    let rest = rest.filter(|chore| !matches!(chore, Chore::Stop));
    if rest
        .map(|chore| attend(core, chore))
        .all(|done| done.is_ok())
    {
        let _ = leave(core);
    }
}

/// Logs a change once.
fn tell(state: &Mutex<State>, found: State) {
    let mut state = lock(state);
    match (&*state, &found) {
        (State::Ready, State::OutOfReach(fault) | State::Disagreeing(fault)) => {
            tracing::error!(fault, "the shared store cannot be used");
        }
        (State::RolledBack(_), State::RolledBack(_)) | (State::Ready, State::Ready) => {}
        (_, State::RolledBack(_)) => {
            let error = found.refusal();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            tracing::error!(error, "the shared store cannot be used");
        }
        (_, State::Ready) => tracing::info!("the shared store can be used again"),
        _ => {}
    }
    *state = found;
}

fn look(core: &Core) -> State {
    let reached = renew_lease(core).and_then(|()| agreement::look(core));
    match reached.and_then(|()| core.blobs.try_writing()) {
        Ok(()) => State::Ready,
        Err(StoreError::Epoch { fault }) => State::Disagreeing(fault),
        Err(StoreError::RolledBack { fault }) => State::RolledBack(fault),
        Err(error) => State::OutOfReach(error.to_string()),
    }
}

/// Reports that this replica is alive. One that was taken for dead begins anew, with another
/// identifier.
pub(super) fn renew_lease(core: &Core) -> Result<()> {
    let renewed = core.database.with(async |client| {
        let replica = core.replica().to_vec();
        let values: [(&(dyn ToSql + Sync), Type); 1] = [(&replica, Type::BYTEA)];
        let sql = "UPDATE primer_replicas SET seen = now() WHERE id = $1 RETURNING 1";
        Ok(!client.query_typed(sql, &values).await?.is_empty())
    })?;
    if renewed {
        return Ok(());
    }
    let mut replica = [0; 16];
    getrandom::fill(&mut replica).expect("the operating system provides randomness");
    core.database.with(async |client| {
        let id = replica.to_vec();
        let values: [(&(dyn ToSql + Sync), Type); 2] =
            [(&id, Type::BYTEA), (&core.name, Type::TEXT)];
        let sql = "INSERT INTO primer_replicas (id, name) VALUES ($1, $2)";
        client.query_typed(sql, &values).await?;
        Ok(())
    })?;
    *lock(&core.replica) = replica;
    Ok(())
}

fn leave(core: &Core) -> Result<()> {
    core.database.with(async |client| {
        let replica = core.replica().to_vec();
        let values: [(&(dyn ToSql + Sync), Type); 1] = [(&replica, Type::BYTEA)];
        let sql = "DELETE FROM primer_replicas WHERE id = $1";
        client.query_typed(sql, &values).await?;
        Ok(())
    })
}

/// Does a chore, or gives it back.
fn attend(core: &Core, chore: Chore) -> Result<(), Chore> {
    let done = match &chore {
        Chore::Erase { id, blob } => erase(core, *id, blob),
        Chore::Discard { blob } => core.blobs.delete_now(blob),
        Chore::Release { reservation } => release(core, *reservation),
        Chore::Stop => Ok(()),
    };
    match (done, &chore) {
        (Ok(()), Chore::Erase { blob, .. } | Chore::Discard { blob }) => {
            core.let_go(blob);
            Ok(())
        }
        (Ok(()), _) => Ok(()),
        (Err(_), _) => Err(chore),
    }
}

/// Deletes the object of a bundle that is gone, and notes that nothing is owed any more.
pub(super) fn erase(core: &Core, id: BundleId, blob: &str) -> Result<()> {
    core.blobs.delete_now(blob)?;
    core.database.with(async |client| {
        let id = id.as_bytes().to_vec();
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&id, Type::BYTEA), (&blob, Type::TEXT)];
        let sql = "UPDATE primer_past SET blob = NULL WHERE id = $1 AND blob = $2";
        client.query_typed(sql, &values).await?;
        Ok(())
    })
}

fn release(core: &Core, reservation: i64) -> Result<()> {
    core.database.with(async |client| {
        let values: [(&(dyn ToSql + Sync), Type); 1] = [(&reservation, Type::INT8)];
        let sql = "DELETE FROM primer_reservations WHERE id = $1";
        client.query_typed(sql, &values).await?;
        Ok(())
    })
}
