//! The file system below a store: owner-only files, honest syncs, the lock, the key.

use crate::error::{Result, StoreError};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

pub(crate) type StoreKey = Zeroizing<[u8; 32]>;

const KEY_CONTEXT: &[u8] = b"primer store v1: which key";

/// Returns a value that tells keys apart, and reveals nothing else about them.
pub(crate) fn key_check(key: &StoreKey) -> [u8; 32] {
    *blake3::keyed_hash(key, KEY_CONTEXT).as_bytes()
}

/// Makes a directory, and those above it, that only the owner may enter.
pub(crate) fn make_private_dir(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(StoreError::file("create", path))?;
    sync_parent(path)
}

/// Makes the name of a file or directory durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => sync_dir(parent),
        None => sync_dir(Path::new(".")),
    }
}

/// Makes what happened to a directory's names durable.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::file("sync", path))
}

/// Creates a new file that only the owner may read.
pub(crate) fn create_private(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::file("create", path))
}

/// Removes a file; it may be gone already.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::file("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Writes a small file, waits until the disk has it, and removes it, to see whether anything can be
/// written there.
pub(crate) fn try_writing(path: &Path) -> Result<()> {
    let tried = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| {
            file.write_all(&[0; 4096])?;
            file.sync_all()
        })
        .map_err(StoreError::file("write", path));
    tried.and(remove(path))
}

/// Opens a bulk file for reading and for having its salt overwritten.
pub(crate) fn open_bulk(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Overwrites the beginning of a file in place, waits until the disk has it, and unlinks the name.
pub(crate) fn erase(path: &Path, file: &File, bytes: usize) -> Result<()> {
    let length = file.metadata().map(|m| m.len().min(bytes as u64));
    length
        .and_then(|n| file.write_all_at(&vec![0; n as usize], 0))
        .and_then(|()| file.sync_data())
        .map_err(StoreError::file("erase", path))?;
    remove(path)
}

/// Waits for the lock of a store, at most `patience`. The lock is released when the file is closed,
/// however the process ends.
pub(crate) fn lock(dir: &Path, patience: Duration) -> Result<File> {
    let path = dir.join("lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StoreError::file("open", &path))?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(StoreError::file("lock", &path)(e)),
            Err(TryLockError::WouldBlock) if start.elapsed() >= patience => {
                return Err(StoreError::Busy {
                    path: dir.to_path_buf(),
                    waited: patience,
                });
            }
            Err(TryLockError::WouldBlock) => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
        }
    }
}

/// Reads a key from its file. A missing file is made with a random key, if that is allowed.
///
/// # Errors
/// [`StoreError::KeyFile`] if others may read it, or it is not a key.
pub fn load_key(path: &Path, may_create: bool) -> Result<StoreKey> {
    let fault = |fault: String| StoreError::KeyFile {
        path: path.to_path_buf(),
        fault,
    };
    let mut key = StoreKey::default();
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if !may_create {
                return Err(fault("is missing, and the store was made with it".into()));
            }
            getrandom::fill(key.as_mut_slice()).expect("the operating system provides randomness");
            write_key(path, &key)?;
            return Ok(key);
        }
        Err(e) => return Err(StoreError::file("open", path)(e)),
    };
    let about = file.metadata().map_err(StoreError::file("look at", path))?;
    if about.permissions().mode() & 0o077 != 0 {
        let mode = about.permissions().mode() & 0o777;
        return Err(fault(format!(
            "has mode {mode:04o}: only its owner may read it (chmod 600)"
        )));
    }
    if about.len() != 32 {
        return Err(fault(format!("has {} bytes instead of 32", about.len())));
    }
    file.read_exact(key.as_mut_slice())
        .map_err(StoreError::file("read", path))?;
    Ok(key)
}

fn write_key(path: &Path, key: &StoreKey) -> Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        make_private_dir(parent)?;
    }
    replace(path, key.as_slice())
}

/// Gives a file new contents, durably, whole or not at all: they are written under another name
/// first.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = path.with_extension("new");
    remove(&draft)?;
    let mut file = create_private(&draft)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::file("write", &draft))?;
    fs::rename(&draft, path).map_err(StoreError::file("rename", &draft))?;
    sync_parent(path)
}
