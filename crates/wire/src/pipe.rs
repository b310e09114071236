//! A bounded one-way byte pipe between two threads, which is also the delay line of a shaped link;
//! two of them are a transport ([`Memory`]).
//!
//! Bytes travel in chunks. A full pipe blocks its writer and an empty one its reader, as a socket
//! does: the memory channel must not hide a protocol in which both parties write before they read.
//! Chunks are filled and emptied outside the lock, and their buffers go back to the writer.
//!
//! **Delay line.** A shaped pipe stamps each chunk with the time at which its last byte arrives:
//!
//! ```text
//! sent    = max(now, sent of the chunk before) + bytes / bandwidth   the link carries one chunk
//! arrival = sent + delay                                             many are on their way at once
//! ```
//!
//! The reader sleeps until the stamp. So back-to-back messages share one delay, and a long transfer
//! runs at the bandwidth. The capacity grows by what is on its way (bandwidth × delay), as TCP's
//! window would.

use crate::channel::Options;
use crate::clock;
use crate::shape::LinkShape;
use crate::transport::{Receive, Transport};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Largest chunk: large enough to make locking cheap, small enough to stay in a core's cache.
const CHUNK: usize = 64 << 10;
/// Largest chunk of a shaped pipe: arrival times must be finer than a chunk's worth of bandwidth.
const SHAPED_CHUNK: usize = 16 << 10;
/// Buffers kept for reuse.
const SPARE: usize = 8;

struct Chunk {
    data: Vec<u8>,
    arrival: Option<Duration>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Chunk>,
    /// Bytes in the queue or reserved for a chunk that is being filled.
    held: usize,
    spare: Vec<Vec<u8>>,
    /// When the link has sent everything before.
    link_free: Option<Duration>,
    writer_gone: bool,
    reader_gone: Option<io::ErrorKind>,
}

struct Shared {
    state: Mutex<State>,
    readable: Condvar,
    writable: Condvar,
    capacity: usize,
    chunk: usize,
    shape: LinkShape,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on a condition until a deadline; `None` when the deadline has passed.
fn wait<'a>(
    signal: &Condvar,
    state: MutexGuard<'a, State>,
    deadline: Option<Duration>,
) -> Option<MutexGuard<'a, State>> {
    match deadline {
        None => Some(signal.wait(state).unwrap_or_else(PoisonError::into_inner)),
        Some(deadline) => {
            let left = deadline.checked_sub(clock::now())?;
            if left.is_zero() {
                return None;
            }
            let (state, _) = signal
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            Some(state)
        }
    }
}

/// The sending end.
pub struct PipeWriter {
    shared: Arc<Shared>,
    timeout: Option<Duration>,
}

/// The receiving end.
pub struct PipeReader {
    shared: Arc<Shared>,
    chunk: Vec<u8>,
    position: usize,
}

/// Makes a pipe that holds at most `capacity` bytes, plus what a shaped link has on its way.
pub fn pipe(
    capacity: usize,
    shape: LinkShape,
    timeout: Option<Duration>,
) -> (PipeWriter, PipeReader) {
    let capacity = capacity.max(1).saturating_add(shape.bytes_under_way());
    let largest = if shape.is_none() { CHUNK } else { SHAPED_CHUNK };
    let shared = Arc::new(Shared {
        state: Mutex::new(State::default()),
        readable: Condvar::new(),
        writable: Condvar::new(),
        capacity,
        chunk: largest.min(capacity),
        shape,
    });
    let writer = PipeWriter {
        shared: Arc::clone(&shared),
        timeout,
    };
    let reader = PipeReader {
        shared,
        chunk: Vec::new(),
        position: 0,
    };
    (writer, reader)
}

impl Write for PipeWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let shared = &*self.shared;
        let n = data.len().min(shared.chunk);
        let deadline = self.timeout.map(|t| clock::now() + t);
        let mut state = shared.lock();
        while state.reader_gone.is_none() && state.held + n > shared.capacity {
            state = wait(&shared.writable, state, deadline).ok_or(io::ErrorKind::TimedOut)?;
        }
        if let Some(kind) = state.reader_gone {
            return Err(kind.into());
        }
        state.held += n;
        let mut buffer = state.spare.pop().unwrap_or_default();
        drop(state);

        buffer.clear();
        buffer.extend_from_slice(&data[..n]);

        let mut state = shared.lock();
        let arrival = (!shared.shape.is_none()).then(|| {
            let now = clock::now();
            let start = state.link_free.map_or(now, |free| free.max(now));
            let sent = start + shared.shape.time_to_send(n);
            state.link_free = Some(sent);
            sent + shared.shape.delay
        });
        state.queue.push_back(Chunk {
            data: buffer,
            arrival,
        });
        drop(state);
        shared.readable.notify_one();
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.shared.lock().writer_gone = true;
        self.shared.readable.notify_all();
    }
}

