//! One replica's view of a shared store: what [`crate::Store`] does, done with tables and objects.

use super::core::{Core, Runtime, State, lock};
use super::database::Database;
use super::keeper::{self, Chore, Keeper};
use super::rows::{self, PAST, STORED, Stored};
use super::sweep::{self, Swept};
use super::witness::Witness;
use super::{FleetOptions, agreement, counts, drafts, moves, quotas, schema, spending};
use crate::counts::{Charge, Counting, Counts, PASSING_ACCOUNTS};
use crate::draft::Draft;
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::quota::{Bounds, Reservation};
use crate::record::{Entry, Fate, Meta, Past, Removed, StoredAmount, Usage};
use crate::spent::Spent;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// A replica's place in a shared store. Dropping the last clone gives it back.
#[derive(Clone)]
pub struct Fleet {
    core: Arc<Core>,
    keeper: Arc<Keeper>,
}

/// A value for a query, and its type.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

impl Fleet {
    pub(crate) fn join(options: FleetOptions) -> Result<Self> {
        let (core, chores) = open(options)?;
        agreement::begin(&core)?;
        check_keys(&core)?;
        Self::begin(core, chores)
    }

    /// Renews a store whose database or blobs were restored from a backup: deletes all bundles and
    /// brings both to a new epoch, no matter what they say. Returns the store, and how many bundles
    /// there were.
    ///
    /// # Errors
    /// [`StoreError`] if one of them cannot be reached.
    pub fn renew(options: FleetOptions) -> Result<(Self, u64)> {
        let (core, chores) = open(options)?;
        let bundles = moves::renew(&core, crate::unix_now())?;
        Ok((Self::begin(core, chores)?, bundles))
    }

    fn begin(core: Core, chores: mpsc::Receiver<Chore>) -> Result<Self> {
        keeper::renew_lease(&core)?;
        let core = Arc::new(core);
        let keeper = Arc::new(Keeper::start(&core, chores)?);
        Ok(Self { core, keeper })
    }

