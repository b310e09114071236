//! Keeping database and blobs in one epoch, and noticing when they are not.

use super::core::{BUNDLES, Core, EPOCHS, lock};
use super::database::{Fault, Outcome};
use super::epoch::{self, Epoch, Recorded};
use super::rows;
use crate::error::{Result, StoreError};
use crate::files;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

/// How often the two are compared before they are said to disagree: while somebody moves the epoch
/// on, one may be looked at before and the other after.
const LOOKS: u32 = 4;

fn disagree(fault: String) -> StoreError {
    StoreError::Epoch { fault }
}

fn object(epoch: &Epoch) -> String {
    format!("{EPOCHS}/{epoch}")
}

/// The epochs among names of objects.
fn epochs(names: &[String]) -> Vec<Epoch> {
    let names = names.iter().filter_map(|name| name.rsplit('/').next());
    names.filter_map(Epoch::parse).collect()
}

/// Sets what the database says of the epoch.
async fn record(client: &impl GenericClient, to: &Recorded) -> Outcome<()> {
    let (number, next) = (
        rows::signed(to.current.number),
        to.next.as_ref().map(|next| rows::signed(next.number)),
    );
    let nonces = (
        to.current.nonce.to_vec(),
        to.next.as_ref().map(|next| next.nonce.to_vec()),
    );
    let store = to.current.store.to_vec();
    let values: [(&(dyn ToSql + Sync), Type); 5] = [
        (&store, Type::BYTEA),
        (&number, Type::INT8),
        (&nonces.0, Type::BYTEA),
        (&next, Type::INT8),
        (&nonces.1, Type::BYTEA),
    ];
    let sql = "INSERT INTO primer_about (store, number, nonce, next_number, next_nonce) \
               VALUES ($1, $2, $3, $4, $5) ON CONFLICT (one) DO UPDATE SET store = $1, \
               number = $2, nonce = $3, next_number = $4, next_nonce = $5, moved = now()";
    client.query_typed(sql, &values).await?;
    Ok(())
}

/// The first look of a replica; the first one of all makes the epoch.
pub(super) fn begin(core: &Core) -> Result<()> {
    core.database
        .saw(core.witness.as_deref().and_then(read_witness));
    core.database.with(async |client| {
        let change = client.transaction().await?;
        let wait = "SELECT pg_advisory_xact_lock(hashtext('primer epoch'))";
        change.batch_execute(wait).await?;
        if rows::recorded(&change).await?.is_some() {
            return Ok(());
        }
        // Blobs without a database: it was emptied, or is another one.
        if !core.blobs.list(BUNDLES).await?.is_empty() {
            let fault = "the database is new, and the blobs have bundles";
            return Err(Fault::Store(disagree(fault.into())));
        }
        let current = Epoch::first();
        core.blobs.put(&object(&current), &[]).await?;
        let next = None;
        record(&change, &Recorded { current, next }).await?;
        change.commit().await?;
        Ok(())
    })?;
    look(core)
}

/// Compares database, blobs and what was seen before, and remembers the epoch.
pub(super) fn look(core: &Core) -> Result<()> {
    let seen = core.database.seen();
    let mut fault = String::new();
    for again in 0..LOOKS {
        if again > 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        let recorded = core
            .database
            .with(async |client| rows::recorded(client).await)?;
        let recorded = recorded.ok_or_else(|| disagree("the database was emptied".into()))?;
        let blobs = epochs(&core.blobs.list_now(EPOCHS)?);
        match epoch::agree(&recorded, &blobs, seen.as_ref()) {
            Ok(agreed) => return remember(core, agreed),
            Err(found) => fault = found,
        }
    }
    Err(disagree(fault))
}

fn remember(core: &Core, agreed: Epoch) -> Result<()> {
    if core.database.seen().as_ref() == Some(&agreed) {
        return Ok(());
    }
    if let Some(path) = &core.witness {
        write_witness(path, &agreed)?;
    }
    core.database.saw(Some(agreed));
    Ok(())
}

