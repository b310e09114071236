//! The sending half: frames gathered in a buffer.

use crate::error::{Direction, NetError, Result};
use crate::frame::{HEADER_BYTES, Kind, encode_header};
use crate::meter::Meter;
use std::io::{self, Write};
use std::time::Duration;

/// Bytes gathered before they go out unasked.
const BUFFER: usize = 64 << 10;

/// The sending half of a channel.
///
/// Frames gather in a buffer and leave when it is full, on [`Writer::flush`], and whenever the channel
/// reads. Data longer than the buffer goes out without being copied into it.
pub struct Writer {
    inner: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    timeout: Option<Duration>,
    meter: Meter,
    /// The frame under way and the bytes it still needs.
    open: Option<(Kind, u64)>,
    broken: bool,
}

impl Writer {
    pub(crate) fn new(
        inner: Box<dyn Write + Send>,
        timeout: Option<Duration>,
        meter: Meter,
    ) -> Self {
        Self {
            inner,
            buffer: Vec::with_capacity(BUFFER),
            timeout,
            meter,
            open: None,
            broken: false,
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`NetError`] if the peer is gone or does not read.
    pub fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<()> {
        self.begin(kind, payload.len() as u64)?;
        self.put(payload)
    }

    /// Begins a message of `length` bytes whose payload follows piece by piece.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn stream(&mut self, kind: Kind, length: u64) -> Result<SendStream<'_>> {
        self.begin(kind, length)?;
        Ok(SendStream { writer: self, kind })
    }

    /// Hands everything gathered so far to the network.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn flush(&mut self) -> Result<()> {
        if self.broken {
            return Err(self.broken_error());
        }
        let result = self
            .inner
            .write_all(&self.buffer)
            .and_then(|()| self.inner.flush());
        self.buffer.clear();
        self.check(result)
    }

    /// Whether bytes are waiting for a flush.
    pub(crate) fn is_pending(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn begin(&mut self, kind: Kind, length: u64) -> Result<()> {
        if self.broken {
            return Err(self.broken_error());
        }
        if let Some((kind, missing)) = self.open {
            return Err(NetError::Unfinished {
                kind,
                missing,
                direction: Direction::Send,
            });
        }
        let header = encode_header(kind, length);
        self.meter.sent(HEADER_BYTES + length);
        self.open = (length > 0).then_some((kind, length));
        self.raw(&header)
    }

    /// Adds payload to the frame under way.
    fn put(&mut self, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if self.broken {
            return Err(self.broken_error());
        }
        let asked = data.len() as u64;
        match &mut self.open {
            Some((_, left)) if asked < *left => *left -= asked,
            Some((_, left)) if asked == *left => self.open = None,
            Some((kind, left)) => {
                return Err(NetError::Overrun {
                    kind: *kind,
                    asked,
                    left: *left,
                    direction: Direction::Send,
                });
            }
            None => unreachable!("payload is only put into an open frame"),
        }
        self.raw(data)
    }

    fn raw(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.len() + data.len() > BUFFER {
            let result = self.inner.write_all(&self.buffer);
            self.buffer.clear();
            self.check(result)?;
        }
        if data.len() >= BUFFER {
            let result = self.inner.write_all(data);
            return self.check(result);
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    fn check(&mut self, result: io::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.broken = true;
            NetError::from_io(error, Direction::Send, self.timeout)
        })
    }

    fn broken_error(&self) -> NetError {
        NetError::Broken {
            direction: Direction::Send,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A party that ends well may forget its last flush; one that failed must not wait here.
        if self.is_pending() && !self.broken && !std::thread::panicking() {
            let _ = self.flush();
        }
    }
}

/// A message being sent piece by piece.
///
/// It ends by itself with its last byte. If it is dropped before, the channel refuses the next message:
/// the peer would take that for the rest of this one.
pub struct SendStream<'a> {
    writer: &'a mut Writer,
    kind: Kind,
}

impl SendStream<'_> {
    /// Sends the next piece.
    ///
    /// # Errors
    /// [`NetError::Overrun`] if the frame has less room; else as [`Writer::send`].
    pub fn put(&mut self, data: &[u8]) -> Result<()> {
        if self.left() == 0 && !data.is_empty() {
            return Err(NetError::Overrun {
                kind: self.kind,
                asked: data.len() as u64,
                left: 0,
                direction: Direction::Send,
            });
        }
        self.writer.put(data)
    }

    /// Bytes that the frame still needs.
    pub fn left(&self) -> u64 {
        self.writer.open.map_or(0, |(_, left)| left)
    }

    /// Checks that the frame is complete.
    ///
    /// # Errors
    /// [`NetError::Unfinished`] if it is not.
    pub fn finish(self) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            missing => Err(NetError::Unfinished {
                kind: self.kind,
                missing,
                direction: Direction::Send,
            }),
        }
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