impl PipeReader {
    /// Closes the pipe so that its writer fails with this kind of error.
    pub fn fail(&self, kind: io::ErrorKind) {
        let mut state = self.shared.lock();
        state.reader_gone.get_or_insert(kind);
        drop(state);
        self.shared.writable.notify_all();
    }

    /// Tells whether a read would find nothing at this moment.
    pub fn is_idle(&self) -> bool {
        self.position == self.chunk.len() && self.shared.lock().queue.is_empty()
    }

    /// Takes the next chunk; `false` at the end of the stream.
    fn next_chunk(&mut self, patience: Option<Duration>) -> io::Result<bool> {
        let shared = &*self.shared;
        let deadline = patience.map(|t| clock::now() + t);
        let mut state = shared.lock();
        if state.spare.len() < SPARE && self.chunk.capacity() > 0 {
            state.spare.push(std::mem::take(&mut self.chunk));
        }
        self.chunk = Vec::new();
        self.position = 0;
        loop {
            let arrival = match state.queue.front() {
                None if state.writer_gone => return Ok(false),
                None => {
                    state =
                        wait(&shared.readable, state, deadline).ok_or(io::ErrorKind::TimedOut)?;
                    continue;
                }
                Some(chunk) => chunk.arrival,
            };
            if let Some(arrival) = arrival
                && arrival > clock::now()
            {
                // Only this reader takes chunks, so the one at the front stays there while it
                // sleeps.
                drop(state);
                std::thread::sleep(arrival.saturating_sub(clock::now()));
                state = shared.lock();
            }
            let chunk = state.queue.pop_front().expect("the front was seen");
            state.held -= chunk.data.len();
            self.chunk = chunk.data;
            drop(state);
            shared.writable.notify_one();
            return Ok(true);
        }
    }
}

impl Receive for PipeReader {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.position == self.chunk.len() && !self.next_chunk(patience)? {
            return Ok(0);
        }
        let n = out.len().min(self.chunk.len() - self.position);
        out[..n].copy_from_slice(&self.chunk[self.position..self.position + n]);
        self.position += n;
        Ok(n)
    }
}

impl Read for PipeReader {
    /// Waits for as long as the writer is there.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Receive::receive(self, out, None)
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.fail(io::ErrorKind::BrokenPipe);
    }
}

/// One end of a connection in memory.
pub struct Memory {
    output: PipeWriter,
    input: PipeReader,
    timeout: Option<Duration>,
}

impl Memory {
    /// Makes two ends that are connected.
    pub fn pair(options: &Options) -> (Self, Self) {
        let Options {
            timeout,
            capacity,
            shape,
        } = *options;
        let (left_out, right_in) = pipe(capacity, shape, timeout);
        let (right_out, left_in) = pipe(capacity, shape, timeout);
        let end = |output, input| Self {
            output,
            input,
            timeout,
        };
        (end(left_out, left_in), end(right_out, right_in))
    }
}

impl Transport for Memory {
    type Sender = PipeWriter;
    type Receiver = PipeReader;

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn split(self) -> (PipeWriter, PipeReader) {
        (self.output, self.input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unshaped(capacity: usize, timeout_ms: u64) -> (PipeWriter, PipeReader) {
        let timeout = Some(Duration::from_millis(timeout_ms));
        pipe(capacity, LinkShape::NONE, timeout)
    }

    #[test]
    fn bytes_keep_their_order_through_a_small_pipe() {
        let (mut writer, mut reader) = unshaped(7, 5000);
        let data: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        let copy = data.clone();
        let thread = std::thread::spawn(move || writer.write_all(&copy).unwrap());
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        thread.join().unwrap();
        assert_eq!(got, data);
    }

    #[test]
    fn a_full_pipe_times_out_its_writer_and_an_empty_one_its_reader() {
        let (mut writer, mut reader) = unshaped(100, 20);
        writer.write_all(&[0; 100]).unwrap();
        let error = writer.write(&[0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        reader.read_exact(&mut [0; 100]).unwrap();
        let patience = Some(Duration::from_millis(20));
        let error = Receive::receive(&mut reader, &mut [0], patience).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_closed_end_is_noticed_while_waiting() {
        let (mut writer, reader) = unshaped(10, 5000);
        writer.write_all(&[0; 10]).unwrap();
        let thread = std::thread::spawn(move || writer.write(&[0]).unwrap_err().kind());
        std::thread::sleep(Duration::from_millis(10));
        drop(reader);
        assert_eq!(thread.join().unwrap(), io::ErrorKind::BrokenPipe);

        let (writer, mut reader) = unshaped(10, 5000);
        let thread = std::thread::spawn(move || Read::read(&mut reader, &mut [0]).unwrap());
        std::thread::sleep(Duration::from_millis(10));
        drop(writer);
        assert_eq!(thread.join().unwrap(), 0);
    }
}
