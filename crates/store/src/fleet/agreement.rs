//! Keeping database and blobs in one epoch, and noticing when they are not.
//!
//! Each look compares three things. What it finds is of two kinds:
//!
//! * **The replica's own memory contradicts the database** ([`epoch::follows`]): the history went
//!   back, or is a different one. No move that is under way looks like this, since an epoch is seen
//!   only after its row was committed. It is latched ([`super::rollback`]), on disk and in the
//!   database, and stays until a renewal.
//! * **Database and blobs are at different epochs** ([`epoch::agree`]). While the epoch moves on
//!   this may be so for a moment, and a replica with wrong options for its blobs finds it too, so
//!   it is not latched: a wrong option must not cost a fleet its bundles. Nor can it be overtaken.
//!   No replica moves the epoch on while it lasts, so only three things end it: a renewal; blobs
//!   that are brought back in line with the database, which has kept all along what is spent; or a
//!   database that is brought back in line with the blobs, which contradicts the memory of all
//!   replicas that saw it before.

use super::core::{BUNDLES, Core, EPOCHS, lock};
use super::database::{Fault, Outcome};
use super::epoch::{self, Departure, Epoch, Recorded};
use super::rollback::{Latch, Rollback};
use super::rows;
use crate::error::{Result, StoreError};
use std::time::Duration;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

/// Number of times the two are compared before they are said to disagree: while the epoch moves on,
/// one may be read before the move and the other after.
const LOOKS: u32 = 4;

pub(super) fn disagree(fault: impl Into<String>) -> StoreError {
    StoreError::Epoch {
        fault: fault.into(),
    }
}

fn rolled_back(rollback: &Rollback) -> StoreError {
    StoreError::RolledBack {
        fault: rollback.to_string(),
    }
}

/// Returns the name of the object of an epoch.
pub(super) fn object(epoch: &Epoch) -> String {
    format!("{EPOCHS}/{epoch}")
}

/// Returns the epochs among names of objects.
pub(super) fn epochs(names: &[String]) -> Vec<Epoch> {
    let names = names.iter().filter_map(|name| name.rsplit('/').next());
    names.filter_map(Epoch::parse).collect()
}

/// Takes the first look of a replica; the first replica of all makes the epoch.
pub(super) fn begin(core: &Core) -> Result<()> {
    core.database.with(async |client| {
        let change = client.transaction().await?;
        let wait = "SELECT pg_advisory_xact_lock(hashtext('primer epoch'))";
        change.batch_execute(wait).await?;
        if rows::recorded(&change, None).await?.is_some() {
            return Ok(());
        }
        // Blobs without a database: it was emptied, or is another one.
        if !core.blobs.list(BUNDLES).await?.is_empty() {
            let fault = "the database is new, and the blobs have bundles";
            return Err(Fault::Store(disagree(fault)));
        }
        let first = Epoch::first();
        core.blobs.put(&object(&first), &[]).await?;
        let (store, nonce) = (first.store.to_vec(), first.nonce.to_vec());
        let number = rows::signed(first.number);
        let values: [(&(dyn ToSql + Sync), Type); 3] = [
            (&store, Type::BYTEA),
            (&number, Type::INT8),
            (&nonce, Type::BYTEA),
        ];
        let insert = "INSERT INTO primer_about (store, number, nonce) VALUES ($1, $2, $3)";
        change.query_typed(insert, &values).await?;
        change.commit().await?;
        Ok(())
    })?;
    look(core)
}

/// Compares database, blobs and what was seen before, and remembers the epoch, or the rollback.
pub(super) fn look(core: &Core) -> Result<()> {
    let mut fault = String::new();
    for again in 0..LOOKS {
        if again > 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        let seen = core.seen();
        let found = core
            .database
            .with(async |client| rows::recorded(client, seen.as_ref()).await)?;
        let (recorded, known) = found.ok_or_else(|| disagree("the database was emptied"))?;
        unlatch(core, &recorded)?;
        match objection(core, &recorded, seen.as_ref(), known) {
            None => {}
            Some(Objection::Own(latch)) => return Err(hold_latch(core, latch)),
            Some(Objection::Other(error)) => return Err(error),
        }
        let blobs = epochs(&core.blobs.list_now(EPOCHS)?);
        match epoch::agree(&recorded.current, &blobs) {
            Ok(()) => return remember(core, recorded.current),
            Err(found) => fault = found,
        }
    }
    Err(disagree(fault))
}

