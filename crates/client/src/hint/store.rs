//! Where hints are kept: 125 MB for BERT-base, the same for all clients of a model, and not secret.

use crate::HangUp;
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use std::io::Read;

/// Keeps hints, whole ones and parts of them. What it returns is compared with its hashes by the
/// client, so a store may lose or change bytes without harm.
pub trait HintStore: Send {
    /// Returns what is known of a hint, if something is kept.
    ///
    /// # Errors
    /// If the system fails; so of all that follow.
    fn record(&self, identity: &Identity) -> Result<Option<Record>, ServiceError>;

    /// Keeps what is known of a hint.
    fn keep_record(&mut self, record: &Record) -> Result<(), ServiceError>;

    /// Opens a hint of which all bytes are there.
    fn whole(&self, identity: &Identity) -> Result<Option<Box<dyn ReadAt>>, ServiceError>;

    /// Makes a whole hint, which is damaged, a part again: only what is behind the damage is
    /// fetched.
    fn reopen(&mut self, identity: &Identity) -> Result<(), ServiceError>;

    /// Takes the part of a hint, empty if there is none, that its holder alone may write; none if
    /// another process has it.
    fn part(&mut self, identity: &Identity) -> Result<Option<Box<dyn HintPart>>, ServiceError>;

    /// Returns how many bytes of a part are there, as another process writes them.
    fn progress(&self, identity: &Identity) -> u64;

    /// Checks that there is room for that many bytes.
    fn check_room(&self, bytes: u64) -> Result<(), ServiceError>;
}

/// A hint in the making. What was written stays when it is dropped.
pub trait HintPart: Send {
    /// Fills `out` with the bytes from `at` on; tells whether there were enough.
    fn read(&self, out: &mut [u8], at: u64) -> bool;

    /// Writes bytes at a place.
    ///
    /// # Errors
    /// If the system fails; so of all that follow.
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), ServiceError>;

    /// Cuts off what is behind the first `bytes` bytes.
    fn truncate(&mut self, bytes: u64) -> Result<(), ServiceError>;

    /// Makes it a whole hint, durably.
    fn finish(self: Box<Self>) -> Result<(), ServiceError>;

    /// Deletes it.
    fn delete(self: Box<Self>) -> Result<(), ServiceError>;
}

/// A copy of a hint somewhere: a file, or on the web.
pub trait HintCopy: Send {
    /// Returns where it is, for messages.
    fn place(&self) -> &str;

    /// Opens it from a byte on. A hang-up ends what waits for it.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn open(&mut self, from: u64, hang_up: &HangUp) -> Result<Box<dyn Read>, String>;
}
