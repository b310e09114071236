//! What a replica remembers of a shared store in its own state directory: the latest epoch that it
//! has seen, and a rollback that it noticed. Both survive a power cut, whole or not at all.

use super::core::lock;
use super::epoch::Epoch;
use super::rollback::Latch;
use crate::error::{Result, StoreError};
use crate::files;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The files of a replica, if it has any.
pub(super) struct Witness {
    epoch: Option<PathBuf>,
    /// Held while a file is written, as all drafts of a file have one name.
    writing: Mutex<()>,
}

impl Witness {
    /// Makes a witness whose latch lies beside the file of the epoch, with the extension `latch`.
    pub(super) fn new(epoch: Option<PathBuf>) -> Self {
        Self {
            epoch,
            writing: Mutex::default(),
        }
    }

    /// Returns where the epoch is, for messages.
    pub(super) fn path(&self) -> Option<&Path> {
        self.epoch.as_deref()
    }

    fn latch_path(&self) -> Option<PathBuf> {
        self.epoch.as_ref().map(|path| path.with_extension("latch"))
    }

    /// Returns the latest epoch that was seen.
    pub(super) fn seen(&self) -> Result<Option<Epoch>> {
        read(self.epoch.as_deref(), Epoch::parse)
    }

    /// Returns the rollback that was noticed; `replica` is what this one is called.
    pub(super) fn latch(&self, replica: &str) -> Result<Option<Latch>> {
        read(self.latch_path().as_deref(), |line| {
            Latch::parse(line, replica)
        })
    }

    pub(super) fn keep_seen(&self, epoch: &Epoch) -> Result<()> {
        let _alone = lock(&self.writing);
        match &self.epoch {
            Some(path) => files::replace(path, format!("{epoch}\n").as_bytes()),
            None => Ok(()),
        }
    }

    /// Keeps a latch, unless it is there already.
    pub(super) fn keep_latch(&self, latch: &Latch) -> Result<()> {
        let _alone = lock(&self.writing);
        let there = self.latch(&latch.rollback.replica);
        match self.latch_path() {
            Some(path) if there.ok().flatten().as_ref() != Some(latch) => {
                files::replace(&path, format!("{latch}\n").as_bytes())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn remove_latch(&self) -> Result<()> {
        match self.latch_path() {
            Some(path) => files::remove(&path).and_then(|()| files::sync_parent(&path)),
            None => Ok(()),
        }
    }
}

/// Reads a file of one line. A file that is there and cannot be understood is an error: going on
/// without it would mean forgetting.
fn read<T>(path: Option<&Path>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::file("read", path)(e)),
    };
    let line = std::str::from_utf8(&bytes).ok();
    match line.and_then(|line| parse(line.trim_end_matches('\n'))) {
        Some(found) => Ok(Some(found)),
        None => Err(StoreError::Witness {
            path: path.to_path_buf(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rollback::Rollback;
    use super::*;

    #[test]
    fn what_is_remembered_is_read_back_and_damage_is_not_forgetting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epoch");
        let witness = Witness::new(Some(path.clone()));
        assert_eq!(witness.seen().unwrap(), None);
        assert_eq!(witness.latch("one").unwrap(), None);
        let seen = Epoch::first();
        let rollback = Rollback {
            replica: "one".into(),
            seen: 1,
            found: 0,
            at: 5,
        };
        let latch = Latch {
            seen: seen.clone(),
            rollback,
        };
        witness.keep_seen(&seen).unwrap();
        witness.keep_latch(&latch).unwrap();
        assert_eq!(witness.seen().unwrap(), Some(seen));
        assert_eq!(witness.latch("one").unwrap(), Some(latch));
        witness.remove_latch().unwrap();
        witness.remove_latch().unwrap();
        assert_eq!(witness.latch("one").unwrap(), None);

        for damaged in [&b""[..], b"42\n", b"\xff\xff"] {
            std::fs::write(&path, damaged).unwrap();
            std::fs::write(path.with_extension("latch"), damaged).unwrap();
            for error in [witness.seen().err(), witness.latch("one").err()] {
                assert!(
                    matches!(error, Some(StoreError::Witness { .. })),
                    "{error:?}"
                );
            }
        }
        let none = Witness::new(None);
        none.keep_seen(&Epoch::first()).unwrap();
        assert_eq!(none.seen().unwrap(), None);
    }
}
