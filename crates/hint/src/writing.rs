//! A model's hint and its multipliers on their way into files, value by value: the whole never has
//! to fit into memory.
//!
//! The head of a file of multipliers names the hint, whose root is known when all of it is written.
//! So the head is written last, and a file that was cut off in the middle has none.

use crate::multipliers::{HEAD_BYTES, head};
use crate::public::Name;
use crate::published::{CHUNK_BYTES, Hash, Identity, Index};
use crate::server::{Hint, Multiplier};
use std::io::{self, Seek, SeekFrom, Write};

/// Writes a hint, and hashes its chunks on the way.
pub struct HintWriter<W> {
    sink: W,
    name: Name,
    bytes: u64,
    hashes: Vec<Hash>,
    /// Of the chunk that is not full yet.
    hasher: blake3::Hasher,
}

impl<W: Write> HintWriter<W> {
    /// Begins the hint of a name.
    pub fn new(name: &Name, sink: W) -> Self {
        Self {
            sink,
            name: *name,
            bytes: 0,
            hashes: Vec::new(),
            hasher: blake3::Hasher::new(),
        }
    }

    /// Writes the hint of the next value.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn add(&mut self, hint: &Hint) -> io::Result<()> {
        self.put(&hint.encode())
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - (self.bytes % CHUNK_BYTES as u64) as usize;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.hasher.update(now);
            self.bytes += now.len() as u64;
            if now.len() == room {
                self.close_chunk();
            }
            bytes = rest;
        }
        Ok(())
    }

    fn close_chunk(&mut self) {
        self.hashes.push(*self.hasher.finalize().as_bytes());
        self.hasher.reset();
    }

    /// Ends it, and returns the hashes of its chunks and the sink.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> io::Result<(Index, W)> {
        if !self.bytes.is_multiple_of(CHUNK_BYTES as u64) {
            self.close_chunk();
        }
        self.sink.flush()?;
        let index = Index::from_hashes(self.name, self.bytes, self.hashes);
        Ok((index, self.sink))
    }
}

/// Writes what [`Multipliers::open`](crate::multipliers::Multipliers::open) reads: a head, then
/// each multiplier behind its hash.
pub struct MultiplierWriter<W> {
    sink: W,
}

impl<W: Write + Seek> MultiplierWriter<W> {
    /// Begins a file, with room for the head.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn new(mut sink: W) -> io::Result<Self> {
        sink.write_all(&[0; HEAD_BYTES])?;
        Ok(Self { sink })
    }

    /// Writes the multiplier of the next value.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn add(&mut self, multiplier: &Multiplier) -> io::Result<()> {
        let bytes = multiplier.bytes();
        self.sink.write_all(blake3::hash(bytes).as_bytes())?;
        self.sink.write_all(bytes)
    }

    /// Ends with the head, which names the hint, and returns the sink.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self, identity: &Identity) -> io::Result<W> {
        self.sink.seek(SeekFrom::Start(0))?;
        self.sink.write_all(&head(identity))?;
        self.sink.flush()?;
        Ok(self.sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that pieces of any length make the hashes that the whole has.
    #[test]
    fn chunks_are_hashed_as_they_pass() {
        for length in [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 5] {
            let all: Vec<u8> = (0..length).map(|i| ((i * i) >> 5) as u8).collect();
            for piece in [CHUNK_BYTES / 3, CHUNK_BYTES, 3 * CHUNK_BYTES] {
                let mut writer = HintWriter::new(&[4; 32], Vec::new());
                all.chunks(piece).try_for_each(|p| writer.put(p)).unwrap();
                let (index, written) = writer.finish().unwrap();
                assert_eq!(index, Index::of(&[4; 32], &all));
                assert!(written == all);
            }
        }
    }
}
