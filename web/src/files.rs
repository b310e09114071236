//! What stays between two visits: files of the page's origin, which the page has opened for this
//! worker alone before the client starts (`package/files.js`). Without them everything is kept in
//! memory.
//!
//! Bundles are in slots of the store ([`SlotStore`]); what is small, and the model's hint, are in
//! the files behind them.

use crate::host;
use primer_client::{HintPart, HintStore, Keep, MemoryHints, MemoryKeep, Parts};
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use primer_store::{MemoryStore, SlotStore, Slots, StoreError, Turns};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The most bytes of bundles that are kept in memory.
const MEMORY: u64 = 1 << 30;
/// Files behind the slots: two for what is small, two for what is known of a hint, and the hint.
const OTHERS: usize = 5;

/// Files, from the first one to some number.
#[derive(Clone, Copy)]
struct Files(usize);

fn done(result: f64) -> io::Result<u64> {
    match result {
        result if result >= 0.0 => Ok(result as u64),
        host::FULL => Err(io::Error::new(
            ErrorKind::StorageFull,
            "the browser gives this page no more room",
        )),
        _ => Err(io::Error::other("the browser refuses")),
    }
}

impl Slots for Files {
    fn count(&self) -> usize {
        self.0
    }

    fn bytes(&self, slot: usize) -> io::Result<u64> {
        done(host::file_bytes(slot))
    }

    fn read(&self, slot: usize, out: &mut [u8], at: u64) -> io::Result<()> {
        let count = done(host::file_read(slot, out, at as f64))?;
        match count == out.len() as u64 {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write(&self, slot: usize, bytes: &[u8], at: u64) -> io::Result<()> {
        done(host::file_write(slot, bytes, at as f64)).map(drop)
    }

    fn truncate(&self, slot: usize, bytes: u64) -> io::Result<()> {
        done(host::file_truncate(slot, bytes as f64)).map(drop)
    }

    fn flush(&self, slot: usize) -> io::Result<()> {
        done(host::file_flush(slot)).map(drop)
    }
}

/// Makes parts that keep everything in the page's files, or in memory if there are none.
///
/// # Errors
/// If there are files that cannot be read or written.
pub(crate) fn parts(dial: impl primer_client::Dial + 'static) -> Result<Parts, ServiceError> {
    let count = host::files();
    let Some(slots) = count.checked_sub(OTHERS).filter(|slots| *slots > 0) else {
        return Ok(Parts {
            dial: Box::new(dial),
            keep: Box::new(MemoryKeep::default()),
            bundles: Arc::new(MemoryStore::new(MEMORY)),
            hints: Box::new(MemoryHints::default()),
            hint_copy: None,
        });
    };
    let files = Files(slots);
    let room = host::room() as u64;
    let bundles = SlotStore::open(Arc::new(files), room).map_err(ServiceError::Store)?;
    Ok(Parts {
        dial: Box::new(dial),
        keep: Box::new(Small::open(files)),
        bundles: Arc::new(bundles),
        hints: Box::new(Hints::open(files)),
        hint_copy: None,
    })
}

/// What is small, in two files that are written in turn.
struct Small {
    files: Files,
    turns: Turns,
    all: BTreeMap<String, Vec<u8>>,
}

impl Small {
    fn open(files: Files) -> Self {
        let (turns, found) = Turns::open(&files, files.0);
        let all = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            files,
            turns,
            all: all.unwrap_or_default(),
        }
    }
}

impl Keep for Small {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        Ok(self.all.get(name).cloned())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ServiceError> {
        self.all.insert(name.to_owned(), bytes.to_owned());
        let all = serde_json::to_vec(&self.all).expect("names and bytes are JSON");
        self.turns
            .write(&self.files, &all)
            .map_err(ServiceError::Disk)
    }

    fn create(&mut self, name: &str, bytes: &[u8]) -> Result<bool, ServiceError> {
        let is_new = !self.all.contains_key(name);
        if is_new {
            self.write(name, bytes)?;
        }
        Ok(is_new)
    }
}

/// One hint, the last: what is known of it in two files that are written in turn, and its bytes. It
/// is whole when all bytes are there, and the client compares them with their hashes anyway.
struct Hints {
    files: Files,
    turns: Turns,
    record: Option<Record>,
    /// Found damaged: not whole, whatever its length.
    damaged: bool,
}

impl Hints {
    fn open(files: Files) -> Self {
        let (turns, found) = Turns::open(&files, files.0 + 2);
        Self {
            files,
            turns,
            record: found.and_then(|bytes| Record::decode(&bytes)),
            damaged: false,
        }
    }

    fn bytes(&self) -> Bytes {
        Bytes(self.files, self.files.0 + 4)
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