/// Why the store must not be used.
enum Objection {
    /// This replica noticed a rollback, now or before.
    Own(Latch),
    /// Another replica did, or this one was away for too long.
    Other(StoreError),
}

/// Returns what speaks against using the store; `known` is a rollback that the database has on
/// record.
fn objection(
    core: &Core,
    recorded: &Recorded,
    seen: Option<&Epoch>,
    known: Option<Rollback>,
) -> Option<Objection> {
    let store = recorded.current.store;
    let latched = lock(&core.latch).clone();
    if let Some(latch) = latched.filter(|latch| latch.seen.store == store) {
        return Some(Objection::Own(latch));
    }
    let departure = epoch::follows(recorded, seen).err();
    match (departure, seen) {
        (Some(Departure::RolledBack), Some(seen)) => {
            let rollback = Rollback {
                replica: core.name.clone(),
                seen: seen.number,
                found: recorded.current.number,
                at: crate::unix_now(),
            };
            let seen = seen.clone();
            Some(Objection::Own(Latch { seen, rollback }))
        }
        (Some(Departure::Away), Some(seen)) => {
            let (number, oldest) = (seen.number, recorded.oldest);
            Some(Objection::Other(StoreError::Away {
                fault: format!(
                    "this replica was last at epoch {number}, and the store's history begins at \
                     {oldest}"
                ),
                path: core.witness.path().unwrap_or("its state".as_ref()).into(),
            }))
        }
        _ => known.map(|known| Objection::Other(rolled_back(&known))),
    }
}

/// Returns what the database says in this session, unless the store must not be used.
pub(super) async fn sound(core: &Core, client: &impl GenericClient) -> Outcome<Recorded> {
    let seen = core.seen();
    let found = rows::recorded(client, seen.as_ref()).await?;
    let (recorded, known) = found.ok_or_else(|| disagree("the database was emptied"))?;
    match objection(core, &recorded, seen.as_ref(), known) {
        None => Ok(recorded),
        Some(Objection::Own(latch)) => Err(rolled_back(&latch.rollback).into()),
        Some(Objection::Other(error)) => Err(error.into()),
    }
}

/// Forgets a rollback that a renewal has answered.
fn unlatch(core: &Core, recorded: &Recorded) -> Result<()> {
    let mut latch = lock(&core.latch);
    let answered = |latch: &Latch| {
        let same = latch.seen.store == recorded.current.store;
        same && latch.rollback.is_answered(recorded.renewed)
    };
    if latch.as_ref().is_some_and(answered) {
        core.witness.remove_latch()?;
        *latch = None;
        tracing::info!(epoch = recorded.renewed, "the store was renewed");
    }
    Ok(())
}

/// Keeps a rollback that this replica noticed: in memory, on its disk, in the database. A step that
/// fails is tried again at the next look; the store is refused all the same.
fn hold_latch(core: &Core, latch: Latch) -> StoreError {
    *lock(&core.latch) = Some(latch.clone());
    let kept = core.witness.keep_latch(&latch);
    let told = core
        .database
        .with(async |client| publish(client, &latch.rollback).await);
    for error in [kept.err(), told.err()].into_iter().flatten() {
        tracing::error!(%error, "a rollback could not be recorded");
    }
    rolled_back(&latch.rollback)
}

async fn publish(client: &impl GenericClient, rollback: &Rollback) -> Outcome<()> {
    let numbers = [rollback.seen, rollback.found, rollback.at].map(rows::signed);
    let values: [(&(dyn ToSql + Sync), Type); 4] = [
        (&rollback.replica, Type::TEXT),
        (&numbers[0], Type::INT8),
        (&numbers[1], Type::INT8),
        (&numbers[2], Type::INT8),
    ];
    // Two replicas of one name share a row: the greater demand stays.
    let sql = "INSERT INTO primer_rollbacks AS known (replica, seen, found, at) \
               VALUES ($1, $2, $3, $4) ON CONFLICT (replica) DO UPDATE SET seen = $2, found = $3, \
               at = $4 WHERE greatest(known.seen, known.found, known.at) < greatest($2, $3, $4)";
    client.query_typed(sql, &values).await?;
    Ok(())
}

fn remember(core: &Core, agreed: Epoch) -> Result<()> {
    if core.seen().as_ref() != Some(&agreed) {
        core.witness.keep_seen(&agreed)?;
        *lock(&core.seen) = Some(agreed);
    }
    Ok(())
}
