//! Where the program keeps what it must remember: by XDG, or where its options say.
//!
//! ```text
//! client/known_servers          address and fingerprint, one server a line
//! client/pseudonyms/HOST_PORT   who this client is to that server (mode 0600)
//! client/tokenizers/HASH        tokenizers, fetched once
//! client/hints/ROOT.hint        hints of models, fetched once (crate::hints)
//! client/offers/HOST_PORT       what that server offered last, as a hash
//! client/store/                 prepared bundles, encrypted (crates/store)
//! server/certificate.pem        the server's identity; key.pem beside it (mode 0600)
//! server/hint.key              what hides the weights in hints (mode 0600)
//! server/hints/NAME.hint        hints of models, built once; what multiplies them beside
//! server/store/                 the server's halves of prepared bundles, encrypted
//! ```

use crate::{ServiceError, io_error};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A state directory.
#[derive(Debug, Clone)]
pub struct State {
    root: PathBuf,
}

impl State {
    /// Opens the given directory, or the one that the XDG base directory specification names.
    ///
    /// # Errors
    /// [`ServiceError::NoState`] if neither is to be had.
    pub fn open(given: Option<&Path>) -> Result<Self, ServiceError> {
        let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        let root = match given {
            Some(path) => Some(path.to_owned()),
            None => from("XDG_STATE_HOME")
                .filter(absolute)
                .or_else(|| Some(from("HOME").filter(absolute)?.join(".local/state")))
                .map(|base| base.join("primer")),
        };
        let root = root.ok_or(ServiceError::NoState)?;
        Ok(Self { root })
    }

    /// Returns the path of a file or directory below, which may not be there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns a directory below, made for its owner alone if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn dir(&self, name: &str) -> Result<PathBuf, ServiceError> {
        let path = self.path(name);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .recursive(true)
            .create(&path)
            .map_err(io_error(format!("making the directory {}", path.display())))?;
        Ok(path)
    }
}

/// Writes a file that its owner alone can read, all of it or nothing, and makes it durable.
///
/// # Errors
/// If the system fails.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ServiceError> {
    let persisted = written_beside(path, bytes)?.persist(path);
    persisted.map_err(|error| writing(path)(error.error))?;
    Ok(())
}

/// Writes such a file unless there is one, which then stays as it is. Tells whether it was written.
///
/// # Errors
/// If the system fails.
pub fn create_private(path: &Path, bytes: &[u8]) -> Result<bool, ServiceError> {
    match written_beside(path, bytes)?.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(writing(path)(error.error)),
    }
}

/// Writes a durable file in the same directory, which has no name yet. Its owner alone can read it:
/// temporary files are made with mode 0600.
fn written_beside(path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile, ServiceError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(writing(path))?;
    file.write_all(bytes).map_err(writing(path))?;
    file.as_file().sync_all().map_err(writing(path))?;
    Ok(file)
}

fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> ServiceError {
    io_error(format!("writing {}", path.display()))
}

/// Reads a file if it is there.
///
/// # Errors
/// If it is there and cannot be read.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, ServiceError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(format!("reading {}", path.display()))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_files_are_private_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(&dir.path().join("a/b"))).unwrap();
        let path = state.dir("client").unwrap().join("secret");
        assert!(read_if_there(&path).unwrap().is_none());
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(read_if_there(&path).unwrap().unwrap(), b"two");
        assert!(!create_private(&path, b"three").unwrap());
        assert_eq!(read_if_there(&path).unwrap().unwrap(), b"two");
        assert!(create_private(&path.with_extension("new"), b"four").unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
        }
    }
}
