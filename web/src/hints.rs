//! The model's hint in the page's files.

use crate::files::Files;
use crate::host;
use primer_client::{HintPart, HintStore};
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use primer_store::{Slots, StoreError, Turns};
use std::io;

/// Files that it takes: two for what is known of it, and its bytes.
pub(crate) const FILES: usize = 3;

/// One hint, the last: what is known of it in two files that are written in turn, and its bytes. It
/// is whole when all bytes are there, and the client compares them with their hashes anyway.
pub(crate) struct Hints {
    files: Files,
    /// The first of its files.
    first: usize,
    turns: Turns,
    record: Option<Record>,
    /// Found damaged: not whole, whatever its length.
    damaged: bool,
}

impl Hints {
    pub(crate) fn open(files: Files, first: usize) -> Self {
        let (turns, found) = Turns::open(&files, first);
        Self {
            files,
            first,
            turns,
            record: found.and_then(|bytes| Record::decode(&bytes)),
            damaged: false,
        }
    }

    fn bytes(&self) -> Bytes {
        Bytes(self.files, self.first + FILES - 1)
    }

    fn is_of(&self, identity: &Identity) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.index.identity() == *identity)
    }
}

impl HintStore for Hints {
    fn record(&self, identity: &Identity) -> Result<Option<Record>, ServiceError> {
        Ok(self.record.clone().filter(|_| self.is_of(identity)))
    }

    fn keep_record(&mut self, record: &Record) -> Result<(), ServiceError> {
        if !self.is_of(&record.index.identity()) {
            self.bytes().truncate(0)?;
        }
        let written = self.turns.write(&self.files, &record.encode());
        written.map_err(ServiceError::Disk)?;
        self.record = Some(record.clone());
        Ok(())
    }

    fn whole(&self, identity: &Identity) -> Result<Option<Box<dyn ReadAt>>, ServiceError> {
        let whole =
            self.is_of(identity) && !self.damaged && self.progress(identity) >= identity.bytes;
        Ok(whole.then(|| Box::new(self.bytes()) as Box<dyn ReadAt>))
    }

    fn reopen(&mut self, _identity: &Identity) -> Result<(), ServiceError> {
        self.damaged = true;
        Ok(())
    }

    fn part(&mut self, _identity: &Identity) -> Result<Option<Box<dyn HintPart>>, ServiceError> {
        // What is fetched behind the damage makes it whole again.
        self.damaged = false;
        Ok(Some(Box::new(self.bytes())))
    }

    fn progress(&self, _identity: &Identity) -> u64 {
        let Bytes(files, number) = self.bytes();
        files.bytes(number).unwrap_or(0)
    }

    fn check_room(&self, bytes: u64) -> Result<(), ServiceError> {
        let free = host::room() as u64;
        match bytes <= free {
            true => Ok(()),
            false => Err(ServiceError::Disk(StoreError::Space {
                path: "this page".into(),
                needed: bytes,
                free,
                purpose: "for the model's hint",
            })),
        }
    }
}

/// The file of a hint.
struct Bytes(Files, usize);

impl Bytes {
    fn truncate(&self, bytes: u64) -> Result<(), ServiceError> {
        self.0.truncate(self.1, bytes).map_err(failed)
    }
}

fn failed(source: io::Error) -> ServiceError {
    ServiceError::Disk(StoreError::File {
        action: "write",
        path: "the model's hint".into(),
        source,
    })
}

impl ReadAt for Bytes {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read(self.1, out, at)
    }
}

impl HintPart for Bytes {
    fn read(&self, out: &mut [u8], at: u64) -> bool {
        self.0.read(self.1, out, at).is_ok()
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), ServiceError> {
        self.0.write(self.1, bytes, at).map_err(failed)
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), ServiceError> {
        Self::truncate(self, bytes)
    }

    fn finish(self: Box<Self>) -> Result<(), ServiceError> {
        self.0.flush(self.1).map_err(failed)
    }

    fn delete(self: Box<Self>) -> Result<(), ServiceError> {
        Self::truncate(&self, 0)
    }
}
