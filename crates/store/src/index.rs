//! The index: small tables in one redb file, opened for one short operation at a time.
//!
//! The caller holds the store's lock as long as an [`Index`] lives. Every commit is durable when it
//! returns (redb's default), in two phases and with its allocator's state, so that opening after a
//! crash takes no longer than after a clean close, and half a commit cannot pass for a whole one.
//!
//! Opening and closing for writing costs syncs of its own, so an index is opened for reading, and
//! for writing only when there is something to write: a request for something that is not there
//! costs no sync.

use crate::counts::{Account, Charge, Counting, Counts};
use crate::error::{Result, StoreError};
use crate::files;
use crate::id::BundleId;
use crate::record::{Entry, Past, encoded};
use redb::{
    Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable, Table,
    TableDefinition, TableError, WriteTransaction,
};
use std::fs;
use std::path::{Path, PathBuf};

type Definition = TableDefinition<'static, &'static [u8; 16], &'static [u8]>;
const BUNDLES: Definition = TableDefinition::new("bundles");
const ATTACHMENTS: Definition = TableDefinition::new("attachments");
const PAST: Definition = TableDefinition::new("past");
/// By account; a store of an earlier version has none.
const COUNTS: TableDefinition<'static, &'static [u8; 32], &'static [u8]> =
    TableDefinition::new("counts");
const ABOUT: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("about");

/// Entries are small; the default would be sized for a real database.
const CACHE_BYTES: usize = 4 << 20;

pub(crate) struct Index {
    database: Handle,
    path: PathBuf,
}

enum Handle {
    Reading(ReadOnlyDatabase),
    Writing(Database),
}

/// The tables within one transaction.
pub(crate) struct Tables<'t> {
    bundles: Table<'t, &'static [u8; 16], &'static [u8]>,
    attachments: Table<'t, &'static [u8; 16], &'static [u8]>,
    past: Table<'t, &'static [u8; 16], &'static [u8]>,
    counts: Table<'t, &'static [u8; 32], &'static [u8]>,
    path: &'t Path,
}

fn fault<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> StoreError {
    let path = path.to_path_buf();
    move |e| StoreError::Index {
        path,
        source: Box::new(e.into()),
    }
}

impl Index {
    /// Returns the path of a store's index.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join("index.redb")
    }

    /// Makes an empty index, whole or not at all, that remembers which key it belongs to.
    pub(crate) fn create(dir: &Path, key_check: &[u8; 32]) -> Result<()> {
        let path = dir.join("index.new");
        files::remove(&path)?;
        let file = files::create_private(&path)?;
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create_file(file)
            .map_err(fault(&path))?;
        let mut txn = database.begin_write().map_err(fault(&path))?;
        txn.set_quick_repair(true);
        {
            let mut about = txn.open_table(ABOUT).map_err(fault(&path))?;
            about
                .insert("key", key_check.as_slice())
                .map_err(fault(&path))?;
            Tables::open(&txn, &path)?;
        }
        txn.commit().map_err(fault(&path))?;
        drop(database);
        fs::rename(&path, Self::path(dir)).map_err(StoreError::file("rename", &path))?;
        files::sync_dir(dir)
    }

    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let path = Self::path(dir);
        let reading = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .open_read_only(&path);
        let database = match reading {
            Ok(database) => Handle::Reading(database),
            // After a crash it has to be repaired first, which only a writer may do.
            Err(_) => Handle::Writing(open_for_writing(&path)?),
        };
        Ok(Self { database, path })
    }

    pub(crate) fn key_check(&self) -> Result<Vec<u8>> {
        let txn = self.reading()?;
        let about = txn.open_table(ABOUT).map_err(fault(&self.path))?;
        let value = about.get("key").map_err(fault(&self.path))?;
        Ok(value.map(|v| v.value().to_vec()).unwrap_or_default())
    }

    fn reading(&self) -> Result<ReadTransaction> {
        let txn = match &self.database {
            Handle::Reading(database) => database.begin_read(),
            Handle::Writing(database) => database.begin_read(),
        };
        txn.map_err(fault(&self.path))
    }

    /// Runs one transaction: all of it is on the disk when this returns, or none if `change` fails.
    pub(crate) fn change<T>(self, change: impl FnOnce(&mut Tables<'_>) -> Result<T>) -> Result<T> {
        let Self { database, path } = self;
        let database = match database {
            Handle::Writing(database) => database,
            Handle::Reading(database) => {
                drop(database);
                open_for_writing(&path)?
            }
        };
        let mut txn = database.begin_write().map_err(fault(&path))?;
        txn.set_quick_repair(true);
        // Dropped without a commit, the transaction is undone.
        let done = change(&mut Tables::open(&txn, &path)?)?;
        txn.commit().map_err(fault(&path))?;
        Ok(done)
    }

    pub(crate) fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        let value = self.value(BUNDLES, id)?;
        value.map(|v| encoded::decode_entry(id, &v)).transpose()
    }

    pub(crate) fn past(&self, id: BundleId) -> Result<Option<Past>> {
        let value = self.value(PAST, id)?;
        value.map(|v| encoded::decode_past(id, &v)).transpose()
    }

    pub(crate) fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        self.value(ATTACHMENTS, id)
    }

    fn value(&self, table: Definition, id: BundleId) -> Result<Option<Vec<u8>>> {
        let txn = self.reading()?;
        let table = txn.open_table(table).map_err(fault(&self.path))?;
        let value = table.get(id.as_bytes()).map_err(fault(&self.path))?;
        Ok(value.map(|v| v.value().to_vec()))
    }

    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let table = self
            .reading()?
            .open_table(BUNDLES)
            .map_err(fault(&self.path))?;
        collect(&table, &self.path, encoded::decode_entry)
    }

    pub(crate) fn pasts(&self) -> Result<Vec<Past>> {
        let table = self
            .reading()?
            .open_table(PAST)
            .map_err(fault(&self.path))?;
        collect(&table, &self.path, encoded::decode_past)
    }
}

