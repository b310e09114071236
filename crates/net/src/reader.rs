//! The receiving half: frames checked before anything is allocated for them.

use crate::error::{Direction, NetError, Result};
use crate::frame::{HEADER_BYTES, Kind, decode_header};
use crate::meter::Meter;
use std::io::{self, Read};
use std::time::Duration;

/// Bytes read ahead.
const BUFFER: usize = 64 << 10;

/// The receiving half of a channel.
///
/// Every receive names the message it expects and the longest payload it accepts; both are compared with
/// the header before memory is set aside.
pub struct Reader {
    inner: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    timeout: Option<Duration>,
    meter: Meter,
    /// The frame under way and the bytes of it not yet taken.
    open: Option<(Kind, u64)>,
    broken: bool,
}

impl Reader {
    pub(crate) fn new(
        inner: Box<dyn Read + Send>,
        timeout: Option<Duration>,
        meter: Meter,
    ) -> Self {
        Self {
            inner,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            timeout,
            meter,
            open: None,
            broken: false,
        }
    }

    /// Receives one message of at most `limit` bytes.
    ///
    /// # Errors
    /// [`NetError::TooLong`] or [`NetError::WrongKind`] if the peer sent something else, and the errors of
    /// a peer that is gone or silent.
    pub fn recv(&mut self, kind: Kind, limit: usize) -> Result<Vec<u8>> {
        let length = self.begin(kind, |announced| {
            let limit = limit as u64;
            (announced > limit).then_some(NetError::TooLong {
                kind,
                announced,
                limit,
            })
        })?;
        let mut payload = vec![0; length as usize];
        self.take(&mut payload)?;
        Ok(payload)
    }

    /// Receives one message whose length is known, in place.
    ///
    /// # Errors
    /// [`NetError::WrongLength`] if the peer announced another length; else as [`Self::recv`].
    pub fn recv_exact(&mut self, kind: Kind, out: &mut [u8]) -> Result<()> {
        self.begin_exact(kind, out.len() as u64)?;
        self.take(out)
    }

    /// Begins to receive a message of exactly `length` bytes, to be taken piece by piece.
    ///
    /// # Errors
    /// As [`Self::recv_exact`].
    pub fn stream(&mut self, kind: Kind, length: u64) -> Result<RecvStream<'_>> {
        self.begin_exact(kind, length)?;
        Ok(RecvStream { reader: self, kind })
    }

    /// Begins to receive a message of at most `limit` bytes, to be taken piece by piece.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn stream_up_to(&mut self, kind: Kind, limit: u64) -> Result<RecvStream<'_>> {
        self.begin(kind, |announced| {
            (announced > limit).then_some(NetError::TooLong {
                kind,
                announced,
                limit,
            })
        })?;
        Ok(RecvStream { reader: self, kind })
    }

    fn begin_exact(&mut self, kind: Kind, expected: u64) -> Result<()> {
        self.begin(kind, |announced| {
            (announced != expected).then_some(NetError::WrongLength {
                kind,
                announced,
                expected,
            })
        })?;
        Ok(())
    }

    /// Reads a header and checks it.
    fn begin(&mut self, kind: Kind, refusal: impl FnOnce(u64) -> Option<NetError>) -> Result<u64> {
        if self.broken {
            return Err(self.broken_error());
        }
        if let Some((kind, missing)) = self.open {
            return Err(NetError::Unfinished {
                kind,
                missing,
                direction: Direction::Receive,
            });
        }
        let mut header = [0; HEADER_BYTES as usize];
        self.raw(&mut header)?;
        let (code, length) = decode_header(header);
        let error = if code != kind.code() {
            Some(NetError::WrongKind {
                expected: kind,
                got: code,
            })
        } else {
            refusal(length)
        };
        if let Some(error) = error {
            // What follows is the payload of a frame nobody wants: nothing after it can be trusted.
            self.broken = true;
            return Err(error);
        }
        self.meter.received(HEADER_BYTES + length);
        self.open = (length > 0).then_some((kind, length));
        Ok(length)
    }

    /// Takes payload from the frame under way.
    fn take(&mut self, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        if self.broken {
            return Err(self.broken_error());
        }
        let asked = out.len() as u64;
        match &mut self.open {
            Some((_, left)) if asked < *left => *left -= asked,
            Some((_, left)) if asked == *left => self.open = None,
            Some((kind, left)) => {
                return Err(NetError::Overrun {
                    kind: *kind,
                    asked,
                    left: *left,
                    direction: Direction::Receive,
                });
            }
            None => unreachable!("payload is only taken from an open frame"),
        }
        self.raw(out)
    }

    fn raw(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let buffered = self.end - self.start;
            if buffered > 0 {
                let n = buffered.min(out.len());
                let (now, rest) = out.split_at_mut(n);
                now.copy_from_slice(&self.buffer[self.start..self.start + n]);
                self.start += n;
                out = rest;
            } else if out.len() >= BUFFER {
                let n = self.read_some(out, false)?;
                out = &mut out[n..];
            } else {
                self.end = self.read_some(&mut [], true)?;
                self.start = 0;
            }
        }
        Ok(())
    }

    /// One read of the transport, straight into `out` or into the buffer.
    fn read_some(&mut self, out: &mut [u8], ahead: bool) -> Result<usize> {
        loop {
            let target = if ahead { &mut *self.buffer } else { &mut *out };
            let error = match self.inner.read(target) {
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Ok(n) => return Ok(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.broken = true;
            return Err(NetError::from_io(error, Direction::Receive, self.timeout));
        }
    }

    fn broken_error(&self) -> NetError {
        NetError::Broken {
            direction: Direction::Receive,
        }
    }
}

/// A message being received piece by piece.
///
/// It ends by itself with its last byte. If it is dropped before, the channel refuses the next receive.
pub struct RecvStream<'a> {
    reader: &'a mut Reader,
    kind: Kind,
}

impl RecvStream<'_> {
    /// Receives the next piece, all of it.
    ///
    /// # Errors
    /// [`NetError::Overrun`] if the frame has fewer bytes left; else as [`Reader::recv`].
    pub fn get(&mut self, out: &mut [u8]) -> Result<()> {
        if self.left() == 0 && !out.is_empty() {
            return Err(NetError::Overrun {
                kind: self.kind,
                asked: out.len() as u64,
                left: 0,
                direction: Direction::Receive,
            });
        }
        self.reader.take(out)
    }

    /// Bytes that the frame still has.
    pub fn left(&self) -> u64 {
        self.reader.open.map_or(0, |(_, left)| left)
    }

    /// Checks that the whole frame was taken.
    ///
    /// # Errors
    /// [`NetError::Unfinished`] if it was not.
    pub fn finish(self) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            missing => Err(NetError::Unfinished {
                kind: self.kind,
                missing,
                direction: Direction::Receive,
            }),
        }
    }
}

impl Read for RecvStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out
            .len()
            .min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        self.get(&mut out[..n])?;
        Ok(n)
    }
}
