//! The embedded engine: a directory with an index and bulk files. Every operation takes one short
//! turn under the lock, from its first read of the index to its last change of a file. Locks are
//! `flock`s: they end with the process that held them. Drafting and reading, which last long,
//! happen outside.
//!
//! # Why a bundle is spent once
//!
//! **Storing** (`draft` … `commit`):
//!
//! 1. the bulk goes to a draft under a name of its own; `fsync` of the file;
//! 2. under the lock: the name must be neither stored nor past; rename to `<id>.bundle`; `fsync` of
//!    the directory;
//! 3. one index transaction; durable when `commit` returns.
//!
//! Killed before 3 is durable, there is no bundle; the next `open` removes the file (a draft only
//! if its writer's lock is gone). After 3, the file it names was durable before it.
//!
//! **Spending** (`spend`), under the lock:
//!
//! 1. the entry must exist, be the peer's and not be expired; the file is opened, its length and
//!    magic checked, the salt read;
//! 2. one index transaction: entry and attachment out, tombstone in. *Durable before anything else
//!    happens.*
//! 3. the salt is overwritten in place, `fdatasync`; the file is unlinked, its handle kept;
//! 4. the handle and the key, in memory only, are returned as [`Spent`], which cannot be cloned.
//!
//! Killed before 2 is durable: nothing was given out, the bundle is as it was. Killed after: the
//! index says spent, for ever; the next `open` erases what 3 had left. So a bundle that was given
//! out is always marked, and a marked one is never given out. Of two processes that reach for it at
//! once, the second waits at the lock, finds the tombstone and learns *when* it was spent. A
//! transaction whose commit reports an error gives nothing out either, though the bundle may be
//! lost. The index is redb with two-phase commit: a torn commit is detected and undone. Names stay
//! taken seven days beyond expiry, then the tombstone goes; by then the file and the entry are long
//! gone.

mod counts;

use crate::counts::{Charge, PASSING_ACCOUNTS};
use crate::draft::Draft;
use crate::error::{Result, StoreError};
use crate::files::{self, StoreKey};
use crate::id::BundleId;
use crate::index::{Index, Tables};
use crate::quota::{Bounds, Quota, Reservation};
use crate::record::{Entry, Fate, Meta, Past, Removed, StoredAmount, Usage, tombstone};
use crate::seal::{BundleKey, HEADER_BYTES, MAGIC, SALT_BYTES, file_bytes};
use crate::sealed::{self, Bulk};
use crate::space;
use crate::spent::Spent;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the store's key is, or will be made: beside the store by default. Elsewhere (another
    /// disk, a memory file system, a place that backups leave out) it keeps the bundles closed to
    /// anyone who gets only the store.
    pub key_file: Option<PathBuf>,
    /// How long an operation waits while another process holds the lock.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key_file: None,
            patience: Duration::from_secs(10),
        }
    }
}

/// A directory of bundles.
#[derive(Clone)]
pub(crate) struct Local(Arc<Shared>);

pub(crate) struct Shared {
    dir: PathBuf,
    key: StoreKey,
    patience: Duration,
    quota: Arc<Quota>,
    /// Threads queue here, processes at the lock file.
    turn: Mutex<()>,
}

/// The lock, and the index open under it.
struct Turn<'s> {
    // The index is closed before others may open it: so it comes first here, and last where a turn
    // is taken apart.
    index: Index,
    lock: Lock<'s>,
}

/// The lock alone: kept while bulk files follow what the index says.
struct Lock<'s> {
    _file: File,
    _turn: MutexGuard<'s, ()>,
}

/// A bulk file found to be whole, before its bundle is marked as spent.
struct Found {
    path: PathBuf,
    file: File,
    salt: Zeroizing<[u8; SALT_BYTES]>,
}

