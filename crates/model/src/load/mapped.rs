//! A file mapped into memory, read only.
#![allow(unsafe_code)] // Mapping a file is unsafe by nature; see the comment at the call.

use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// The bytes of a file, paged in as they are touched.
pub(super) struct MappedFile(Mmap);

impl MappedFile {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the map is only read, and only while loading. Another process that shortens or
        // rewrites the file in that time could make reads fail or change; the operator owns the
        // model directory, as with every program that maps its data files.
        unsafe { Mmap::map(&file) }.map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
