//! The sending half: frames gathered in a buffer.

use crate::account::Account;
use crate::error::{Direction, Result};
use crate::frame::{HEADER_BYTES, encode_header};
use crate::kind::Kind;
use crate::meter::Meter;
use crate::record::{Doing, Recorder};
use std::io::{self, Write};
use std::time::Duration;

/// Bytes gathered before they go out without a flush.
const BUFFER: usize = 128 << 10;

/// The sending half of a channel.
///
/// Frames gather in a buffer and leave when it is full, on [`Writer::flush`], and whenever the
/// channel reads. Data longer than the buffer goes out without being copied into it.
pub(crate) struct Writer {
    inner: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    meter: Meter,
    account: Account,
    recorder: Recorder,
}

impl Writer {
    pub(crate) fn new(
        inner: Box<dyn Write + Send>,
        timeout: Option<Duration>,
        meter: Meter,
        recorder: Recorder,
    ) -> Self {
        Self {
            inner,
            buffer: Vec::with_capacity(BUFFER),
            meter,
            account: Account::new(Direction::Send, timeout),
            recorder,
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`crate::NetError`] if the peer is gone or does not read.
    pub(crate) fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<()> {
        self.stream(kind, payload.len() as u64)?.put(payload)
    }

    /// Begins a message of `length` bytes whose payload follows piece by piece.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn stream(&mut self, kind: Kind, length: u64) -> Result<SendStream<'_>> {
        self.account.check_between_frames()?;
        let header = encode_header(kind, length);
        self.meter.sent(HEADER_BYTES + length);
        self.account.begin(kind, length);
        self.raw(&header)?;
        Ok(SendStream { writer: self, kind })
    }

    /// Hands everything gathered so far to the network.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.account.check_sound()?;
        self.empty()?;
        self.hand(|inner| inner.flush())
    }

    /// Tells whether bytes are waiting for a flush.
    pub(crate) fn is_pending(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn raw(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.len() + data.len() > BUFFER {
            self.empty()?;
        }
        if data.len() < BUFFER {
            self.buffer.extend_from_slice(data);
            return Ok(());
        }
        self.hand(|inner| inner.write_all(data))
    }

    fn empty(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.buffer);
        let result = self.hand(|inner| inner.write_all(&gathered));
        self.buffer = gathered;
        self.buffer.clear();
        result
    }

    /// Lets the network take something.
    fn hand(&mut self, take: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let begun = self.recorder.begin();
        let result = take(&mut *self.inner);
        self.recorder.end(Doing::Sending, begun);
        result.map_err(|error| self.account.fail(error))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A party that ends well may forget its last flush; one that failed must not wait here.
        if self.is_pending() && !self.account.is_broken() && !std::thread::panicking() {
            let _ = self.flush();
        }
    }
}

/// A message being sent piece by piece.
///
/// It ends by itself with its last byte. If it is dropped before, the channel refuses the next
/// message: the peer would take that for the rest of this one.
pub struct SendStream<'a> {
    writer: &'a mut Writer,
    kind: Kind,
}

impl SendStream<'_> {
    /// Sends the next piece.
    ///
    /// # Errors
    /// [`crate::NetError::Overrun`] if the frame has less room; else as [`crate::Channel::send`].
    #[inline]
    pub fn put(&mut self, data: &[u8]) -> Result<()> {
        // Small pieces are the common case: neither the end of the frame nor of the buffer is near.
        let writer = &mut *self.writer;
        if data.len() <= BUFFER - writer.buffer.len() && writer.account.spend_within(data.len()) {
            writer.buffer.extend_from_slice(data);
            return Ok(());
        }
        writer.account.spend(self.kind, data.len())?;
        writer.raw(data)
    }

    /// Returns how many bytes the frame still needs.
    pub fn left(&self) -> u64 {
        self.writer.account.left()
    }

    /// Checks that the frame is complete.
    ///
    /// # Errors
    /// [`crate::NetError::Unfinished`] if it is not.
    pub fn finish(self) -> Result<()> {
        self.writer.account.check_complete(self.kind)
    }
}

impl Write for SendStream<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.put(data)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.writer.flush()?)
    }
}