impl Local {
    /// Opens a store as [`Options`] say, and removes what a killed process left behind.
    pub(crate) fn open(dir: &Path, options: &Options) -> Result<Self> {
        files::make_private_dir(dir)?;
        files::make_private_dir(&dir.join("bundles"))?;
        let key_file = match &options.key_file {
            Some(path) => path.clone(),
            None => dir.join("key"),
        };
        let lock = files::lock(dir, options.patience)?;
        let is_new = !Index::path(dir).exists();
        let key = files::load_key(&key_file, is_new)?;
        let check = files::key_check(&key);
        if is_new {
            Index::create(dir, &check)?;
        }
        let index = Index::open(dir)?;
        if index.key_check()? != check {
            return Err(StoreError::WrongKey {
                path: dir.to_path_buf(),
                key_file,
            });
        }
        let shared = Shared {
            dir: dir.to_path_buf(),
            key,
            patience: options.patience,
            quota: Arc::default(),
            turn: Mutex::new(()),
        };
        shared.sweep(&index)?;
        drop((index, lock));
        Ok(Self(Arc::new(shared)))
    }

    pub(crate) fn place(&self) -> String {
        self.0.dir.display().to_string()
    }

    pub(crate) fn ready(&self) -> Result<()> {
        let index = Index::path(&self.0.dir);
        let there = fs::metadata(&index).map(drop);
        there.map_err(StoreError::file("look at", &index))?;
        files::try_writing(&self.0.dir.join("probe"))?;
        self.check_mark()
    }

    pub(crate) fn check_mark(&self) -> Result<()> {
        space::check_mark(&self.0.dir)
    }

    pub(crate) fn free(&self) -> Result<Option<u64>> {
        space::free(&self.0.dir)
    }

    pub(crate) fn held(&self) -> Result<StoredAmount> {
        Ok(self.usage()?.total)
    }

    pub(crate) fn draft(&self, meta: Meta) -> Result<Draft> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        if index.entry(meta.id)?.is_some() || index.past(meta.id)?.is_some() {
            return Err(StoreError::Taken { id: meta.id });
        }
        let mut unique = [0; 8];
        getrandom::fill(&mut unique).expect("the operating system provides randomness");
        let name = format!("{}-{:016x}.draft", meta.id, u64::from_le_bytes(unique));
        let path = self.0.bundles().join(name);
        let file = files::create_private(&path)?;
        // Locked before the store's lock is released, so that no sweep finds it unlocked.
        let locked = file.lock().map_err(StoreError::file("lock", &path));
        drop((index, _lock));
        locked.inspect_err(|_| drop(files::remove(&path)))?;
        let bulk = BulkFile {
            store: Arc::clone(&self.0),
            path: path.clone(),
            file,
        };
        sealed::draft(meta, &self.0.key, None, path, Box::new(bulk))
    }

    pub(crate) fn spend(
        &self,
        id: BundleId,
        peer: &[u8; 32],
        charge: Option<&Charge>,
        now: u64,
    ) -> Result<Spent> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        // A bundle that cannot be spent is refused without a write: an impatient peer costs no
        // sync.
        if let Some(past) = index.past(id)?.filter(|past| past.peer == *peer) {
            let (fate, at) = (past.fate, past.at);
            return Err(StoreError::Gone { id, fate, at });
        }
        let entry = index.entry(id)?.filter(|entry| entry.peer == *peer);
        let entry = entry.ok_or(StoreError::Unknown { id })?;
        if entry.expires <= now {
            let expires = entry.expires;
            return Err(StoreError::Expired { id, expires, now });
        }
        let taken = index.change(|tables| {
            // A client beyond its limit is given no bundle, and the bundle stays.
            let counted = charge.map(|charge| tables.charged(charge, now).map(|c| (charge, c)));
            let counted = counted.transpose()?;
            let taken = self.0.take(tables, &entry, now)?;
            // A bundle that turns out to be damaged is not given out.
            if let Some((charge, counts)) = counted.filter(|_| taken.is_ok()) {
                tables.keep_counts(&charge.account, &counts)?;
            }
            Ok(taken)
        })?;
        match taken {
            Ok((bulk, attachment)) => self.0.hand_out(entry, bulk, attachment),
            Err(fault) => {
                self.0.erase(&self.0.bundle_path(id))?;
                Err(StoreError::Damaged { id, fault })
            }
        }
    }

    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = self.0.turn()?.index.entries()?;
        entries.sort_by_key(|entry| (entry.expires, entry.id));
        Ok(entries)
    }

    pub(crate) fn history(&self) -> Result<Vec<Past>> {
        self.0.turn()?.index.pasts()
    }

    pub(crate) fn entry(&self, id: BundleId) -> Result<Option<Entry>> {
        self.0.turn()?.index.entry(id)
    }

    pub(crate) fn past(&self, id: BundleId) -> Result<Option<Past>> {
        self.0.turn()?.index.past(id)
    }

    pub(crate) fn reserve(
        &self,
        peer: &[u8; 32],
        needed: u64,
        bounds: Bounds,
    ) -> Result<Reservation> {
        let fits = |bytes| space::check_bundles(&self.0.dir, bytes);
        Quota::reserve(&self.0.quota, peer, needed, bounds, || self.usage(), fits)
    }

    pub(crate) fn attachment(&self, id: BundleId) -> Result<Option<Vec<u8>>> {
        self.0.turn()?.index.attachment(id)
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        let mut usage = Usage::default();
        index.entries()?.iter().for_each(|e| usage.add(e));
        usage.tombstones = index.pasts()?.len() as u64;
        Ok(usage)
    }

    pub(crate) fn delete(&self, id: BundleId, now: u64) -> Result<()> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        let Some(entry) = index.entry(id)? else {
            return Err(match index.past(id)? {
                Some(Past { fate, at, .. }) => StoreError::Gone { id, fate, at },
                None => StoreError::Unknown { id },
            });
        };
        index.change(|tables| tables.bury(&tombstone(&entry, Fate::Deleted, now)))?;
        self.0.erase(&self.0.bundle_path(id))
    }

    pub(crate) fn delete_expired(&self, now: u64) -> Result<Removed> {
        let accounts = self.forget_counts(PASSING_ACCOUNTS)?;
        let Turn { lock: _lock, index } = self.0.turn()?;
        let mut expired = index.entries()?;
        expired.retain(|entry| entry.expires <= now);
        let old = index.pasts()?.into_iter().filter(|p| p.until <= now);
        let old: Vec<_> = old.map(|past| past.id).collect();
        let removed = Removed {
            bundles: expired.len() as u64,
            bytes: expired.iter().map(|entry| entry.file_bytes).sum(),
            tombstones: old.len() as u64,
            accounts,
        };
        if expired.is_empty() && old.is_empty() {
            return Ok(removed);
        }
        index.change(|tables| {
            for entry in &expired {
                tables.bury(&tombstone(entry, Fate::Expired, now))?;
            }
            old.iter().try_for_each(|id| tables.forget(*id))
        })?;
        for entry in &expired {
            self.0.erase(&self.0.bundle_path(entry.id))?;
        }
        Ok(removed)
    }
}