    /// Deletes orphans of replicas that are gone, as every replica does once a minute anyway.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sweep(&self) -> Result<Swept> {
        sweep::sweep(&self.core, false)
    }

    /// Counts orphans without deleting them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn count_orphans(&self) -> Result<Swept> {
        sweep::sweep(&self.core, true)
    }

    /// Returns the number of the epoch that database and blobs agree on.
    pub fn epoch(&self) -> u64 {
        self.core.seen().map_or(0, |epoch| epoch.number)
    }

    /// Moves the epoch on now, as happens once a minute anyway.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn next_epoch(&self) -> Result<()> {
        moves::advance(&self.core, 0.0)?;
        agreement::look(&self.core)
    }

    /// Returns the names of the replicas that are alive.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn replicas(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM primer_replicas ORDER BY name";
        self.rows(sql, &[], |row| {
            let name: Option<String> = row.try_get(0).ok();
            Ok(name.unwrap_or_default())
        })
    }

    pub(crate) fn leave(&self) {
        self.keeper.stop();
    }

    pub(crate) fn ready(&self) -> Result<()> {
        let state = lock(&self.core.state);
        let fault = match (&*state, state.refusal()) {
            (State::Ready, _) => match self.core.silent() {
                None => return Ok(()),
                Some(silence) => {
                    let seconds = silence.as_secs();
                    format!("the store's database or blobs have not answered for {seconds} s")
                }
            },
            (State::OutOfReach(fault), _) => fault.clone(),
            (_, refusal) => refusal.map(|error| error.to_string()).unwrap_or_default(),
        };
        Err(StoreError::NotReady { fault })
    }

    pub(crate) fn is_rolled_back(&self) -> bool {
        matches!(&*lock(&self.core.state), State::RolledBack(_))
    }

    /// Reports what the keeper found: marks are the database's, and the lease is renewed by a
    /// commit.
    pub(crate) fn check_mark(&self) -> Result<()> {
        self.ready()
    }

    pub(crate) fn free(&self) -> Result<Option<u64>> {
        self.core.blobs.free()
    }

    pub(crate) fn held(&self) -> Result<StoredAmount> {
        let sql = "SELECT count(*) AS bundles, coalesce(sum(file_bytes), 0)::bigint AS bytes \
                   FROM primer_bundles";
        let held = self.rows(sql, &[], |row| {
            Ok(StoredAmount {
                bundles: rows::number(row, "bundles")?,
                bytes: rows::number(row, "bytes")?,
            })
        })?;
        Ok(held.into_iter().next().unwrap_or_default())
    }

    pub(crate) fn place(&self) -> String {
        let core = &self.core;
        format!("{} and {}", core.database.place(), core.blobs.url())
    }

    /// Runs a query, and reads each row of the answer.
    fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.core.database.with(async |client| {
            let rows = client.query_typed(sql, values).await?;
            Ok(rows.iter().map(read).collect::<Result<_>>()?)
        })
    }

    fn stored(&self, id: BundleId) -> Result<Option<(Stored, Vec<u8>)>> {
        let id = id.as_bytes().to_vec();
        let sql = format!("SELECT {STORED}, attachment FROM primer_bundles WHERE id = $1");
        let found = self.rows(&sql, &[(&id, Type::BYTEA)], |row| {
            let attachment: Option<Vec<u8>> = row.try_get("attachment").ok();
            Ok((rows::stored(row)?, attachment.unwrap_or_default()))
        })?;
        Ok(found.into_iter().next())
    }

    pub(crate) fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        let Some((stored, _)) = self.stored(id)? else {
            return Ok(None);
        };
        // Reported before the peer spends its half.
        match self.core.keys.named(stored.key.as_deref()) {
            Some(_) => Ok(Some(stored.entry)),
            None => Err(StoreError::OtherKeys { bundles: 1 }),
        }
    }

    pub(crate) fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        Ok(self.stored(id)?.map(|(_, attachment)| attachment))
    }

    pub(crate) fn past(&self, id: BundleId) -> Result<Option<Past>> {
        let id = id.as_bytes().to_vec();
        let sql = format!("SELECT {PAST} FROM primer_past WHERE id = $1");
        let found = self.rows(&sql, &[(&id, Type::BYTEA)], rows::past)?;
        Ok(found.into_iter().next())
    }

    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let sql = format!("SELECT {STORED} FROM primer_bundles ORDER BY expires, id");
        self.rows(&sql, &[], |row| Ok(rows::stored(row)?.entry))
    }

    pub(crate) fn list_of(&self, peer: &[u8; 32]) -> Result<Vec<Entry>> {
        let peer = peer.to_vec();
        let sql =
            format!("SELECT {STORED} FROM primer_bundles WHERE peer = $1 ORDER BY expires, id");
        self.rows(&sql, &[(&peer, Type::BYTEA)], |row| {
            Ok(rows::stored(row)?.entry)
        })
    }

    pub(crate) fn history(&self) -> Result<Vec<Past>> {
        self.rows(&format!("SELECT {PAST} FROM primer_past"), &[], rows::past)
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        let sql = "SELECT peer, count(*) AS bundles, sum(file_bytes)::bigint AS bytes \
                   FROM primer_bundles GROUP BY peer";
        let held = self.rows(sql, &[], |row| {
            let held = StoredAmount {
                bundles: rows::number(row, "bundles")?,
                bytes: rows::number(row, "bytes")?,
            };
            Ok((rows::fixed(row, "peer")?, held))
        })?;
        let sql = "SELECT count(*) AS past FROM primer_past";
        let past = self.rows(sql, &[], |row| rows::number(row, "past"))?;
        let mut usage = Usage {
            tombstones: past.first().copied().unwrap_or(0),
            ..Usage::default()
        };
        for (peer, held) in held {
            usage.total.bundles += held.bundles;
            usage.total.bytes = usage.total.bytes.saturating_add(held.bytes);
            usage.peers.insert(peer, held);
        }
        Ok(usage)
    }

    pub(crate) fn draft(&self, meta: Meta) -> Result<Draft> {
        self.core.check_agreement()?;
        if self.entry(meta.id)?.is_some() || self.past(meta.id)?.is_some() {
            return Err(StoreError::Taken { id: meta.id });
        }
        drafts::begin(&self.core, meta)
    }

    pub(crate) fn count(&self, charge: &Charge, now: u64) -> Result<()> {
        counts::count(&self.core, charge, now)
    }

    pub(crate) fn counts(&self, account: &[u8; 32]) -> Result<Counts> {
        let found = counts::list(&self.core, Some(account))?;
        Ok(found.first().map(|one| one.counts).unwrap_or_default())
    }

    pub(crate) fn all_counts(&self) -> Result<Vec<Counting>> {
        counts::list(&self.core, None)
    }

    pub(crate) fn spend(
        &self,
        id: BundleId,
        peer: &[u8; 32],
        charge: Option<&Charge>,
        now: u64,
    ) -> Result<Spent> {
        let found = self.stored(id)?;
        if let Some((stored, attachment)) = found.filter(|(s, _)| s.entry.peer == *peer) {
            let expires = stored.entry.expires;
            if expires <= now {
                return Err(StoreError::Expired { id, expires, now });
            }
            if let Some(spent) = spending::spend(&self.core, stored, attachment, charge, now)? {
                return Ok(spent);
            }
        }
        Err(match self.past(id)?.filter(|past| past.peer == *peer) {
            Some(Past { fate, at, .. }) => StoreError::Gone { id, fate, at },
            None => StoreError::Unknown { id },
        })
    }

    pub(crate) fn reserve(
        &self,
        peer: &[u8; 32],
        needed: u64,
        bounds: Bounds,
    ) -> Result<Reservation> {
        quotas::reserve(&self.core, peer, needed, bounds)
    }

    fn erase_later(&self, id: BundleId, blob: String) {
        self.core.hold(&blob);
        self.core.later(Chore::Erase { id, blob });
    }

    pub(crate) fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        match spending::bury(&self.core, id, Fate::Deleted, None, now)? {
            Some(blob) => {
                self.erase_later(id, blob);
                Ok(())
            }
            None => Err(match self.past(id)? {
                Some(Past { fate, at, .. }) => StoreError::Gone { id, fate, at },
                None => StoreError::Unknown { id },
            }),
        }
    }

    pub(crate) fn delete_expired(&self, now: u64) -> Result<Removed> {
        let limit = rows::signed(now);
        let sql = format!("SELECT {STORED} FROM primer_bundles WHERE expires <= $1");
        let expired = self.rows(&sql, &[(&limit, Type::INT8)], |row| {
            Ok(rows::stored(row)?.entry)
        })?;
        let mut removed = Removed::default();
        for entry in expired {
            // Another replica may be doing the same: each counts the bundles that it won.
            if let Some(blob) = spending::bury(&self.core, entry.id, Fate::Expired, None, now)? {
                removed.bundles += 1;
                removed.bytes += entry.file_bytes;
                self.erase_later(entry.id, blob);
            }
        }
        let sql = "DELETE FROM primer_past WHERE until <= $1 AND blob IS NULL RETURNING 1";
        let forgotten = self.rows(sql, &[(&limit, Type::INT8)], |_| Ok(()))?;
        removed.tombstones = forgotten.len() as u64;
        removed.accounts = counts::forget(&self.core, PASSING_ACCOUNTS)?;
        Ok(removed)
    }
}

