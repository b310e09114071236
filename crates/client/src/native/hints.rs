//! Hints in files, under the root of their hashes (`primer_service::hints`).

use crate::hint::{HintPart, HintStore};
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_service::hints::part::{Part, writing};
use primer_service::hints::record::Record;
use primer_service::{ServiceError, hex};
use primer_store::check_room;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A directory of hints.
pub(super) struct HintFiles {
    dir: PathBuf,
}

impl HintFiles {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn path(&self, identity: &Identity, ending: &str) -> PathBuf {
        self.dir.join(hex(&identity.root)).with_extension(ending)
    }

    fn hint(&self, identity: &Identity) -> PathBuf {
        self.path(identity, "hint")
    }

    fn part_path(&self, identity: &Identity) -> PathBuf {
        self.path(identity, "part")
    }
}

impl HintStore for HintFiles {
    fn record(&self, identity: &Identity) -> Result<Option<Record>, ServiceError> {
        Record::read(&self.path(identity, "json"))
    }

    fn keep_record(&mut self, record: &Record) -> Result<(), ServiceError> {
        record.write(&self.path(&record.index.identity(), "json"))
    }

    fn whole(&self, identity: &Identity) -> Result<Option<Box<dyn ReadAt>>, ServiceError> {
        let path = self.hint(identity);
        if !path.exists() {
            return Ok(None);
        }
        let file = File::open(&path).map_err(writing(&path))?;
        Ok(Some(Box::new(file)))
    }

    fn reopen(&mut self, identity: &Identity) -> Result<(), ServiceError> {
        let part = self.part_path(identity);
        fs::rename(self.hint(identity), &part).map_err(writing(&part))
    }

    fn part(&mut self, identity: &Identity) -> Result<Option<Box<dyn HintPart>>, ServiceError> {
        let part = Part::take(&self.part_path(identity))?;
        Ok(part.map(|part| {
            Box::new(PartFile {
                part,
                whole: self.hint(identity),
                bytes: identity.bytes,
            }) as Box<dyn HintPart>
        }))
    }

    fn progress(&self, identity: &Identity) -> u64 {
        fs::metadata(self.part_path(identity)).map_or(0, |data| data.len())
    }

    fn check_room(&self, bytes: u64) -> Result<(), ServiceError> {
        check_room(&self.dir, bytes, "for the hint of a model").map_err(ServiceError::Disk)
    }
}

/// A file in the making.
struct PartFile {
    part: Part,
    /// What it is called once it is whole.
    whole: PathBuf,
    /// Bytes that it has then.
    bytes: u64,
}

impl HintPart for PartFile {
    fn read(&self, out: &mut [u8], at: u64) -> bool {
        FileExt::read_exact_at(self.part.file(), out, at).is_ok()
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), ServiceError> {
        let written = self.part.file().write_all_at(bytes, at);
        written.map_err(|cause| ServiceError::Io {
            what: format!(
                "writing {}, which takes {} bytes",
                self.part.path().display(),
                self.bytes
            ),
            cause,
        })
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), ServiceError> {
        let cut = self.part.file().set_len(bytes);
        cut.map_err(writing(self.part.path()))
    }

    fn finish(self: Box<Self>) -> Result<(), ServiceError> {
        self.part.finish(&self.whole).map(drop)
    }

    fn delete(self: Box<Self>) -> Result<(), ServiceError> {
        self.part.delete()
    }
}