/// The file of a draft. It exists and is locked by us: a sweep of another process leaves it alone
/// while this process lives.
struct BulkFile {
    store: Arc<Shared>,
    path: PathBuf,
    file: File,
}

impl Write for BulkFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Bulk for BulkFile {
    fn settle(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn publish(self: Box<Self>, meta: &Meta, bytes: u64) -> Result<()> {
        (self.file.sync_all()).map_err(StoreError::file("write", &self.path))?;
        self.store.publish(meta, &self.path, bytes)
    }
}

impl Drop for BulkFile {
    fn drop(&mut self) {
        // Once published, the name is no longer there. A draft that stays for other reasons is
        // swept by the next open.
        let _ = files::remove(&self.path);
    }
}

impl Shared {
    fn bundles(&self) -> PathBuf {
        self.dir.join("bundles")
    }

    fn bundle_path(&self, id: BundleId) -> PathBuf {
        self.bundles().join(format!("{id}.bundle"))
    }

    fn turn(&self) -> Result<Turn<'_>> {
        // The mutex guards nothing that a panic could leave half done.
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = files::lock(&self.dir, self.patience)?;
        Ok(Turn {
            index: Index::open(&self.dir)?,
            lock: Lock {
                _file: lock,
                _turn: turn,
            },
        })
    }

