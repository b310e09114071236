//! What can go wrong in a store, with the names and numbers that matter. No variant carries
//! material or a key.

use crate::counts::Exhausted;
use crate::id::BundleId;
use crate::record::Fate;
use std::io;
#[cfg(feature = "files")]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// A result of this crate.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system failed: full, not writable, gone.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The index failed.
    #[cfg(feature = "files")]
    #[error("the index {path} failed: {source}", path = path.display())]
    Index {
        /// Its file.
        path: PathBuf,
        /// The database's error.
        source: Box<redb::Error>,
    },
    /// A record of the index cannot be read.
    #[error("the index has a {what} of {bytes} bytes that is not well formed")]
    Record {
        /// What kind of record.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// Another process holds the store.
    #[error(
        "the store {path} was busy for {waited:?}: another process holds its lock",
        path = path.display()
    )]
    Busy {
        /// Its directory.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The key file has the wrong length, or its mode lets others read it.
    #[error("the key file {path} {fault}", path = path.display())]
    KeyFile {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// The store was made with another key.
    #[error(
        "the key file {key_file} does not belong to the store {path}: bring back its key, \
         or remove the store",
        path = path.display(), key_file = key_file.display()
    )]
    WrongKey {
        /// The store's directory.
        path: PathBuf,
        /// The key file given.
        key_file: PathBuf,
    },
    /// There is no such bundle, or it belongs to another peer.
    #[error("there is no bundle {id}")]
    Unknown {
        /// Its name.
        id: BundleId,
    },
    /// The bundle was there and is gone.
    #[error("bundle {id} is no longer available: it was {fate} at {at} (Unix time)")]
    Gone {
        /// Its name.
        id: BundleId,
        /// What became of it.
        fate: Fate,
        /// When, in Unix seconds.
        at: u64,
    },
    /// The bundle's time is over.
    #[error("bundle {id} expired at {expires} (Unix time), it is {now}")]
    Expired {
        /// Its name.
        id: BundleId,
        /// When it expired.
        expires: u64,
        /// The time of the call.
        now: u64,
    },
    /// The bulk file is missing or has the wrong length. The bundle is given up.
    #[error("bundle {id} is damaged and was discarded: {fault}")]
    Damaged {
        /// Its name.
        id: BundleId,
        /// What is wrong.
        fault: String,
    },
    /// A bundle of this name is or was there.
    #[error("bundle {id} exists already, or existed before")]
    Taken {
        /// Its name.
        id: BundleId,
    },
    /// A peer has too much in the store already.
    #[error("{needed} bytes more do not fit: {stored} of the {limit} bytes of a peer are used")]
    Quota {
        /// Bytes to be stored.
        needed: u64,
        /// Bytes that the peer has, or is storing.
        stored: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// There is too much in the store already.
    #[error("{needed} bytes more do not fit into the {limit} bytes of the store")]
    Full {
        /// Bytes to be stored.
        needed: u64,
        /// Bytes that there may be.
        limit: u64,
    },
    /// There is no place for another bundle.
    #[error("all {places} places for prepared bundles are taken")]
    Places {
        /// How many there are.
        places: usize,
    },
    /// An account has had as many as it may.
    #[error("{0}")]
    Limit(Exhausted),
    /// The disk has too little room.
    #[error(
        "{path} has {free} bytes free, and {needed} are needed {purpose}",
        path = path.display()
    )]
    Space {
        /// The directory.
        path: PathBuf,
        /// Bytes that must be free.
        needed: u64,
        /// Bytes that are.
        free: u64,
        /// What for.
        purpose: &'static str,
    },
    /// The database or the place of the blobs of a shared store failed or cannot be reached.
    #[error("the store's {part} failed: {fault}")]
    Shared {
        /// `database` or `blobs`.
        part: &'static str,
        /// What it said.
        fault: String,
    },
    /// A shared store could not be used when it was looked at last.
    #[error("{fault}")]
    NotReady {
        /// What was found.
        fault: String,
    },
    /// The two parts of a shared store do not belong together, or cannot be compared with what
    /// this replica has seen.
    #[error(
        "the store's database and blobs do not agree: {fault}. One of them was restored from a \
         backup, or belongs to another store; a bundle must not come back after it was used. \
         `primer store renew` deletes all bundles and makes them agree again"
    )]
    Epoch {
        /// What differs.
        fault: String,
    },
    /// A replica noticed that a shared store is older than it was, and no renewal has followed.
    #[error(
        "the store was rolled back: {fault}. A bundle that was used may be in it again, so no \
         replica uses the store until `primer store renew` has deleted all bundles"
    )]
    RolledBack {
        /// Which replica noticed what, and when.
        fault: String,
    },
    /// This replica was away for longer than a shared store keeps its history.
    #[error(
        "{fault}, so it cannot tell whether the store was rolled back meanwhile. If the store was \
         never restored from a backup, remove {path} and start again; otherwise run \
         `primer store renew`, which deletes all bundles",
        path = path.display()
    )]
    Away {
        /// What was seen, and where the history begins.
        fault: String,
        /// The file that remembers what was seen.
        path: PathBuf,
    },
    /// What this replica remembers of a shared store cannot be read.
    #[error(
        "{path} does not hold what a replica remembers of a shared store. If the store may have \
         been restored from a backup, run `primer store renew`; then remove the file",
        path = path.display()
    )]
    Witness {
        /// The file.
        path: PathBuf,
    },
    /// The database is not set up to store durably what it is told.
    #[error("the store's database cannot be used: {fault}")]
    Settings {
        /// What is wrong.
        fault: String,
    },
    /// Bundles were sealed with keys that are not given.
    #[error("{bundles} bundles of the store were sealed with keys that were not given")]
    OtherKeys {
        /// How many.
        bundles: u64,
    },
    /// The options of a shared store make no sense.
    #[error("{fault}")]
    Options {
        /// What is wrong.
        fault: String,
    },
    /// This program cannot use a shared store.
    #[error(
        "this program was built without shared stores: build it with `--features fleet` to use \
         --store postgres://…"
    )]
    NoFleet,
    /// An attachment is too large.
    #[error("the attachment has {bytes} bytes; the limit is {limit}")]
    Attachment {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A draft that had already failed was committed.
    #[error("the draft of bundle {id} failed before and was discarded: {fault}")]
    Draft {
        /// Its name.
        id: BundleId,
        /// The first failure.
        fault: String,
    },
    /// Not the name of a bundle.
    #[error("{text:?} does not name a bundle: expected 32 digits of 0-9, a-f")]
    NotAnId {
        /// What was given, its beginning.
        text: String,
    },
}

impl StoreError {
    /// Tells whether the same call may succeed a little later: a shared store is out of reach.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Shared { .. }
            | Self::Epoch { .. }
            | Self::RolledBack { .. }
            | Self::NotReady { .. } => true,
            Self::File { source, .. } => source.kind() == io::ErrorKind::NotConnected,
            _ => false,
        }
    }

    /// Makes a function for `map_err` at a file operation.
    #[cfg(feature = "files")]
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}
