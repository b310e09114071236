//! A connection: a WebSocket that another worker holds.
//!
//! That worker writes what arrives into memory that both share, where this one waits for it, and
//! is posted what is to be sent. The browser has checked whom the page speaks to by its address,
//! as it does for everything that it loads: there is nothing to trust or to remember here.

use crate::host::{self, GONE, WAITED, millis};
use primer_client::{Dial, Dialled, HangUp, ShutDown};
use primer_service::ServiceError;
use primer_wire::{Channel, Receive, Transport};
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(30);
/// The longest pause of the server.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Opens WebSockets.
pub(crate) struct Sockets;

impl Dial for Sockets {
    fn dial(&mut self, address: &str, hang_up: &HangUp) -> Result<Dialled, ServiceError> {
        let id = host::dial(address, millis(Some(CONNECT)));
        let id = u32::try_from(id).map_err(|_| {
            // A browser does not tell a page why.
            let why = match id {
                WAITED => "it does not answer",
                _ => "it cannot be reached, or does not let this page connect",
            };
            ServiceError::Connect {
                address: address.to_owned(),
                cause: io::Error::new(ErrorKind::ConnectionRefused, why),
            }
        })?;
        Ok(Dialled {
            channel: Channel::new(Line(id)),
            line: hang_up.connected(End(id))?,
        })
    }
}

/// What a hang-up breaks.
struct End(u32);

impl ShutDown for End {
    fn shut_down(&self) {
        host::hang_up(self.0);
    }
}

/// A WebSocket that is open.
struct Line(u32);

impl Transport for Line {
    type Sender = Sender;
    type Receiver = Receiver;

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    fn split(self) -> (Sender, Receiver) {
        (Sender(self.0), Receiver(self.0))
    }
}

struct Sender(u32);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // In pieces, so that a time-out is granted for each.
        let piece = &bytes[..bytes.len().min(primer_wire::transport::PIECE)];
        match host::send(self.0, piece, millis(Some(TIMEOUT))) {
            WAITED => Err(ErrorKind::TimedOut.into()),
            GONE => Err(ErrorKind::BrokenPipe.into()),
            _ => Ok(piece.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        host::hang_up(self.0);
    }
}

struct Receiver(u32);

impl Receive for Receiver {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        match host::receive(self.0, out, millis(patience)) {
            WAITED => Err(ErrorKind::TimedOut.into()),
            count => Ok(usize::try_from(count).unwrap_or(0)),
        }
    }
}
