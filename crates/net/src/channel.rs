//! The channel: one interface over memory, TCP and TLS.
//!
//! **The deadlock rule.** A transport holds a bounded number of bytes. If both parties send more
//! than that before either receives, both block for ever (here: until the time-out). So at any
//! moment of a protocol one party sends and the other receives. The memory channel is bounded like
//! a socket, so a test that runs over memory finds a violation.
//!
//! **Flushing.** Sends gather in a buffer; every receive on the channel flushes it first, so that a
//! party never waits for an answer to a question still in its own buffer. A step that *ends* with a
//! send calls [`Channel::flush`].

use crate::error::{Direction, NetError, Result};
use crate::kind::Kind;
use crate::meter::{Meter, Phase};
use crate::pipe::pipe;
use crate::reader::{Incoming, Reader, RecvStream, Untimed};
use crate::record::Recorder;
use crate::shape::{LinkShape, ShapedWriter};
use crate::socket::{PIECE, Socket};
use crate::tls::{Agreed, TlsClient, TlsServer, agreed};
use crate::tls_stream::halves;
use crate::writer::{SendStream, Writer};
use std::io::{self, Read, Write};
use std::net::TcpStream;
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
    /// Two minutes of patience, the buffer of a socket, no shaping.
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(120)),
            capacity: 256 << 10,
            shape: LinkShape::NONE,
        }
    }
}

/// The sending and the receiving side of a transport.
type Ends = (Box<dyn Write + Send>, Box<dyn Incoming>);

/// One party's end of a connection.
pub struct Channel {
    writer: Writer,
    reader: Reader,
    meter: Meter,
    recorder: Recorder,
    agreed: Option<Agreed>,
}

impl Channel {
    /// Two ends connected in memory.
    pub fn memory_pair(options: &Options) -> (Self, Self) {
        let Options {
            timeout,
            capacity,
            shape,
        } = *options;
        let (left_out, right_in) = pipe(capacity, shape, timeout);
        let (right_out, left_in) = pipe(capacity, shape, timeout);
        let build = |output, input| {
            let ends: Ends = (Box::new(output), Box::new(input));
            Self::new(ends, timeout, Recorder::default(), None)
        };
        (build(left_out, left_in), build(right_out, right_in))
    }

    /// A channel over a connected TCP stream, unencrypted: for measurements and tests.
    ///
    /// # Errors
    /// [`NetError::Io`] if the socket refuses its options.
    pub fn tcp(socket: TcpStream, options: &Options) -> Result<Self> {
        let socket = Socket::new(socket, options.timeout).map_err(setup_error)?;
        let output = socket.another().map_err(setup_error)?;
        let recorder = socket.recorder();
        let ends = (TcpWriter(output), TcpReader(socket));
        Ok(Self::shaped(ends, options, recorder, None))
    }

    /// A channel over any two streams of bytes, unencrypted: recorded or invented ones. Time-outs
    /// are up to the streams.
    pub fn over(output: impl Write + Send + 'static, input: impl Read + Send + 'static) -> Self {
        let ends: Ends = (Box::new(output), Box::new(Untimed(input)));
        Self::new(ends, None, Recorder::default(), None)
    }

    /// The server's end of a TLS channel.
    ///
    /// # Errors
    /// [`NetError::Tls`] if the handshake fails, and the errors of a peer that is gone or silent.
    pub fn tls_accept(socket: TcpStream, server: &TlsServer, options: &Options) -> Result<Self> {
        let socket = Socket::new(socket, options.timeout).map_err(setup_error)?;
        let connection = server.handshake(&socket)?;
        Self::tls(connection, socket, options)
    }

    /// The client's end of a TLS channel.
    ///
    /// # Errors
    /// [`NetError::Fingerprint`] if the server is not the trusted one; else as
    /// [`Self::tls_accept`].
    pub fn tls_connect(socket: TcpStream, client: &TlsClient, options: &Options) -> Result<Self> {
        let socket = Socket::new(socket, options.timeout).map_err(setup_error)?;
        let connection = client.handshake(&socket)?;
        Self::tls(connection, socket, options)
    }

    fn tls(connection: rustls::Connection, socket: Socket, options: &Options) -> Result<Self> {
        let agreed = agreed(&connection);
        let recorder = socket.recorder();
        let ends = halves(connection, socket).map_err(setup_error)?;
        Ok(Self::shaped(ends, options, recorder, Some(agreed)))
    }

    fn shaped(
        (output, input): (impl Write + Send + 'static, impl Incoming + 'static),
        options: &Options,
        recorder: Recorder,
        agreed: Option<Agreed>,
    ) -> Self {
        let mut output: Box<dyn Write + Send> = Box::new(output);
        if !options.shape.is_none() {
            let shaped =
                ShapedWriter::new(output, options.capacity, options.shape, options.timeout);
            output = Box::new(shaped);
        }
        Self::new((output, Box::new(input)), options.timeout, recorder, agreed)
    }

    fn new(
        (output, input): Ends,
        timeout: Option<Duration>,
        recorder: Recorder,
        agreed: Option<Agreed>,
    ) -> Self {
        let meter = Meter::new();
        Self {
            writer: Writer::new(output, timeout, meter.clone(), recorder.clone()),
            reader: Reader::new(input, timeout, meter.clone(), recorder.clone()),
            meter,
            recorder,
            agreed,
        }
    }

    /// Sends one message; it leaves with the next flush or receive.
    ///
    /// # Errors
    /// [`NetError`] if the peer is gone or does not read.
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
    /// [`NetError::TooLong`] or [`NetError::WrongKind`] if the peer sent something else, and the
    /// errors of a peer that is gone or silent.
    pub fn recv(&mut self, kind: Kind, limit: usize) -> Result<Vec<u8>> {
        self.turn()?.recv(kind, limit)
    }

    /// Receives one message of a known length, in place.
    ///
    /// # Errors
    /// [`NetError::WrongLength`] if the peer announced another length; else as [`Self::recv`].
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

    /// The receiving half, with what was sent before on its way.
    fn turn(&mut self) -> Result<&mut Reader> {
        if self.writer.is_pending() {
            self.writer.flush()?;
        }
        Ok(&mut self.reader)
    }

    /// The counters of this end.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Enters a phase of the meter; see [`Meter::phase`].
    #[must_use = "the phase ends when this guard is dropped"]
    pub fn phase(&self, name: &str) -> Phase {
        self.meter.phase(name)
    }

    /// What takes down the time of this end, when it is asked to.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// What TLS agreed on; `None` on other transports.
    pub fn agreed(&self) -> Option<&Agreed> {
        self.agreed.as_ref()
    }
}

fn setup_error(source: io::Error) -> NetError {
    NetError::Io {
        direction: Direction::Send,
        source,
    }
}

/// The receiving half of a TCP stream.
struct TcpReader(Socket);

impl Incoming for TcpReader {
    fn read(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        self.0.read(out, patience)
    }
}

/// The sending half of a TCP stream: its end ends the stream, even while the other half is in use.
struct TcpWriter(Socket);

impl Write for TcpWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = &data[..data.len().min(PIECE)];
        self.0.write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TcpWriter {
    fn drop(&mut self) {
        self.0.leave(&[]);
    }
}