/// Moves the epoch on, unless somebody else does or did less than `age` seconds ago.
pub(super) fn advance(core: &Core, age: f64) -> Result<()> {
    core.database.with(async |client| {
        let lock = "SELECT pg_try_advisory_lock(hashtext('primer epoch')), \
                    moved <= now() - make_interval(secs => $1) FROM primer_about";
        let rows = client.query_typed(lock, &[(&age, Type::FLOAT8)]).await?;
        let (mine, due) = rows
            .first()
            .map_or((false, false), |row| (row.get(0), row.get(1)));
        // A session that fails is closed, and its lock with it.
        if mine && due {
            move_on(core, client).await?;
        }
        if mine {
            let unlock = "SELECT pg_advisory_unlock(hashtext('primer epoch'))";
            client.batch_execute(unlock).await?;
        }
        Ok(())
    })
}

async fn move_on(core: &Core, client: &impl GenericClient) -> Outcome<()> {
    let Some(recorded) = rows::recorded(client).await? else {
        return Ok(());
    };
    let names = core.blobs.list(EPOCHS).await?;
    let seen = core.database.seen();
    let agreed = epoch::agree(&recorded, &epochs(&names), seen.as_ref()).map_err(disagree)?;
    settle(core, client, agreed.clone(), agreed.after(0), &names).await
}

/// From one epoch to another, in the order that leaves no moment of disagreement.
async fn settle(
    core: &Core,
    client: &impl GenericClient,
    current: Epoch,
    next: Epoch,
    old: &[String],
) -> Outcome<()> {
    let moving = Recorded {
        current,
        next: Some(next.clone()),
    };
    record(client, &moving).await?;
    core.blobs.put(&object(&next), &[]).await?;
    let moved = Recorded {
        current: next.clone(),
        next: None,
    };
    record(client, &moved).await?;
    for name in old.iter().filter(|name| **name != object(&next)) {
        core.blobs.delete(name).await?;
    }
    Ok(())
}

/// After a restored backup: buries all bundles and brings database and blobs to an epoch that no
/// replica can have seen. Tells how many bundles there were.
pub(super) fn renew(core: &Core, now: u64) -> Result<u64> {
    core.database.saw(None);
    let bundles = core.database.with(async |client| {
        let wait = "SELECT pg_advisory_lock(hashtext('primer epoch'))";
        client.batch_execute(wait).await?;
        let (now, grace) = (rows::signed(now), rows::signed(crate::GRACE_SECONDS));
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&now, Type::INT8), (&grace, Type::INT8)];
        let bury = "WITH gone AS (DELETE FROM primer_bundles RETURNING id, peer, expires) \
                    INSERT INTO primer_past (id, peer, fate, spends, at, until) \
                    SELECT id, peer, 1, 0, $1, greatest(expires, $1) + $2 FROM gone \
                    ON CONFLICT (id) DO NOTHING RETURNING 1";
        let change = client.transaction().await?;
        let bundles = change.query_typed(bury, &values).await?.len() as u64;
        change.commit().await?;
        let names = core.blobs.list(EPOCHS).await?;
        let current = match rows::recorded(client).await? {
            Some(recorded) => recorded.current,
            None => Epoch::first(),
        };
        // Numbers of before grew by one a minute, so none has come as far as the clock.
        let before = epochs(&names).iter().map(|epoch| epoch.number).max();
        let next = current.after(before.unwrap_or(0).max(crate::unix_now()));
        settle(core, client, current, next, &names).await?;
        let unlock = "SELECT pg_advisory_unlock(hashtext('primer epoch'))";
        client.batch_execute(unlock).await?;
        Ok(bundles)
    })?;
    for name in core.blobs.list_now(BUNDLES)? {
        core.blobs.delete_now(&name)?;
    }
    *lock(&core.state) = super::core::State::Ready;
    look(core)?;
    Ok(bundles)
}

fn read_witness(path: &Path) -> Option<Epoch> {
    Epoch::parse(std::fs::read_to_string(path).ok()?.trim())
}

/// Whole or not at all.
fn write_witness(path: &Path, epoch: &Epoch) -> Result<()> {
    let draft = path.with_extension("new");
    files::remove(&draft)?;
    let mut file = files::create_private(&draft)?;
    writeln!(file, "{epoch}")
        .and_then(|()| file.sync_all())
        .map_err(StoreError::file("write", &draft))?;
    std::fs::rename(&draft, path).map_err(StoreError::file("rename", &draft))?;
    files::sync_parent(path)
}
