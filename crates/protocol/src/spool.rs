//! Where the client keeps garbled circuits between offline and online.

use crate::error::Result;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::PathBuf;

/// Bytes that are reserved in memory before anything has come.
const EAGER: u64 = 16 << 20;

/// In memory, or in files that nobody else can name.
#[derive(Debug, Clone, Default)]
pub enum Storage {
    /// For small models and tests.
    #[default]
    Memory,
    /// In unnamed temporary files of a directory: memory stays bounded by a step.
    Directory(PathBuf),
}

/// A place that is written once and then read once.
pub(crate) enum Spool {
    Memory(Vec<u8>),
    File(BufWriter<File>),
}

impl Storage {
    pub(crate) fn spool(&self, bytes: u64) -> Result<Spool> {
        Ok(match self {
            // Reserved only as far as is cheap: the peer has to send the rest before it is held.
            Self::Memory => Spool::Memory(Vec::with_capacity(bytes.min(EAGER) as usize)),
            Self::Directory(dir) => {
                let file = tempfile::tempfile_in(dir)?;
                Spool::File(BufWriter::with_capacity(1 << 20, file))
            }
        })
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Memory(buffer) => buffer.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::File(file) => file.flush(),
        }
    }
}

impl Spool {
    /// From writing to reading.
    pub(crate) fn rewind(self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Memory(buffer) => Box::new(Cursor::new(buffer)),
            Self::File(file) => {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                Box::new(BufReader::with_capacity(1 << 20, file))
            }
        })
    }
}
