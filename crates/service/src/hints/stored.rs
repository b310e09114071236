//! Hints that are kept, of a server or of a client: listing and deleting them.

use super::part::remove;
use super::record::Record;
use crate::{ServiceError, hex, io_error};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A hint in a directory.
#[derive(Debug, Clone)]
pub struct StoredHint {
    /// What its files are called, without their endings: the name of a server's hint, the root of a
    /// client's.
    pub name: String,
    /// The model's name; none if there is no record of it.
    pub model: Option<String>,
    /// Where a client fetched it.
    pub server: Option<String>,
    /// Stands for all of its bytes.
    pub root: Option<String>,
    /// Bytes of the whole hint.
    pub bytes: Option<u64>,
    /// Bytes of the hint that are there.
    pub there: u64,
    /// Bytes of all its files.
    pub on_disk: u64,
    /// Whether it is whole.
    pub complete: bool,
    files: Vec<PathBuf>,
}

impl StoredHint {
    /// Lists the hints in a directory, which may not be there.
    ///
    /// # Errors
    /// [`ServiceError`] if the directory cannot be read.
    pub fn all(dir: &Path) -> Result<Vec<Self>, ServiceError> {
        let failed = |cause| io_error(format!("reading {}", dir.display()))(cause);
        let found = match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(failed)?,
        };
        let mut names: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for entry in found {
            let path = entry.map_err(failed)?.path();
            let file = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            if let Some((name, _)) = file.as_deref().and_then(|file| file.split_once('.'))
                && name.len() == 64
                && name.bytes().all(|digit| digit.is_ascii_hexdigit())
            {
                names.entry(name.to_owned()).or_default().push(path);
            }
        }
        let each = names.into_iter();
        each.map(|(name, files)| Self::of(dir, name, files))
            .collect()
    }

    fn of(dir: &Path, name: String, files: Vec<PathBuf>) -> Result<Self, ServiceError> {
        let base = dir.join(&name);
        let length = |path: &Path| fs::metadata(path).ok().map(|data| data.len());
        let of = |ending: &str| length(&base.with_extension(ending));
        let record = Record::read(&base.with_extension("json"))?;
        let identity = record.as_ref().map(|record| record.index.identity());
        let fetched = record
            .as_ref()
            .is_some_and(|record| record.server.is_some());
        let whole = of("hint");
        let complete = identity.is_some_and(|identity| whole == Some(identity.bytes));
        Ok(Self {
            there: whole.or(of("part")).or(of("hint.part")).unwrap_or(0),
            // What multiplies a server's hint belongs to it.
            complete: complete && (fetched || of("digits").is_some()),
            on_disk: files.iter().filter_map(|file| length(file)).sum(),
            bytes: identity.map(|identity| identity.bytes),
            root: identity.map(|identity| hex(&identity.root)),
            server: record.as_ref().and_then(|record| record.server.clone()),
            model: record.map(|record| record.model),
            name,
            files,
        })
    }

    /// Deletes all files of it. A server that uses it goes on until it is started again, and then
    /// builds it again; a client fetches it again before it prepares.
    ///
    /// # Errors
    /// [`ServiceError`] naming the file that cannot be deleted.
    pub fn delete(&self) -> Result<(), ServiceError> {
        self.files.iter().try_for_each(|file| remove(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_hint::published::Index;

    #[test]
    fn what_is_there_is_listed_and_nothing_else_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            StoredHint::all(&dir.path().join("missing"))
                .unwrap()
                .is_empty()
        );
        let [a, b] = ["a", "b"].map(|digit| dir.path().join(digit.repeat(64)));
        let index = Index::of(&[1; 32], &[5; 1000]);
        for (base, server) in [(&a, Some("x:1".to_owned())), (&b, None)] {
            let (model, index) = ("m".into(), index.clone());
            let record = Record {
                model,
                server,
                index,
            };
            record.write(&base.with_extension("json")).unwrap();
            fs::write(base.with_extension("hint"), [5; 1000]).unwrap();
        }
        fs::write(dir.path().join("other.txt"), "x").unwrap();
        let kept = StoredHint::all(dir.path()).unwrap();
        // A server's hint without its multipliers is not whole.
        let complete: Vec<bool> = kept.iter().map(|kept| kept.complete).collect();
        assert_eq!(complete, [true, false]);
        fs::write(b.with_extension("digits"), "x").unwrap();
        assert!(StoredHint::all(dir.path()).unwrap()[1].complete);
        fs::rename(a.with_extension("hint"), a.with_extension("part")).unwrap();
        fs::write(a.with_extension("part"), [5; 10]).unwrap();
        let kept = &StoredHint::all(dir.path()).unwrap()[0];
        assert!(!kept.complete && kept.there == 10 && kept.bytes == Some(1000));
        assert_eq!(kept.server.as_deref(), Some("x:1"));
        kept.delete().unwrap();
        assert_eq!(StoredHint::all(dir.path()).unwrap().len(), 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
    }
}
