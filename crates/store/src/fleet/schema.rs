//! The tables, and how those of earlier versions become those of this one.
//!
//! Each version is a file of SQL that is part of the program and is applied in one transaction; the
//! table `primer_schema` records which were. A program that finds a version it does not know is
//! older than the store and leaves it alone. Versions only add, so that replicas of the previous
//! version go on working while others start.

use super::database::{Database, Fault};
use crate::error::{Result, StoreError};
use tokio_postgres::types::Type;

/// All versions, oldest first.
const VERSIONS: [&str; 4] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
];

/// Brings the tables to a version. Replicas that start together wait for each other.
pub(super) fn migrate(database: &Database, to: usize) -> Result<()> {
    database.with(async |client| {
        let change = client.transaction().await?;
        change
            .batch_execute(
                "SELECT pg_advisory_xact_lock(hashtext('primer schema')); \
                 CREATE TABLE IF NOT EXISTS primer_schema (\
                 version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())",
            )
            .await?;
        let newest = "SELECT coalesce(max(version), 0) FROM primer_schema";
        let row = change.query_one(newest, &[]).await?;
        let has = usize::try_from(row.get::<_, i32>(0)).unwrap_or(0);
        if has > VERSIONS.len() {
            let fault = format!(
                "its tables have version {has}, and this program knows {} at most",
                VERSIONS.len()
            );
            return Err(Fault::Store(StoreError::Settings { fault }));
        }
        for (version, sql) in (1i32..).zip(VERSIONS).take(to).skip(has) {
            change.batch_execute(sql).await?;
            let note = "INSERT INTO primer_schema (version) VALUES ($1)";
            let version = (
                &version as &(dyn tokio_postgres::types::ToSql + Sync),
                Type::INT4,
            );
            change.query_typed(note, &[version]).await?;
        }
        change.commit().await?;
        Ok(())
    })
}

/// Brings the tables to the version of this program.
pub(super) fn update(database: &Database) -> Result<()> {
    migrate(database, VERSIONS.len())
}
