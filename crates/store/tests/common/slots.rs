//! Slots in memory that know what a crash leaves: what was flushed.

use primer_store::Slots;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct File {
    now: Vec<u8>,
    flushed: Vec<u8>,
}

/// Slots; clones are the same.
#[derive(Clone)]
pub(crate) struct MemorySlots(Arc<Mutex<Vec<File>>>);

impl MemorySlots {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![File::default(); count])))
    }

    /// Returns what is found after a crash at this moment.
    pub(crate) fn crashed(&self) -> Self {
        let files = self.0.lock().unwrap();
        let after = files.iter().map(|file| File {
            now: file.flushed.clone(),
            flushed: file.flushed.clone(),
        });
        Self(Arc::new(Mutex::new(after.collect())))
    }

    /// Changes what is in a slot.
    pub(crate) fn change(&self, slot: usize, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.0.lock().unwrap()[slot].now);
    }
}

impl Slots for MemorySlots {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn bytes(&self, slot: usize) -> io::Result<u64> {
        Ok(self.0.lock().unwrap()[slot].now.len() as u64)
    }

    fn read(&self, slot: usize, out: &mut [u8], at: u64) -> io::Result<()> {
        let files = self.0.lock().unwrap();
        let rest = files[slot].now.get(at as usize..);
        let there = rest.and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(there.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, slot: usize, bytes: &[u8], at: u64) -> io::Result<()> {
        let file = &mut self.0.lock().unwrap()[slot].now;
        let (at, end) = (at as usize, at as usize + bytes.len());
        file.resize(file.len().max(end), 0);
        file[at..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&self, slot: usize, bytes: u64) -> io::Result<()> {
        self.0.lock().unwrap()[slot].now.truncate(bytes as usize);
        Ok(())
    }

    fn flush(&self, slot: usize) -> io::Result<()> {
        let file = &mut self.0.lock().unwrap()[slot];
        file.flushed = file.now.clone();
        Ok(())
    }
}
