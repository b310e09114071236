//! What stays between two visits: files of the page's origin, which the page has opened for this
//! worker alone before the client starts (`package/files.js`). Without them everything is kept in
//! memory.
//!
//! Bundles are in slots of the store ([`SlotStore`]); what is small, and the model's hint
//! (`hints`), are in the files behind them.

use crate::hints::{self, Hints};
use crate::host;
use primer_client::{Keep, MemoryHints, MemoryKeep, Parts};
use primer_service::ServiceError;
use primer_store::{MemoryStore, SlotStore, Slots, Turns};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The most bytes of bundles that are kept in memory.
const MEMORY: u64 = 1 << 30;
/// Files for what is small.
const SMALL: usize = 2;

/// Files, from the first one to some number.
#[derive(Clone, Copy)]
pub(crate) struct Files(usize);

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
    let Some(slots) = count
        .checked_sub(SMALL + hints::FILES)
        .filter(|slots| *slots > 0)
    else {
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
        hints: Box::new(Hints::open(files, slots + SMALL)),
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
