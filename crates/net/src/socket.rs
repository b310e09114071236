//! A socket whose waits end, even if the peer does nothing.
//!
//! The socket never blocks by itself: a read or a write that cannot go on waits in `poll`, for what
//! is left of a time that its caller names. A read may return a little; a write is of one piece,
//! and *all* of it goes within the time-out, so that a peer that takes a byte now and then does not
//! hold this party for longer than one that takes none.
//!
//! **A writer looks at its other side.** A party that waits for room to send would not learn that
//! its peer has ended the connection: the news waits on the side that it is not reading, and a full
//! socket stays full. So a writer that waits is also woken when the peer has said its last word,
//! and gives up at once: in these protocols a party that sends expects an answer, and there will
//! be none.

use primer_wire::record::Doing;
use primer_wire::transport::PIECE;
use primer_wire::{Receive, Recorder, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Wakes a waiting writer when its peer sends no more. Elsewhere it learns of that by its time-out.
#[cfg(any(target_os = "linux", target_os = "android"))]
const LAST_WORD: PollFlags = PollFlags::RDHUP;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const LAST_WORD: PollFlags = PollFlags::empty();

/// A connected socket.
pub(crate) struct Socket {
    stream: TcpStream,
    timeout: Option<Duration>,
    recorder: Recorder,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, timeout: Option<Duration>) -> io::Result<Self> {
        // Messages are gathered before they come here, so the system need not wait for more.
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            timeout,
            recorder: Recorder::default(),
        })
    }

    /// Returns another handle of the same socket.
    pub(crate) fn another(&self) -> io::Result<Self> {
        Ok(Self {
            stream: self.stream.try_clone()?,
            timeout: self.timeout,
            recorder: self.recorder.clone(),
        })
    }

    /// Returns what its waits are taken down in.
    pub(crate) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Reads what there is, and waits so long for the first of it; zero bytes are the end.
    pub(crate) fn read(&self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        let deadline = patience.map(|time| Instant::now() + time);
        loop {
            match (&self.stream).read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Writes all of a piece within the time-out.
    pub(crate) fn write_all(&self, piece: &[u8]) -> io::Result<()> {
        let deadline = self.timeout.map(|time| Instant::now() + time);
        self.write_until(piece, deadline)
    }

    fn write_until(&self, mut piece: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        while !piece.is_empty() {
            match (&self.stream).write(piece) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => piece = &piece[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let woken = self.wait(PollFlags::OUT | LAST_WORD, deadline)?;
                    if !woken.contains(PollFlags::OUT) {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes what goes without waiting, then ends this direction: a farewell, which need not be
    /// heard.
    pub(crate) fn leave(&self, farewell: &[u8]) {
        let _ = (&self.stream).write(farewell);
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Returns a view of it for an exchange that has to be over within the time-out, however many
    /// reads and writes it takes.
    pub(crate) fn hurried(&self) -> Hurried<'_> {
        Hurried {
            socket: self,
            deadline: self.timeout.map(|time| Instant::now() + time),
        }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Waits until the socket can do what is asked or has failed; tells what woke it.
    fn wait(&self, flags: PollFlags, deadline: Option<Instant>) -> io::Result<PollFlags> {
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // A time too long for the system's clock is no limit.
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut polled = [PollFd::new(&self.stream, flags)];
            let begun = self.recorder.begin();
            let woken = poll(&mut polled, left.as_ref());
            self.recorder.end(Doing::Waiting, begun);
            match woken {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(polled[0].revents()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// See [`Socket::hurried`].
pub(crate) struct Hurried<'a> {
    socket: &'a Socket,
    deadline: Option<Instant>,
}

impl Read for Hurried<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self
            .deadline
            .map(|end| end.saturating_duration_since(Instant::now()));
        self.socket.read(out, left)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.socket.write_until(data, self.deadline)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TCP connection as it is, unencrypted.
pub(crate) struct Tcp {
    output: Socket,
    input: Socket,
}

impl Tcp {
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        Ok(Self {
            output: socket.another()?,
            input: socket,
        })
    }
}

impl Transport for Tcp {
    type Sender = TcpWriter;
    type Receiver = TcpReader;

    fn timeout(&self) -> Option<Duration> {
        self.input.timeout()
    }

    fn recorder(&self) -> Recorder {
        self.input.recorder()
    }

    fn split(self) -> (TcpWriter, TcpReader) {
        (TcpWriter(self.output), TcpReader(self.input))
    }
}

/// The receiving half of a TCP stream.
pub(crate) struct TcpReader(Socket);

impl Receive for TcpReader {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        self.0.read(out, patience)
    }
}

/// The sending half of a TCP stream: its end ends the stream, even while the other half is in use.
pub(crate) struct TcpWriter(Socket);

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
