//! The channel: one interface over every transport.
//!
//! **The deadlock rule.** A transport holds a bounded number of bytes. If both parties send more
//! than that before either receives, both block for ever (here: until the time-out). So at any
//! moment of a protocol one party sends and the other receives. The memory channel is bounded like
//! a socket, so a test that runs over memory finds a violation.
//!
//! **Flushing.** Sends gather in a buffer; every receive on the channel flushes it first, so that a
//! party never waits for an answer to a question still in its own buffer. A step that *ends* with a
//! send calls [`Channel::flush`].

use crate::error::Result;
use crate::kind::Kind;
use crate::meter::{Meter, Phase};
use crate::peer::Agreed;
use crate::pipe::Memory;
use crate::reader::{Reader, RecvStream};
use crate::record::Recorder;
use crate::shape::LinkShape;
use crate::transport::{Streams, Transport};
use crate::writer::{SendStream, Writer};
use std::io::{Read, Write};
use std::time::Duration;

/// How a channel behaves.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The longest wait for a message to begin, and then for every 64 KiB of it, in either
    /// direction; the longest handshake. `None` waits for ever.
    pub timeout: Option<Duration>,
    /// Bytes that a memory channel or a shaped link holds per direction before its writer waits.
    pub capacity: usize,
    /// The shape of what this party sends.
    pub shape: LinkShape,
}

impl Default for Options {
    /// Returns a time-out of two minutes, the buffer of a socket, no shaping.
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(120)),
            capacity: 256 << 10,
            shape: LinkShape::NONE,
        }
    }
}

/// One party's end of a connection.
pub struct Channel {
    writer: Writer,
    reader: Reader,
    meter: Meter,
    recorder: Recorder,
    agreed: Option<Agreed>,
}

impl Channel {
    /// Makes a channel of a connection.
    pub fn new(transport: impl Transport) -> Self {
        let (timeout, recorder) = (transport.timeout(), transport.recorder());
        let agreed = transport.agreed();
        let (output, input) = transport.split();
        let meter = Meter::new();
        Self {
            writer: Writer::new(Box::new(output), timeout, meter.clone(), recorder.clone()),
            reader: Reader::new(Box::new(input), timeout, meter.clone(), recorder.clone()),
            meter,
            recorder,
            agreed,
        }
    }

    /// Makes two ends that are connected in memory.
    pub fn memory_pair(options: &Options) -> (Self, Self) {
        let (left, right) = Memory::pair(options);
        (Self::new(left), Self::new(right))
    }

    /// Makes a channel over any two streams of bytes, unencrypted: recorded or invented ones.
    /// Time-outs are up to the streams.
    pub fn over(output: impl Write + Send + 'static, input: impl Read + Send + 'static) -> Self {
        Self::new(Streams { output, input })
    }

    /// Sends one message; it leaves with the next flush or receive.
    ///
    /// # Errors
    /// [`crate::NetError`] if the peer is gone or does not read.
    pub fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<()> {
        self.writer.send(kind, payload)
    }

    /// Sends a message under any code, as a hostile peer can: for tests and fuzzing. What is
    /// received has a kind of the table.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[doc(hidden)]
    pub fn send_code(&mut self, code: u8, payload: &[u8]) -> Result<()> {
        self.writer.send(Kind::unlisted(code), payload)
    }

    /// Begins a message that is sent piece by piece.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_stream(&mut self, kind: Kind, length: u64) -> Result<SendStream<'_>> {
        self.writer.stream(kind, length)
    }

    /// Receives one message of at most `limit` bytes.
    ///
    /// # Errors
    /// [`crate::NetError::TooLong`] or [`crate::NetError::WrongKind`] if the peer sent something
    /// else, and the errors of a peer that is gone or silent.
    pub fn recv(&mut self, kind: Kind, limit: usize) -> Result<Vec<u8>> {
        self.turn()?.recv(kind, limit)
    }

    /// Receives one message of a known length, in place.
    ///
    /// # Errors
    /// [`crate::NetError::WrongLength`] if the peer announced another length; else as
    /// [`Self::recv`].
    pub fn recv_exact(&mut self, kind: Kind, out: &mut [u8]) -> Result<()> {
        self.turn()?.recv_exact(kind, out)
    }

    /// Begins to receive a message of a known length piece by piece.
    ///
    /// # Errors
    /// As [`Self::recv_exact`].
    pub fn recv_stream(&mut self, kind: Kind, length: u64) -> Result<RecvStream<'_>> {
        self.turn()?.stream(kind, length)
    }

    /// Sends what has gathered.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush()
    }

    /// Returns the receiving half, with what was sent before on its way.
    fn turn(&mut self) -> Result<&mut Reader> {
        if self.writer.is_pending() {
            self.writer.flush()?;
        }
        Ok(&mut self.reader)
    }

    /// Returns the counters of this end.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Enters a phase of the meter; see [`Meter::phase`].
    #[must_use = "the phase ends when this guard is dropped"]
    pub fn phase(&self, name: &str) -> Phase {
        self.meter.phase(name)
    }

    /// Returns what takes down the time of this end, when it is asked to.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns what TLS agreed on; `None` on other transports.
    pub fn agreed(&self) -> Option<&Agreed> {
        self.agreed.as_ref()
    }
}
