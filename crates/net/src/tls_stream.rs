//! The two halves of a TLS connection; see [`crate::tls`] for the locking rule.

use rustls::Connection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Plaintext encrypted under one lock.
const PIECE: usize = 64 << 10;
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
    socket: TcpStream,
    records: Vec<u8>,
}

/// The receiving half.
pub(crate) struct TlsReader {
    connection: Shared,
    socket: TcpStream,
    intake: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Splits a connection whose handshake is done.
pub(crate) fn halves(
    connection: Connection,
    socket: TcpStream,
) -> io::Result<(TlsWriter, TlsReader)> {
    let connection = Shared(Arc::new(Mutex::new(connection)));
    let writer = TlsWriter {
        connection: connection.clone(),
        socket: socket.try_clone()?,
        records: Vec::new(),
    };
    let reader = TlsReader {
        connection,
        socket,
        intake: vec![0; INTAKE].into(),
        start: 0,
        end: 0,
    };
    Ok((writer, reader))
}

impl TlsWriter {
    /// Encrypts what `fill` writes and sends it, the lock released in between.
    fn exchange<T>(
        &mut self,
        fill: impl FnOnce(&mut Connection) -> io::Result<T>,
    ) -> io::Result<T> {
        self.records.clear();
        let mut connection = self.connection.lock();
        let filled = fill(&mut connection)?;
        while connection.wants_write() {
            connection.write_tls(&mut self.records)?;
        }
        drop(connection);
        self.socket.write_all(&self.records)?;
        Ok(filled)
    }
}

impl Write for TlsWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = &data[..data.len().min(PIECE)];
        self.exchange(|connection| connection.writer().write(piece))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nothing waits here, except perhaps an answer to the peer's key update.
        self.exchange(|_| Ok(()))
    }
}

impl Drop for TlsWriter {
    fn drop(&mut self) {
        let _ = self.exchange(|connection| {
            connection.send_close_notify();
            Ok(())
        });
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl Read for TlsReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
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
            self.end = self.socket.read(&mut self.intake)?;
            if self.end == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
