//! Channels over sockets: TCP as it is, and TLS.

use crate::shape::Shaped;
use crate::socket::{Socket, Tcp};
use crate::tls::{TlsClient, TlsServer};
use crate::tls_stream::Tls;
use primer_wire::{Channel, Direction, NetError, Options, Result, Transport};
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// Makes a channel over a connected TCP stream, unencrypted: for measurements and tests.
///
/// # Errors
/// [`NetError::Io`] if the socket refuses its options.
pub fn tcp(socket: TcpStream, options: &Options) -> Result<Channel> {
    Ok(shaped(plain(socket, options.timeout)?, options))
}

/// Makes the server's end of a TLS channel.
///
/// # Errors
/// [`NetError::Tls`] if the handshake fails, and the errors of a peer that is gone or silent.
pub fn tls_accept(socket: TcpStream, server: &TlsServer, options: &Options) -> Result<Channel> {
    Ok(shaped(secured(socket, server, options.timeout)?, options))
}

/// Makes the client's end of a TLS channel.
///
/// # Errors
/// [`NetError::Fingerprint`] if the server is not the trusted one; else as [`tls_accept`].
pub fn tls_connect(socket: TcpStream, client: &TlsClient, options: &Options) -> Result<Channel> {
    let socket = Socket::new(socket, options.timeout).map_err(setup_error)?;
    let connection = client.handshake(&socket)?;
    Ok(shaped(
        Tls::new(connection, socket).map_err(setup_error)?,
        options,
    ))
}

/// Makes a transport of a connected TCP stream, unencrypted: for what speaks HTTP first.
///
/// # Errors
/// As [`tcp`].
pub fn plain(socket: TcpStream, timeout: Option<Duration>) -> Result<impl Transport> {
    let socket = Socket::new(socket, timeout).map_err(setup_error)?;
    Tcp::new(socket).map_err(setup_error)
}

/// Makes a transport of the server's end of a TLS connection: for what speaks HTTP first.
///
/// # Errors
/// As [`tls_accept`].
pub fn secured(
    socket: TcpStream,
    server: &TlsServer,
    timeout: Option<Duration>,
) -> Result<impl Transport> {
    let socket = Socket::new(socket, timeout).map_err(setup_error)?;
    let connection = server.handshake(&socket)?;
    Tls::new(connection, socket).map_err(setup_error)
}

/// Makes a channel of a connection, behind a slower link if the options ask for one.
fn shaped(transport: impl Transport, options: &Options) -> Channel {
    match options.shape.is_none() {
        true => Channel::new(transport),
        false => Channel::new(Shaped::new(transport, options)),
    }
}

fn setup_error(source: io::Error) -> NetError {
    NetError::Io {
        direction: Direction::Send,
        source,
    }
}