    /// Gives a written and synced draft its name, and the index its entry.
    fn publish(&self, meta: &Meta, draft: &Path, bytes: u64) -> Result<()> {
        let Turn { lock: _lock, index } = self.turn()?;
        let path = self.bundle_path(meta.id);
        let entry = Entry::of(meta, bytes, file_bytes(bytes));
        let mut renamed = false;
        let published = index.change(|tables| {
            if tables.entry(meta.id)?.is_some() || tables.past(meta.id)?.is_some() {
                return Err(StoreError::Taken { id: meta.id });
            }
            tables.insert(&entry, &meta.attachment)?;
            fs::rename(draft, &path).map_err(StoreError::file("rename", draft))?;
            renamed = true;
            files::sync_dir(&self.bundles())
        });
        if published.is_err() && renamed {
            let _ = files::remove(&path);
        }
        published
    }

    /// Checks the bulk file within a transaction and marks its bundle as spent, or as damaged if it
    /// is.
    fn take(
        &self,
        tables: &mut Tables<'_>,
        entry: &Entry,
        now: u64,
    ) -> Result<Result<(Found, Vec<u8>), String>> {
        let found = self.find_bulk(entry)?;
        let fate = match &found {
            Ok(_) => Fate::Spent,
            Err(_) => Fate::Damaged,
        };
        let attachment = tables.bury(&tombstone(entry, fate, now))?;
        Ok(found.map(|bulk| (bulk, attachment)))
    }

    /// Opens the bulk file, or returns what is wrong with it. A system that cannot tell (no more
    /// handles, say) is an outer error and costs no bundle.
    fn find_bulk(&self, entry: &Entry) -> Result<Result<Found, String>> {
        let path = self.bundle_path(entry.id);
        let mut file = match files::open_bulk(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(format!("{} is not there", path.display())));
            }
            file => file.map_err(StoreError::file("open", &path))?,
        };
        let got = file
            .metadata()
            .map_err(StoreError::file("look at", &path))?
            .len();
        if got != entry.file_bytes {
            let expected = entry.file_bytes;
            let fault = format!("{} has {got} bytes instead of {expected}", path.display());
            return Ok(Err(fault));
        }
        let mut magic = [0; MAGIC.len()];
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        file.read_exact(&mut magic)
            .and_then(|()| file.read_exact(&mut *salt))
            .map_err(StoreError::file("read", &path))?;
        if magic != MAGIC {
            return Ok(Err(format!(
                "{} does not begin as a bundle",
                path.display()
            )));
        }
        Ok(Ok(Found { path, file, salt }))
    }

    /// Hands a bundle out after its transaction: from here on only the reader can open it.
    fn hand_out(&self, entry: Entry, bulk: Found, attachment: Vec<u8>) -> Result<Spent> {
        let key = BundleKey::derive(&self.key, entry.id, &bulk.salt);
        files::erase(&bulk.path, &bulk.file, HEADER_BYTES)?;
        let sealed = entry.file_bytes - HEADER_BYTES as u64;
        sealed::spent(entry, attachment, key, sealed, Box::new(bulk.file))
    }

    /// Makes a bulk file unreadable and removes it, if it is there.
    fn erase(&self, path: &Path) -> Result<()> {
        match files::open_bulk(path) {
            Ok(file) => files::erase(path, &file, HEADER_BYTES),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(StoreError::file("open", path)(e)),
        }
    }

    /// Removes bulk files that the index does not know: of drafts whose process is gone, of bundles
    /// spent or deleted right before a crash.
    fn sweep(&self, index: &Index) -> Result<()> {
        let known: BTreeSet<_> = index.entries()?.iter().map(|entry| entry.id).collect();
        let dir = self.bundles();
        for item in fs::read_dir(&dir).map_err(StoreError::file("list", &dir))? {
            let path = item.map_err(StoreError::file("list", &dir))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some((stem, kind)) = name.and_then(|name| name.rsplit_once('.')) else {
                continue;
            };
            let abandoned = match kind {
                "bundle" => stem.parse().is_ok_and(|id: BundleId| !known.contains(&id)),
                "draft" => match files::open_bulk(&path) {
                    Ok(file) => file.try_lock().is_ok(),
                    Err(_) => false,
                },
                _ => false,
            };
            if abandoned {
                self.erase(&path)?;
            }
        }
        Ok(())
    }
}
