//! Moving the epoch on: once a minute by itself, and by a renewal.

use super::agreement::{disagree, epochs, look, object, sound};
use super::core::{BUNDLES, Core, EPOCHS, State, lock};
use super::database::{Fault, Outcome};
use super::epoch::{self, Epoch};
use super::rows;
use crate::error::Result;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

const LOCK: &str = "SELECT pg_advisory_lock(hashtext('primer epoch'))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtext('primer epoch'))";

/// Moves the epoch on, unless another replica does or did less than `age` seconds ago.
pub(super) fn advance(core: &Core, age: f64) -> Result<()> {
    core.database.with(async |client| {
        let lock = "SELECT pg_try_advisory_lock(hashtext('primer epoch')), \
                    moved <= now() - make_interval(secs => $1) FROM primer_about";
        let rows = client.query_typed(lock, &[(&age, Type::FLOAT8)]).await?;
        let (mine, due) = rows
            .first()
            .map_or((false, false), |row| (row.get(0), row.get(1)));
        // A session that fails is closed, which releases its lock.
        if mine && due {
            move_on(core, client).await?;
        }
        if mine {
            client.batch_execute(UNLOCK).await?;
        }
        Ok(())
    })
}

async fn move_on(core: &Core, client: &impl GenericClient) -> Outcome<()> {
    let current = sound(core, client).await?.current;
    let names = core.blobs.list(EPOCHS).await?;
    epoch::agree(&current, &epochs(&names)).map_err(disagree)?;
    let next = current.after(0);
    core.blobs.put(&object(&next), &[]).await?;
    let (numbers, nonces) = (
        [current.number, next.number].map(rows::signed),
        [current.nonce.to_vec(), next.nonce.to_vec()],
    );
    let values: [(&(dyn ToSql + Sync), Type); 4] = [
        (&numbers[0], Type::INT8),
        (&nonces[0], Type::BYTEA),
        (&numbers[1], Type::INT8),
        (&nonces[1], Type::BYTEA),
    ];
    let sql = "UPDATE primer_about SET number = $3, nonce = $4, next_number = NULL, \
               next_nonce = NULL, moved = now() WHERE number = $1 AND nonce = $2 RETURNING 1";
    if client.query_typed(sql, &values).await?.is_empty() {
        let fault = "another replica moved the epoch on at the same moment";
        return Err(Fault::Store(disagree(fault)));
    }
    leave_only(core, &next, &names).await
}

/// Deletes the objects of all other epochs.
async fn leave_only(core: &Core, epoch: &Epoch, names: &[String]) -> Outcome<()> {
    for name in names.iter().filter(|name| **name != object(epoch)) {
        core.blobs.delete(name).await?;
    }
    Ok(())
}

/// Renews the store after a restored backup: buries all bundles and brings database and blobs to an
/// epoch that no replica can have seen. Returns how many bundles there were.
///
/// The burial and the note of the renewal are one transaction: a replica that finds the note knows
/// that all earlier bundles are gone.
pub(super) fn renew(core: &Core, now: u64) -> Result<u64> {
    let bundles = core.database.with(async |client| {
        client.batch_execute(LOCK).await?;
        let names = core.blobs.list(EPOCHS).await?;
        let current = match rows::recorded(client, None).await? {
            Some((recorded, _)) => recorded.current,
            None => Epoch::first(),
        };
        // Earlier numbers grew by one a minute, so none has come as far as the clock, unless a
        // clock was wrong.
        let floors = "SELECT coalesce(max(greatest(seen, found, at)), 0) AS floor \
                      FROM primer_rollbacks";
        let rows = client.query_typed(floors, &[]).await?;
        let floor = rows
            .first()
            .map_or(Ok(0), |row| rows::number(row, "floor"))?;
        let own = lock(&core.latch)
            .as_ref()
            .map(|latch| latch.rollback.floor());
        let above = epochs(&names).iter().map(|epoch| epoch.number).max();
        let seen = core.seen().map(|seen| seen.number);
        let others = [above, own, seen, Some(floor), Some(now)];
        let next = current.after(others.into_iter().flatten().max().unwrap_or(now));
        core.blobs.put(&object(&next), &[]).await?;

        let change = client.transaction().await?;
        let bundles = bury_all(&change, now).await?;
        record_renewal(&change, &next).await?;
        change.commit().await?;
        leave_only(core, &next, &names).await?;
        client.batch_execute(UNLOCK).await?;
        Ok(bundles)
    })?;
    for name in core.blobs.list_now(BUNDLES)? {
        core.blobs.delete_now(&name)?;
    }
    *lock(&core.state) = State::Ready;
    look(core)?;
    Ok(bundles)
}

async fn bury_all(client: &impl GenericClient, now: u64) -> Outcome<u64> {
    let (now, grace) = (rows::signed(now), rows::signed(crate::GRACE_SECONDS));
    let values: [(&(dyn ToSql + Sync), Type); 2] = [(&now, Type::INT8), (&grace, Type::INT8)];
    let bury = "WITH gone AS (DELETE FROM primer_bundles RETURNING id, peer, expires) \
                INSERT INTO primer_past (id, peer, fate, spends, at, until) \
                SELECT id, peer, 1, 0, $1, greatest(expires, $1) + $2 FROM gone \
                ON CONFLICT (id) DO NOTHING RETURNING 1";
    Ok(client.query_typed(bury, &values).await?.len() as u64)
}

/// Makes a renewal the current epoch, and answers all rollbacks on record.
async fn record_renewal(client: &impl GenericClient, to: &Epoch) -> Outcome<()> {
    let (store, nonce) = (to.store.to_vec(), to.nonce.to_vec());
    let number = rows::signed(to.number);
    let values: [(&(dyn ToSql + Sync), Type); 3] = [
        (&store, Type::BYTEA),
        (&number, Type::INT8),
        (&nonce, Type::BYTEA),
    ];
    let sql = "INSERT INTO primer_about (store, number, nonce, renewed) VALUES ($1, $2, $3, $2) \
               ON CONFLICT (one) DO UPDATE SET number = $2, nonce = $3, renewed = $2, \
               next_number = NULL, next_nonce = NULL, moved = now()";
    client.query_typed(sql, &values).await?;
    client.batch_execute("DELETE FROM primer_rollbacks").await?;
    Ok(())
}
