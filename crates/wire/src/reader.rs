//! The receiving half: frames checked before anything is allocated for them.

use crate::account::Account;
use crate::clock;
use crate::error::{Direction, NetError, Result};
use crate::frame::{HEADER_BYTES, decode_header};
use crate::kind::Kind;
use crate::meter::Meter;
use crate::record::{Doing, Recorder};
use crate::transport::{PIECE, Receive};
use std::io::{self, Read};
use std::time::Duration;

/// Bytes read ahead.
const BUFFER: usize = 128 << 10;

/// How long this party has waited for the piece that it waits for.
///
/// Not the clock on the wall counts but the time spent waiting: what this party computes between
/// two reads is not the peer's delay.
struct Patience {
    timeout: Option<Duration>,
    waited: Duration,
    moved: usize,
    recorder: Recorder,
}

impl Patience {
    /// Gives the peer all its time again: for a header, or for the first byte after one.
    fn renew(&mut self) {
        (self.waited, self.moved) = (Duration::ZERO, 0);
    }

    /// Reads once from the transport; its end is an error, since a frame is expected.
    fn read(&mut self, inner: &mut dyn Receive, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.timeout.map(|time| time.saturating_sub(self.waited));
            let (started, begun) = (clock::now(), self.recorder.begin());
            let result = inner.receive(out, left);
            self.waited += clock::now().saturating_sub(started);
            self.recorder.end(Doing::Receiving, begun);
            match result {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.moved += n;
                    if self.moved >= PIECE {
                        self.renew();
                    }
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The receiving half of a channel.
///
/// Every receive names the message it expects and the longest payload it accepts; both are compared
/// with the header before memory is set aside.
pub(crate) struct Reader {
    inner: Box<dyn Receive>,
    patience: Patience,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    meter: Meter,
    account: Account,
}

impl Reader {
    pub(crate) fn new(
        inner: Box<dyn Receive>,
        timeout: Option<Duration>,
        meter: Meter,
        recorder: Recorder,
    ) -> Self {
        Self {
            inner,
            patience: Patience {
                timeout,
                waited: Duration::ZERO,
                moved: 0,
                recorder,
            },
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            meter,
            account: Account::new(Direction::Receive, timeout),
        }
    }

    /// Receives one message of at most `limit` bytes.
    ///
    /// # Errors
    /// [`NetError::TooLong`] or [`NetError::WrongKind`] if the peer sent something else, and the
    /// errors of a peer that is gone or silent.
    pub(crate) fn recv(&mut self, kind: Kind, limit: usize) -> Result<Vec<u8>> {
        let mut stream = self.stream_up_to(kind, limit as u64)?;
        let mut payload = vec![0; stream.left() as usize];
        stream.get(&mut payload)?;
        Ok(payload)
    }

    /// Receives one message whose length is known, in place.
    ///
    /// # Errors
    /// [`NetError::WrongLength`] if the peer announced another length; else as [`Self::recv`].
    pub(crate) fn recv_exact(&mut self, kind: Kind, out: &mut [u8]) -> Result<()> {
        self.stream(kind, out.len() as u64)?.get(out)
    }

    /// Begins to receive a message of exactly `length` bytes, to be taken piece by piece.
    ///
    /// # Errors
    /// As [`Self::recv_exact`].
    pub(crate) fn stream(&mut self, kind: Kind, length: u64) -> Result<RecvStream<'_>> {
        self.begin(kind, |announced| {
            (announced != length).then_some(NetError::WrongLength {
                kind,
                announced,
                expected: length,
            })
        })
    }

    /// Begins to receive a message of at most `limit` bytes, to be taken piece by piece.
    ///
    /// # Errors
    /// As [`Self::recv`].
    fn stream_up_to(&mut self, kind: Kind, limit: u64) -> Result<RecvStream<'_>> {
        self.begin(kind, |announced| {
            (announced > limit).then_some(NetError::TooLong {
                kind,
                announced,
                limit,
            })
        })
    }

    /// Reads a header and checks it.
    fn begin(
        &mut self,
        kind: Kind,
        refusal: impl FnOnce(u64) -> Option<NetError>,
    ) -> Result<RecvStream<'_>> {
        self.account.check_between_frames()?;
        let mut header = [0; HEADER_BYTES as usize];
        self.patience.renew();
        self.raw(&mut header)?;
        self.patience.renew();
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
            // What follows is the payload of an unwanted frame: nothing after it can be trusted.
            return Err(self.account.refuse(error));
        }
        self.meter.received(HEADER_BYTES + length);
        self.account.begin(kind, length);
        Ok(RecvStream { reader: self, kind })
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
                let n = self.patience.read(&mut *self.inner, out);
                let n = n.map_err(|error| self.account.fail(error))?;
                out = &mut out[n..];
            } else {
                let n = self.patience.read(&mut *self.inner, &mut self.buffer);
                self.end = n.map_err(|error| self.account.fail(error))?;
                self.start = 0;
            }
        }
        Ok(())
    }
}

/// A message being received piece by piece.
///
/// It ends by itself with its last byte. If it is dropped before, the channel refuses the next
/// receive.
pub struct RecvStream<'a> {
    reader: &'a mut Reader,
    kind: Kind,
}

impl RecvStream<'_> {
    /// Receives the next piece, all of it.
    ///
    /// # Errors
    /// [`NetError::Overrun`] if the frame has fewer bytes left; else as [`crate::Channel::recv`].
    #[inline]
    pub fn get(&mut self, out: &mut [u8]) -> Result<()> {
        // Small pieces are the common case: neither the end of the frame nor of the buffer is near.
        let reader = &mut *self.reader;
        if out.len() <= reader.end - reader.start && reader.account.spend_within(out.len()) {
            out.copy_from_slice(&reader.buffer[reader.start..reader.start + out.len()]);
            reader.start += out.len();
            return Ok(());
        }
        reader.account.spend(self.kind, out.len())?;
        reader.raw(out)
    }

    /// Returns how many bytes the frame still has.
    pub fn left(&self) -> u64 {
        self.reader.account.left()
    }

    /// Checks that the whole frame was taken.
    ///
    /// # Errors
    /// [`NetError::Unfinished`] if it was not.
    pub fn finish(self) -> Result<()> {
        self.reader.account.check_complete(self.kind)
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
