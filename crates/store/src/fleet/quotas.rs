//! How much may be left in a shared store, counting what all replicas are writing.

use super::bundles::Value;
use super::core::Core;
use super::keeper::Chore;
use super::rows;
use crate::error::{Result, StoreError};
use crate::quota::{Bounds, Reservation};
use std::sync::Arc;
use tokio_postgres::types::Type;

/// Sets bytes aside until the reservation is dropped, or this replica is taken for dead.
pub(super) fn reserve(
    core: &Arc<Core>,
    peer: &[u8; 32],
    needed: u64,
    bounds: Bounds,
) -> Result<Reservation> {
    core.blobs.check_room(needed)?;
    let (peer, replica) = (peer.to_vec(), core.replica().to_vec());
    let bytes = rows::signed(needed);
    let reservation = core.database.with(async |client| {
        // Replicas set bytes aside one after the other, so that two cannot both take the last ones.
        let change = client.transaction().await?;
        let wait = "SELECT pg_advisory_xact_lock(hashtext('primer quota'))";
        change.batch_execute(wait).await?;
        let sum = "SELECT coalesce(sum(bytes), 0)::bigint AS every, \
                   coalesce(sum(bytes) FILTER (WHERE peer = $1), 0)::bigint AS own FROM (\
                   SELECT peer, file_bytes AS bytes FROM primer_bundles UNION ALL \
                   SELECT peer, bytes FROM primer_reservations) AS held";
        let rows = change.query_typed(sum, &[(&peer, Type::BYTEA)]).await?;
        let row = rows.first().ok_or(StoreError::Record {
            what: "sum",
            bytes: 0,
        })?;
        let (own, every) = (rows::number(row, "own")?, rows::number(row, "every")?);
        bounds.check(needed, own, every)?;
        let insert = "INSERT INTO primer_reservations (replica, peer, bytes) \
                      VALUES ($1, $2, $3) RETURNING id";
        let values: [Value<'_>; 3] = [
            (&replica, Type::BYTEA),
            (&peer, Type::BYTEA),
            (&bytes, Type::INT8),
        ];
        let rows = change.query_typed(insert, &values).await?;
        let reservation: i64 = rows.first().map_or(0, |row| row.get(0));
        change.commit().await?;
        Ok(reservation)
    })?;
    Ok(Reservation::new(SetAside {
        core: Arc::clone(core),
        reservation,
    }))
}

/// Bytes set aside in the database.
struct SetAside {
    core: Arc<Core>,
    reservation: i64,
}

impl Drop for SetAside {
    fn drop(&mut self) {
        let reservation = self.reservation;
        self.core.later(Chore::Release { reservation });
    }
}
