//! Sealing and writing beside the work that makes the material.
//!
//! Preparing a bundle alternates between computing and waiting for a peer; encryption, the copy to
//! the system and the disk need not wait for that, nor the other way round. Full chunks go to a
//! thread, a few at most ([`QUEUE`]), which seals and writes them in order and gives their memory
//! back. A bundle that fits one chunk is sealed by its owner and has no thread.
//!
//! A failure in the thread is reported by the next write, or when the bundle is finished.

use crate::seal::{CHUNK_BYTES, Chunk, Chunks, empty_chunk};
use crate::sealed::Bulk;
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// Full chunks that wait to be sealed, at most: a megabyte.
const QUEUE: usize = 4;
/// Number of chunks that are handed to the disk before the next are written, so that little is left
/// to wait for at the end.
const SYNC_CHUNKS: usize = 128;

/// What seals chunks into a bundle's place.
type Bulks = Box<Chunks<Box<dyn Bulk>>>;

/// The bulk of a bundle that is being written.
pub(crate) struct Background {
    chunk: Chunk,
    plain: u64,
    state: State,
}

enum State {
    /// Nothing is sealed yet.
    Idle(Bulks),
    Running(Sealing),
    /// A thread has failed and has reported it.
    Failed,
}

struct Sealing {
    full: SyncSender<Chunk>,
    spare: Receiver<Chunk>,
    thread: JoinHandle<io::Result<Bulks>>,
}

impl Background {
    pub(crate) fn new(chunks: Chunks<Box<dyn Bulk>>) -> Self {
        Self {
            chunk: empty_chunk(),
            plain: 0,
            state: State::Idle(Box::new(chunks)),
        }
    }

    /// Takes some bytes; returns how many.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits for more: only then is it known not to be the last.
        if self.chunk.len() == CHUNK_BYTES && !bytes.is_empty() {
            self.hand_over()?;
        }
        let now = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..now]);
        self.plain += now as u64;
        Ok(now)
    }

    /// Gives a full chunk to the thread.
    fn hand_over(&mut self) -> io::Result<()> {
        let sealing = match std::mem::replace(&mut self.state, State::Failed) {
            State::Idle(chunks) => Sealing::start(chunks)?,
            State::Running(sealing) => sealing,
            State::Failed => return Err(failed_before()),
        };
        let next = sealing.spare.try_recv().unwrap_or_else(|_| empty_chunk());
        match sealing.full.send(std::mem::replace(&mut self.chunk, next)) {
            Ok(()) => self.state = State::Running(sealing),
            // It ended before its time.
            Err(_) => return Err(sealing.join().err().unwrap_or_else(failed_before)),
        }
        Ok(())
    }

    /// Seals the last chunk and waits until everything is written. Returns where it is, and the
    /// plaintext's length.
    pub(crate) fn finish(mut self) -> io::Result<(Box<dyn Bulk>, u64)> {
        let mut chunks = match std::mem::replace(&mut self.state, State::Failed) {
            State::Idle(chunks) => chunks,
            State::Running(sealing) => sealing.join()?,
            State::Failed => return Err(failed_before()),
        };
        chunks.seal(&mut self.chunk, true)?;
        Ok((chunks.into_inner(), self.plain))
    }
}

impl Drop for Background {
    /// Waits for the thread to end, so that nothing writes to a place that is given up.
    fn drop(&mut self) {
        if let State::Running(sealing) = std::mem::replace(&mut self.state, State::Failed) {
            let _ = sealing.join();
        }
    }
}

impl Sealing {
    fn start(mut chunks: Bulks) -> io::Result<Self> {
        let (full, to_seal) = mpsc::sync_channel::<Chunk>(QUEUE);
        let (empty, spare) = mpsc::channel();
        let work = move || {
            for (number, mut chunk) in to_seal.into_iter().enumerate() {
                chunks.seal(&mut chunk, false)?;
                if number % SYNC_CHUNKS == SYNC_CHUNKS - 1 {
                    chunks.get_ref().settle()?;
                }
                // Its owner may have given up.
                let _ = empty.send(chunk);
            }
            Ok(chunks)
        };
        let thread = thread::Builder::new().name("sealing".into()).spawn(work)?;
        Ok(Self {
            full,
            spare,
            thread,
        })
    }

    /// Waits until all that was handed over is written.
    fn join(self) -> io::Result<Bulks> {
        drop(self.full);
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn failed_before() -> io::Error {
    io::Error::other("a write failed before")
}
