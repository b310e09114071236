//! What a channel stands on: two directions of bytes.
//!
//! A [`Transport`] carries bytes between two parties, in order and without loss, and blocks. A
//! channel frames, limits and counts them; all that depends on the system is the transport's:
//!
//! * **Sending** is [`Write`]. A `write` takes as much as it likes and may wait for room, but gives
//!   up with [`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut) if the peer has not taken all of
//!   it, or of [`PIECE`] bytes of it, within [`Transport::timeout`]. `flush` hands on what the
//!   transport itself has gathered.
//! * **Receiving** is [`Receive`]: the channel says how long a read may wait.
//! * **Hanging up** is dropping the sending half. The peer reads what was sent before, and then the
//!   end, even while the receiving half is in use.
//! * **Errors** are told apart by their kind. `TimedOut` and `WouldBlock` mean that nothing moved;
//!   `UnexpectedEof`, `BrokenPipe`, `ConnectionReset`, `ConnectionAborted` and `NotConnected` that
//!   the peer is gone; `InvalidData` that the layer which encrypts has refused.
//!
//! The halves are used by one thread each, at the same time or in turn.
//!
//! A browser has no sockets that block, but a worker may block on memory that it shares: a ring
//! that another worker fills from a WebSocket, and counts of what that one has sent of the bytes
//! that it was posted. Then `receive` waits for a byte of the ring with `patience` as the time-out
//! of its wait, `write` for the count, and both report that the line is closed (`web/src/line.rs`).

use crate::peer::Agreed;
use crate::record::Recorder;
use std::io::{self, Read, Write};
use std::time::Duration;

/// The largest piece that a time-out is granted for.
pub const PIECE: usize = 64 << 10;

/// A connection that carries bytes.
pub trait Transport {
    /// The half that sends.
    type Sender: Write + Send + 'static;
    /// The half that receives.
    type Receiver: Receive + 'static;

    /// Returns the longest wait for a message to begin, and then for every [`PIECE`] of it, in
    /// either direction. `None` waits for ever.
    fn timeout(&self) -> Option<Duration>;

    /// Returns what its own waits are taken down in.
    fn recorder(&self) -> Recorder {
        Recorder::default()
    }

    /// Returns what it agreed on with the peer, if it encrypts.
    fn agreed(&self) -> Option<Agreed> {
        None
    }

    /// Separates the halves.
    fn split(self) -> (Self::Sender, Self::Receiver);
}

/// The half of a transport that receives.
pub trait Receive: Send {
    /// Reads what there is, and waits no longer than `patience` for the first byte of it; zero
    /// bytes are the end.
    ///
    /// # Errors
    /// `TimedOut` if there was nothing for that long; else as the [module](self) says.
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize>;
}

/// Two streams as a transport that knows no time-outs.
pub(crate) struct Streams<W, R> {
    pub(crate) output: W,
    pub(crate) input: R,
}

impl<W: Write + Send + 'static, R: Read + Send + 'static> Transport for Streams<W, R> {
    type Sender = W;
    type Receiver = Untimed<R>;

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn split(self) -> (W, Untimed<R>) {
        (self.output, Untimed(self.input))
    }
}

/// A stream that knows no time-outs.
pub(crate) struct Untimed<R>(R);

impl<R: Read + Send> Receive for Untimed<R> {
    fn receive(&mut self, out: &mut [u8], _patience: Option<Duration>) -> io::Result<usize> {
        self.0.read(out)
    }
}
