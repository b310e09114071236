//! The two halves of a TLS connection; see `tls.rs` for the locking rule.

use crate::socket::Socket;
use crate::tls::agreed;
use primer_wire::peer::Agreed;
use primer_wire::transport::PIECE;
use primer_wire::{Receive, Recorder, Transport};
use rustls::Connection;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ciphertext taken from the socket at once.
const INTAKE: usize = 128 << 10;

#[derive(Clone)]
struct Shared(Arc<Mutex<Connection>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending half.
pub(crate) struct TlsWriter {
    connection: Shared,
    socket: Socket,
    records: Vec<u8>,
}

/// The receiving half.
pub(crate) struct TlsReader {
    connection: Shared,
    socket: Socket,
    intake: Box<[u8]>,
    start: usize,
    end: usize,
}

/// A connection whose handshake is done.
pub(crate) struct Tls {
    output: TlsWriter,
    input: TlsReader,
    agreed: Agreed,
}

impl Tls {
    pub(crate) fn new(connection: Connection, socket: Socket) -> io::Result<Self> {
        let agreed = agreed(&connection);
        let connection = Shared(Arc::new(Mutex::new(connection)));
        let output = TlsWriter {
            connection: connection.clone(),
            socket: socket.another()?,
            records: Vec::new(),
        };
        let input = TlsReader {
            connection,
            socket,
            intake: vec![0; INTAKE].into(),
            start: 0,
            end: 0,
        };
        Ok(Self {
            output,
            input,
            agreed,
        })
    }
}

impl Transport for Tls {
    type Sender = TlsWriter;
    type Receiver = TlsReader;

    fn timeout(&self) -> Option<Duration> {
        self.input.socket.timeout()
    }

    fn recorder(&self) -> Recorder {
        self.input.socket.recorder()
    }

    fn agreed(&self) -> Option<Agreed> {
        Some(self.agreed.clone())
    }

    fn split(self) -> (TlsWriter, TlsReader) {
        (self.output, self.input)
    }
}

impl TlsWriter {
    /// Encrypts what `fill` writes; it lies in `records` then, and the lock is released.
    fn encrypt<T>(&mut self, fill: impl FnOnce(&mut Connection) -> io::Result<T>) -> io::Result<T> {
        self.records.clear();
        let mut connection = self.connection.lock();
        let filled = fill(&mut connection)?;
        while connection.wants_write() {
            connection.write_tls(&mut self.records)?;
        }
        Ok(filled)
    }
}

impl Write for TlsWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = &data[..data.len().min(PIECE)];
        let taken = self.encrypt(|connection| connection.writer().write(piece))?;
        self.socket.write_all(&self.records)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nothing waits here, except perhaps an answer to the peer's key update.
        self.encrypt(|_| Ok(()))?;
        self.socket.write_all(&self.records)
    }
}

impl Drop for TlsWriter {
    fn drop(&mut self) {
        let said = self.encrypt(|connection| {
            connection.send_close_notify();
            Ok(())
        });
        // A peer that does not listen has been waited for already, or need not be.
        self.socket.leave(said.map_or(&[], |()| &self.records));
    }
}

impl Receive for TlsReader {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        let deadline = patience.map(|time| Instant::now() + time);
        loop {
            let mut connection = self.connection.lock();
            loop {
                match connection.reader().read(out) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return result,
                }
                if self.start == self.end {
                    break;
                }
                let mut waiting = &self.intake[self.start..self.end];
                let before = waiting.len();
                connection.read_tls(&mut waiting)?;
                self.start += before - waiting.len();
                connection
                    .process_new_packets()
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            drop(connection);
            self.start = 0;
            self.end = 0;
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            self.end = self.socket.read(&mut self.intake, left)?;
            if self.end == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