/// Connects to both parts, and brings the tables up to date.
fn open(options: FleetOptions) -> Result<(Core, mpsc::Receiver<Chore>)> {
    let runtime = Arc::new(Runtime::start()?);
    let authority = options.authority.as_deref();
    let database = Database::new(&options.database, authority, &options.name, &runtime)?;
    let blobs = super::blobs::Blobs::open(&options.blobs, &runtime)?;
    let witness = Witness::new(options.witness);
    let (seen, latch) = (witness.seen()?, witness.latch(&options.name)?);
    schema::update(&database)?;
    let (chores, receiver) = mpsc::channel();
    let core = Core {
        database,
        blobs,
        keys: options.keys,
        name: options.name,
        replica: Mutex::default(),
        busy: Mutex::default(),
        state: Mutex::new(State::Ready),
        seen: Mutex::new(seen),
        latch: Mutex::new(latch),
        witness,
        looked: Mutex::new(Instant::now()),
        chores,
    };
    Ok((core, receiver))
}

/// Checks that all bundles belong to keys that are here: otherwise clients would lose their halves
/// one by one.
fn check_keys(core: &Core) -> Result<()> {
    let names = core.keys.names();
    let sql = "SELECT count(*) FROM primer_bundles WHERE key IS NOT NULL AND key <> ALL ($1)";
    let others: i64 = core.database.with(async |client| {
        let rows = client
            .query_typed(sql, &[(&names, Type::BYTEA_ARRAY)])
            .await?;
        Ok(rows.first().map_or(0, |row| row.get(0)))
    })?;
    match u64::try_from(others) {
        Ok(0) => Ok(()),
        others => Err(StoreError::OtherKeys {
            bundles: others.unwrap_or(u64::MAX),
        }),
    }
}