impl Index {
    /// Returns what an account has had: nothing if it is not known.
    pub(crate) fn counts(&self, account: &[u8; 32]) -> Result<Counts> {
        let Some(table) = self.counts_table()? else {
            return Ok(Counts::default());
        };
        let value = table.get(account).map_err(fault(&self.path))?;
        let counting = value.map(|v| encoded::decode_counts(*account, v.value()));
        Ok(counting.transpose()?.map(|c| c.counts).unwrap_or_default())
    }

    pub(crate) fn all_counts(&self) -> Result<Vec<Counting>> {
        let Some(table) = self.counts_table()? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for pair in table.iter().map_err(fault(&self.path))? {
            let (key, value) = pair.map_err(fault(&self.path))?;
            all.push(encoded::decode_counts(*key.value(), value.value())?);
        }
        Ok(all)
    }

    /// Opens the table of counts; none in a store that was made before there were counts, and has
    /// not been written since.
    fn counts_table(&self) -> Result<Option<CountsTable>> {
        match self.reading()?.open_table(COUNTS) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(fault(&self.path)(error)),
        }
    }
}

type CountsTable = redb::ReadOnlyTable<&'static [u8; 32], &'static [u8]>;

fn open_for_writing(path: &Path) -> Result<Database> {
    Database::builder()
        .set_cache_size(CACHE_BYTES)
        .open(path)
        .map_err(fault(path))
}

fn collect<T>(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    path: &Path,
    decode: impl Fn(BundleId, &[u8]) -> Result<T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for pair in table.iter().map_err(fault(path))? {
        let (key, value) = pair.map_err(fault(path))?;
        all.push(decode(BundleId::from_bytes(*key.value()), value.value())?);
    }
    Ok(all)
}

impl<'t> Tables<'t> {
    fn open(txn: &'t WriteTransaction, path: &'t Path) -> Result<Self> {
        Ok(Self {
            bundles: txn.open_table(BUNDLES).map_err(fault(path))?,
            attachments: txn.open_table(ATTACHMENTS).map_err(fault(path))?,
            past: txn.open_table(PAST).map_err(fault(path))?,
            counts: txn.open_table(COUNTS).map_err(fault(path))?,
            path,
        })
    }

    pub(crate) fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        let value = self.bundles.get(id.as_bytes()).map_err(fault(self.path))?;
        value
            .map(|v| encoded::decode_entry(id, v.value()))
            .transpose()
    }

    pub(crate) fn past(&self, id: BundleId) -> Result<Option<Past>> {
        let value = self.past.get(id.as_bytes()).map_err(fault(self.path))?;
        value
            .map(|v| encoded::decode_past(id, v.value()))
            .transpose()
    }

    pub(crate) fn insert(&mut self, entry: &Entry, attachment: &[u8]) -> Result<()> {
        let id = entry.id;
        let record = encoded::encode_entry(entry);
        self.bundles
            .insert(id.as_bytes(), record.as_slice())
            .map_err(fault(self.path))?;
        self.attachments
            .insert(id.as_bytes(), attachment)
            .map_err(fault(self.path))?;
        Ok(())
    }

    /// Turns a stored bundle into a tombstone. Returns the attachment.
    pub(crate) fn bury(&mut self, past: &Past) -> Result<Vec<u8>> {
        let id = past.id;
        let record = encoded::encode_past(past);
        self.bundles
            .remove(id.as_bytes())
            .map_err(fault(self.path))?;
        self.past
            .insert(id.as_bytes(), record.as_slice())
            .map_err(fault(self.path))?;
        let attachment = self
            .attachments
            .remove(id.as_bytes())
            .map_err(fault(self.path))?;
        Ok(attachment.map(|v| v.value().to_vec()).unwrap_or_default())
    }

    /// Forgets a tombstone.
    pub(crate) fn forget(&mut self, id: BundleId) -> Result<()> {
        self.past.remove(id.as_bytes()).map_err(fault(self.path))?;
        Ok(())
    }

    /// Returns the counts after a charge, if it is within what is allowed; nothing is written.
    pub(crate) fn charged(&self, charge: &Charge, now: u64) -> Result<Counts> {
        let id = charge.account.id;
        let value = self.counts.get(&id).map_err(fault(self.path))?;
        let before = value.map(|v| encoded::decode_counts(id, v.value()));
        let before = before.transpose()?.map(|c| c.counts).unwrap_or_default();
        before.with(charge, now)
    }

    pub(crate) fn keep_counts(&mut self, account: &Account, counts: &Counts) -> Result<()> {
        let record = encoded::encode_counts(account, counts);
        self.counts
            .insert(&account.id, record.as_slice())
            .map_err(fault(self.path))?;
        Ok(())
    }

    pub(crate) fn forget_counts(&mut self, account: &Account) -> Result<()> {
        self.counts.remove(&account.id).map_err(fault(self.path))?;
        Ok(())
    }
}
