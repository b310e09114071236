//! Sessions with the database: a few that are kept, each set up and checked before it is used.

use super::core::{Runtime, lock};
use super::tls;
use crate::error::{Result, StoreError};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long one piece of work may take, including the wait for a session.
const LIMIT: Duration = Duration::from_secs(10);
/// Sessions that are kept for the next piece of work.
const KEPT: usize = 16;
/// How long a session may be idle before it is asked whether it is still there.
const FRESH: Duration = Duration::from_millis(500);

/// What each session is told first. Regardless of the database's own settings, a commit of ours is
/// on its disk, and on its synchronous standbys', before it is answered; nothing of ours waits for
/// ever, and a replica that dies holds no lock for long.
const SETTINGS: &str = "\
    SET synchronous_commit = on; SET statement_timeout = '9s'; SET lock_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET default_transaction_isolation = \
    'read committed'; SET default_transaction_read_only = off; SET client_min_messages = warning";

/// What a session must then report.
const CHECKED: &str = "\
    SELECT name, setting FROM pg_settings WHERE name IN \
    ('fsync', 'full_page_writes', 'synchronous_commit', 'server_version_num') \
    UNION ALL SELECT 'standby', pg_is_in_recovery()::text";

/// What work on the database results in.
pub(super) type Outcome<T> = std::result::Result<T, Fault>;

/// Why work on the database failed.
pub(super) enum Fault {
    /// The database reported it.
    Database(tokio_postgres::Error),
    /// We found it.
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn fault(fault: impl Into<String>) -> StoreError {
    StoreError::Shared {
        part: "database",
        fault: fault.into(),
    }
}

impl From<Fault> for StoreError {
    fn from(error: Fault) -> Self {
        match error {
            Fault::Store(error) => error,
            Fault::Database(error) => match error.as_db_error() {
                Some(told) => fault(format!("{} ({})", told.message(), told.code().code())),
                // "error connecting to server" says less than its cause.
                None => {
                    let cause = std::error::Error::source(&error);
                    fault(cause.map_or_else(|| error.to_string(), |c| format!("{error}: {c}")))
                }
            },
        }
    }
}

/// The database of a shared store.
pub(super) struct Database {
    runtime: Arc<Runtime>,
    config: Config,
    tls: MakeRustlsConnect,
    idle: Mutex<Vec<(Instant, Client)>>,
}

impl Database {
    pub(super) fn new(
        url: &str,
        authority: Option<&Path>,
        name: &str,
        runtime: &Arc<Runtime>,
    ) -> Result<Self> {
        let mut config = tls::parse(url)?;
        config
            .connect_timeout(Duration::from_secs(3))
            .tcp_user_timeout(Duration::from_secs(10))
            .keepalives_idle(Duration::from_secs(10))
            .application_name(format!("primer {name}"));
        Ok(Self {
            runtime: Arc::clone(runtime),
            config,
            tls: tls::connector(authority)?,
            idle: Mutex::default(),
        })
    }

    pub(super) fn place(&self) -> String {
        tls::place(&self.config)
    }

    /// Does some work in a session. A session whose work failed is not used again.
    pub(super) fn with<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Outcome<T>) -> Result<T> {
        let all = async {
            let mut client = self.session().await?;
            let done = work(&mut client).await?;
            let mut idle = lock(&self.idle);
            if idle.len() < KEPT && !client.is_closed() {
                idle.push((Instant::now(), client));
            }
            Ok(done)
        };
        match self.runtime.within(LIMIT, all) {
            Some(done) => done.map_err(|error: Fault| error.into()),
            None => Err(fault(format!("no answer within {} s", LIMIT.as_secs()))),
        }
    }

    /// Returns a session that is up.
    async fn session(&self) -> Outcome<Client> {
        loop {
            let kept = lock(&self.idle).pop();
            let Some((since, client)) = kept else {
                return self.connect().await;
            };
            let there = match since.elapsed() < FRESH {
                true => !client.is_closed(),
                false => client.simple_query("").await.is_ok(),
            };
            if there {
                return Ok(client);
            }
        }
    }

    async fn connect(&self) -> Outcome<Client> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        // It ends when the client is dropped or the database goes away; the client then reports
        // that.
        self.runtime.handle().spawn(async {
            let _ = connection.await;
        });
        client.batch_execute(SETTINGS).await?;
        let found = client.simple_query(CHECKED).await?;
        let found = found.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some((row.get(0)?, row.get(1)?)),
            _ => None,
        });
        check(&found.collect::<Vec<_>>())?;
        Ok(client)
    }
}

/// Checks that a database with these settings keeps what it was told.
fn check(settings: &[(&str, &str)]) -> Result<()> {
    let get = |name: &str| settings.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let must = |name: &str, wanted: &str, why: &str| match get(name) {
        Some(value) if value == wanted => Ok(()),
        value => {
            let value = value.unwrap_or("unknown");
            let fault = format!("{name} is {value} and must be {wanted}: {why}");
            Err(StoreError::Settings { fault })
        }
    };
    must("standby", "false", "give the address of the primary")?;
    let lost = "a power cut could bring spent bundles back";
    must("fsync", "on", lost)?;
    must("full_page_writes", "on", lost)?;
    must("synchronous_commit", "on", lost)?;
    match get("server_version_num").and_then(|v| v.parse::<u32>().ok()) {
        Some(version) if version >= 130_000 => Ok(()),
        _ => Err(StoreError::Settings {
            fault: "PostgreSQL 13 or later is needed".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_forgets_is_refused_by_the_name_of_the_setting() {
        let good = [
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            ("server_version_num", "150018"),
            ("standby", "false"),
        ];
        assert!(check(&good).is_ok());
        for (at, (name, _)) in good.iter().enumerate().take(3) {
            let mut bad = good;
            bad[at].1 = "off";
            let error = check(&bad).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is off")), "{error}");
        }
        let mut old = good;
        old[3].1 = "120022";
        assert!(check(&old).is_err());
        let mut standby = good;
        standby[4].1 = "true";
        let error = check(&standby).unwrap_err().to_string();
        assert!(error.contains("standby"), "{error}");
        assert!(check(&good[1..]).is_err());
    }
}
