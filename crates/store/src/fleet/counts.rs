//! Counts that last, of all replicas together: a row for each account.
//!
//! A transaction that counts holds the account's row until it ends, so of two replicas that spend
//! for one account the second sees what the first one counted. The account's row is locked before
//! the bundle's: two that spend wait for each other in one order.

use super::core::Core;
use super::database::Outcome;
use super::rows;
use crate::counts::{Account, Charge, Counting, Counts, Tally};
use crate::error::{Result, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

const COUNTS: &str = "account, lasting, prepared, prepared_day, prepared_on_day, answers, \
                      answers_day, answers_on_day, changed";

fn counting(row: &Row) -> Result<Counting> {
    let tally = |in_all, day, on_day| -> Result<Tally> {
        Ok(Tally {
            in_all: rows::number(row, in_all)?,
            day: rows::number(row, day)?,
            on_day: rows::number(row, on_day)?,
        })
    };
    Ok(Counting {
        account: Account {
            id: rows::fixed(row, "account")?,
            lasting: row.try_get("lasting").map_err(|_| StoreError::Record {
                what: "column",
                bytes: 0,
            })?,
        },
        counts: Counts {
            prepared: tally("prepared", "prepared_day", "prepared_on_day")?,
            answers: tally("answers", "answers_day", "answers_on_day")?,
            changed: rows::number(row, "changed")?,
        },
    })
}

/// Returns the counts after a charge, if it is within what is allowed; the account's row is locked
/// until the transaction ends.
pub(super) async fn charged(
    change: &Transaction<'_>,
    charge: &Charge,
    now: u64,
) -> Outcome<Counts> {
    let id = charge.account.id.to_vec();
    let insert = "INSERT INTO primer_counts (account, lasting) VALUES ($1, $2) \
                  ON CONFLICT (account) DO NOTHING";
    let values: [(&(dyn ToSql + Sync), Type); 2] =
        [(&id, Type::BYTEA), (&charge.account.lasting, Type::BOOL)];
    change.query_typed(insert, &values).await?;
    let own = format!("SELECT {COUNTS} FROM primer_counts WHERE account = $1 FOR UPDATE");
    let found = change.query_typed(&own, &[(&id, Type::BYTEA)]).await?;
    // A sweep may have forgotten it between the two.
    let before = found.first().map(counting).transpose()?;
    let before = before.map(|one| one.counts).unwrap_or_default();
    Ok(before.with(charge, now)?)
}

/// Writes counts, to last with the transaction.
pub(super) async fn keep(
    change: &Transaction<'_>,
    account: &Account,
    counts: &Counts,
) -> Outcome<()> {
    let id = account.id.to_vec();
    let numbers = [
        counts.prepared.in_all,
        counts.prepared.day,
        counts.prepared.on_day,
        counts.answers.in_all,
        counts.answers.day,
        counts.answers.on_day,
        counts.changed,
    ];
    let numbers = numbers.map(rows::signed);
    let mut values: Vec<(&(dyn ToSql + Sync), Type)> =
        vec![(&id, Type::BYTEA), (&account.lasting, Type::BOOL)];
    values.extend(
        numbers
            .iter()
            .map(|n| (n as &(dyn ToSql + Sync), Type::INT8)),
    );
    let sql = format!(
        "INSERT INTO primer_counts ({COUNTS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (account) DO UPDATE SET lasting = excluded.lasting, \
         prepared = excluded.prepared, prepared_day = excluded.prepared_day, \
         prepared_on_day = excluded.prepared_on_day, answers = excluded.answers, \
         answers_day = excluded.answers_day, answers_on_day = excluded.answers_on_day, \
         changed = excluded.changed"
    );
    change.query_typed(&sql, &values).await?;
    Ok(())
}

/// Counts something; it is durable when this returns.
pub(super) fn count(core: &Core, charge: &Charge, now: u64) -> Result<()> {
    core.check_agreement()?;
    core.database.with(async |client| {
        let change = client.transaction().await?;
        let counts = charged(&change, charge, now).await?;
        keep(&change, &charge.account, &counts).await?;
        change.commit().await?;
        Ok(())
    })
}

/// Returns what was counted: for one account, or for all.
pub(super) fn list(core: &Core, account: Option<&[u8; 32]>) -> Result<Vec<Counting>> {
    let id = account.map(|id| id.to_vec());
    let sql = format!("SELECT {COUNTS} FROM primer_counts WHERE $1::bytea IS NULL OR account = $1");
    core.database.with(async |client| {
        let found = client.query_typed(&sql, &[(&id, Type::BYTEA)]).await?;
        Ok(found.iter().map(counting).collect::<Result<_>>()?)
    })
}

/// Forgets the passing accounts that have been idle longest, so that `keep` stay; returns how many
/// went.
///
/// An account that another transaction is charging is waited for, and then compared again as it is
/// by then: it stays, since it is not what was chosen. (`changed` alone may be the same as before,
/// within a second or after a clock was set back.)
pub(super) fn forget(core: &Core, keep: usize) -> Result<u64> {
    let keep = rows::signed(keep as u64);
    let sql = "DELETE FROM primer_counts WHERE NOT lasting AND \
               (account, changed, prepared, answers) IN \
               (SELECT account, changed, prepared, answers FROM primer_counts WHERE NOT lasting \
               ORDER BY changed DESC, account DESC OFFSET $1) RETURNING 1";
    core.database.with(async |client| {
        let gone = client.query_typed(sql, &[(&keep, Type::INT8)]).await?;
        Ok(gone.len() as u64)
    })
}
