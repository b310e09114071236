//! Two parties in one process over every transport that there is: for tests and measurements.

use crate::channel::{tcp, tls_accept, tls_connect};
use crate::tls::{Identity, TlsClient, TlsServer, Trust};
use primer_wire::pair::run_pair_between;
use primer_wire::{Channel, Direction, NetError, Options, Result};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// What connects two parties in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Bounded pipes in memory.
    Memory,
    /// A TCP connection over loopback.
    Tcp,
    /// TLS over a TCP connection over loopback; the right party is the server.
    Tls,
}

impl Medium {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Tcp, Self::Tls];
}

/// Runs both parties over a medium.
///
/// # Errors
/// The first failure of either.
///
/// # Panics
/// If a party panics.
pub fn run_pair_over<A: Send, B: Send, E: Send + From<NetError>>(
    medium: Medium,
    options: &Options,
    left: impl FnOnce(&mut Channel) -> std::result::Result<A, E> + Send,
    right: impl FnOnce(&mut Channel) -> std::result::Result<B, E> + Send,
) -> std::result::Result<(A, B), E> {
    run_pair_between(connect(medium, options)?, left, right)
}

/// Connects two ends in this process.
///
/// # Errors
/// [`NetError`] if loopback sockets cannot be opened.
pub fn connect(medium: Medium, options: &Options) -> Result<(Channel, Channel)> {
    match medium {
        Medium::Memory => Ok(Channel::memory_pair(options)),
        Medium::Tcp => {
            let (left, right) = loopback().map_err(loopback_error)?;
            Ok((tcp(left, options)?, tcp(right, options)?))
        }
        Medium::Tls => {
            let (left, right) = loopback().map_err(loopback_error)?;
            let identity = Identity::self_signed(&["localhost".into()])?;
            let server = TlsServer::new(&identity)?;
            let client = TlsClient::new(Trust::Pinned(identity.fingerprint()))?;
            std::thread::scope(|scope| {
                let accepting = scope.spawn(|| tls_accept(right, &server, options));
                let left = tls_connect(left, &client, options)?;
                let right = accepting.join().expect("accepting does not panic")?;
                Ok((left, right))
            })
        }
    }
}

fn loopback_error(source: io::Error) -> NetError {
    NetError::Io {
        direction: Direction::Send,
        source,
    }
}

fn loopback() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let left = TcpStream::connect(listener.local_addr()?)?;
    let (right, _) = listener.accept()?;
    Ok((left, right))
}
