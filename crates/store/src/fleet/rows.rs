//! What the tables hold, read with care: those who can write to the database are trusted to keep
//! the service up, not to keep its rows well formed.

use super::core::parse_object;
use super::database::Outcome;
use super::epoch::{Epoch, Recorded};
use super::rollback::Rollback;
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::record::{Entry, Fate, Past};
use crate::seal::{HEADER_BYTES, SALT_BYTES, sealed_bytes};
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};
use zeroize::Zeroizing;

/// A row of `primer_bundles`.
pub(super) struct Stored {
    pub(super) entry: Entry,
    /// Which key sealed it.
    pub(super) key: Option<Vec<u8>>,
    pub(super) salt: Zeroizing<[u8; SALT_BYTES]>,
    pub(super) blob: String,
}

pub(super) const STORED: &str =
    "id, peer, program, tokens, created, expires, bytes, file_bytes, key, salt, blob";
pub(super) const PAST: &str = "id, peer, fate, spends, at, until";

fn fault(what: &'static str, bytes: usize) -> StoreError {
    StoreError::Record { what, bytes }
}

pub(super) fn fixed<const N: usize>(row: &Row, column: &str) -> Result<[u8; N]> {
    let bytes: &[u8] = row.try_get(column).map_err(|_| fault("column", 0))?;
    bytes.try_into().map_err(|_| fault("column", bytes.len()))
}

pub(super) fn number(row: &Row, column: &str) -> Result<u64> {
    let number: i64 = row.try_get(column).map_err(|_| fault("column", 0))?;
    u64::try_from(number).map_err(|_| fault("number", 8))
}

fn text(row: &Row, column: &str) -> Result<String> {
    row.try_get(column).map_err(|_| fault("column", 0))
}

pub(super) fn id(row: &Row) -> Result<BundleId> {
    fixed(row, "id").map(BundleId::from_bytes)
}

/// Returns a number as the database stores it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn stored(row: &Row) -> Result<Stored> {
    let tokens = number(row, "tokens")?;
    let entry = Entry {
        id: id(row)?,
        peer: fixed(row, "peer")?,
        program: fixed(row, "program")?,
        tokens: u32::try_from(tokens).map_err(|_| fault("number of tokens", 8))?,
        created: number(row, "created")?,
        expires: number(row, "expires")?,
        bytes: number(row, "bytes")?,
        file_bytes: number(row, "file_bytes")?,
    };
    // The lengths must follow from each other, and the object be this bundle's: nothing else is
    // opened.
    let sealed = entry.file_bytes.checked_sub(HEADER_BYTES as u64);
    if entry.bytes > i64::MAX as u64 / 2 || sealed != Some(sealed_bytes(entry.bytes)) {
        return Err(fault("length of a bundle", 8));
    }
    let blob = text(row, "blob")?;
    if parse_object(&blob).is_none_or(|(of, _)| of != entry.id) {
        return Err(fault("name of an object", blob.len()));
    }
    Ok(Stored {
        entry,
        key: row.try_get("key").map_err(|_| fault("column", 0))?,
        salt: Zeroizing::new(fixed(row, "salt")?),
        blob,
    })
}

pub(super) fn fate_number(fate: Fate) -> i16 {
    match fate {
        Fate::Spent => 0,
        Fate::Deleted => 1,
        Fate::Expired => 2,
        Fate::Damaged => 3,
    }
}

pub(super) fn past(row: &Row) -> Result<Past> {
    let fate: i16 = row.try_get("fate").map_err(|_| fault("column", 0))?;
    let spends: i32 = row.try_get("spends").map_err(|_| fault("column", 0))?;
    Ok(Past {
        id: id(row)?,
        peer: fixed(row, "peer")?,
        fate: match fate {
            0 => Fate::Spent,
            1 => Fate::Deleted,
            2 => Fate::Expired,
            3 => Fate::Damaged,
            _ => return Err(fault("fate", 2)),
        },
        spends: u32::try_from(spends).map_err(|_| fault("number of spends", 4))?,
        at: number(row, "at")?,
        until: number(row, "until")?,
    })
}

/// Reads the epoch of the database, if it has one, with what the chain says of the one that was
/// seen; and the first rollback that some replica noticed and no renewal has answered.
pub(super) async fn recorded(
    client: &impl GenericClient,
    seen: Option<&Epoch>,
) -> Outcome<Option<(Recorded, Option<Rollback>)>> {
    let seen = signed(seen.map_or(0, |seen| seen.number));
    let sql = "SELECT store, number, nonce, renewed, chained, known.*, \
               (SELECT min(number) FROM primer_epochs) AS oldest, \
               (SELECT nonce FROM primer_epochs WHERE number = $1) AS passed \
               FROM primer_about LEFT JOIN LATERAL (SELECT replica, seen, found, at \
               FROM primer_rollbacks WHERE greatest(seen, found, at) >= renewed \
               ORDER BY at LIMIT 1) AS known ON true";
    let rows = client.query_typed(sql, &[(&seen, Type::INT8)]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let passed: Option<&[u8]> = row.try_get("passed")?;
    let replica: Option<String> = row.try_get("replica")?;
    let known = replica.map(|replica| -> Result<_> {
        Ok(Rollback {
            replica,
            seen: number(row, "seen")?,
            found: number(row, "found")?,
            at: number(row, "at")?,
        })
    });
    let recorded = Recorded {
        current: Epoch {
            store: fixed(row, "store")?,
            number: number(row, "number")?,
            nonce: fixed(row, "nonce")?,
        },
        renewed: number(row, "renewed")?,
        chained: number(row, "chained")?,
        oldest: number(row, "oldest")?,
        passed: passed.and_then(|nonce| nonce.try_into().ok()),
    };
    Ok(Some((recorded, known.transpose()?)))
}
