//! Hints in memory.

use super::store::{HintPart, HintStore};
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps hints as long as this and its clones live.
#[derive(Clone, Default)]
pub struct MemoryHints(Arc<Mutex<BTreeMap<[u8; 32], StoredHint>>>);

/// What is there of a hint, by the root of its hashes.
#[derive(Default)]
struct StoredHint {
    record: Option<Record>,
    whole: Option<Arc<[u8]>>,
    /// What is there of a part that is not held at the moment.
    part: Vec<u8>,
    /// Whether it is held.
    held: bool,
}

impl MemoryHints {
    fn all(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], StoredHint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, root: &[u8; 32], change: impl FnOnce(&mut StoredHint) -> T) -> T {
        change(self.all().entry(*root).or_default())
    }
}

impl HintStore for MemoryHints {
    fn record(&self, identity: &Identity) -> Result<Option<Record>, ServiceError> {
        Ok(self.change(&identity.root, |kept| kept.record.clone()))
    }

    fn keep_record(&mut self, record: &Record) -> Result<(), ServiceError> {
        let root = record.index.identity().root;
        self.change(&root, |kept| kept.record = Some(record.clone()));
        Ok(())
    }

    fn whole(&self, identity: &Identity) -> Result<Option<Box<dyn ReadAt>>, ServiceError> {
        let whole = self.change(&identity.root, |kept| kept.whole.clone());
        Ok(whole.map(|bytes| Box::new(Bytes(bytes)) as Box<dyn ReadAt>))
    }

    fn reopen(&mut self, identity: &Identity) -> Result<(), ServiceError> {
        self.change(&identity.root, |kept| {
            if let Some(whole) = kept.whole.take() {
                kept.part = whole.to_vec();
            }
        });
        Ok(())
    }

    fn part(&mut self, identity: &Identity) -> Result<Option<Box<dyn HintPart>>, ServiceError> {
        let taken = self.change(&identity.root, |kept| {
            let free = !std::mem::replace(&mut kept.held, true);
            free.then(|| std::mem::take(&mut kept.part))
        });
        Ok(taken.map(|bytes| {
            Box::new(Part {
                hints: self.clone(),
                root: identity.root,
                bytes,
            }) as Box<dyn HintPart>
        }))
    }

    fn progress(&self, identity: &Identity) -> u64 {
        self.change(&identity.root, |kept| kept.part.len() as u64)
    }

    fn check_room(&self, _bytes: u64) -> Result<(), ServiceError> {
        Ok(())
    }
}

struct Bytes(Arc<[u8]>);

impl ReadAt for Bytes {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let there = usize::try_from(at).ok().and_then(|at| self.0.get(at..));
        let there = there.and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

struct Part {
    hints: MemoryHints,
    root: [u8; 32],
    bytes: Vec<u8>,
}

impl HintPart for Part {
    fn read(&self, out: &mut [u8], at: u64) -> bool {
        let rest = self.bytes.get(at as usize..);
        let there = rest.and_then(|rest| rest.get(..out.len()));
        there.map(|there| out.copy_from_slice(there)).is_some()
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), ServiceError> {
        let (at, end) = (at as usize, at as usize + bytes.len());
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), ServiceError> {
        self.bytes.truncate(bytes as usize);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), ServiceError> {
        let whole = std::mem::take(&mut self.bytes);
        (self.hints).change(&self.root, |kept| kept.whole = Some(whole.into()));
        Ok(())
    }

    fn delete(mut self: Box<Self>) -> Result<(), ServiceError> {
        self.bytes = Vec::new();
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.hints.change(&self.root, |kept| {
            (kept.part, kept.held) = (bytes, false);
        });
    }
}
