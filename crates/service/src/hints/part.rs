//! A file in the making: one process at a time writes it, and others wait for it.
//!
//! It has a name of its own until it is whole. What a process that died has left is found under
//! that name by the next one: a fetch goes on from there, a build begins anew.

use crate::{ServiceError, io_error};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A part that this process alone may write, until it is dropped.
pub struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// Takes a part, which is made for its owner alone if it is not there; none if another process
    /// has it.
    pub fn take(path: &Path) -> Result<Option<Self>, ServiceError> {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(path).map_err(writing(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(cause)) => return Err(writing(path)(cause)),
        }
        // The process that had it may have renamed or deleted it while we opened it.
        let ours = file.metadata().map_err(writing(path))?.ino();
        let there = fs::metadata(path).is_ok_and(|there| there.ino() == ours);
        Ok(there.then(|| Self {
            path: path.to_owned(),
            file,
        }))
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives a whole file its name, durably.
    pub fn finish(self, path: &Path) -> Result<File, ServiceError> {
        finish(&self.path, &self.file, path)?;
        Ok(self.file)
    }

    /// Deletes it.
    pub fn delete(self) -> Result<(), ServiceError> {
        remove(&self.path)
    }
}

/// Gives a file that is whole its name, durably.
pub fn finish(from: &Path, file: &File, to: &Path) -> Result<(), ServiceError> {
    let parent = to.parent().unwrap_or(Path::new("."));
    file.sync_all()
        .and_then(|()| fs::rename(from, to))
        .and_then(|()| File::open(parent)?.sync_all())
        .map_err(writing(to))
}

/// Deletes a file, if it is there.
pub fn remove(path: &Path) -> Result<(), ServiceError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error(format!("deleting {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Names a file that cannot be written.
pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> ServiceError {
    io_error(format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_writer_until_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, whole) = (dir.path().join("a.part"), dir.path().join("a"));
        let first = Part::take(&path).unwrap().unwrap();
        assert!(Part::take(&path).unwrap().is_none());
        first.finish(&whole).unwrap();
        assert!(whole.exists() && !path.exists());
        let second = Part::take(&path).unwrap().unwrap();
        // What was deleted meanwhile belongs to no one.
        remove(&path).unwrap();
        let third = Part::take(&path).unwrap().unwrap();
        drop(second);
        assert!(Part::take(&path).unwrap().is_none());
        third.delete().unwrap();
        assert!(!path.exists());
        remove(&path).unwrap();
    }
}
