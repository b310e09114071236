//! Accepting connections on a port: the only part of the server that knows what they are made of.

use super::gate::{ConnectionControl, ConnectionSlot, Progress};
use super::{Shared, connection, door};
use primer_service::{Port, ServiceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

impl ConnectionControl for TcpStream {
    fn peer(&self) -> Option<IpAddr> {
        self.peer_addr().ok().map(|peer| peer.ip())
    }

    fn has_input(&self) -> bool {
        let mut polled = [PollFd::new(self, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn shut_down(&self) {
        // Fails if the peer was faster; then there is nothing to cut.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Opens a port.
pub(super) fn listen(address: &str, port: Port) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address).map_err(|cause| ServiceError::Listen {
        port,
        address: address.to_owned(),
        cause,
    })
}

/// Accepts connections until the server stops, and has each served in a thread of its own.
pub(super) fn accept(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    serve: fn(&Shared, TcpStream, &ConnectionSlot),
) {
    while !shared.gate.is_stopping() {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) => {
                // Out of descriptors, most likely: others end and give theirs back.
                tracing::warn!(%error, "a connection could not be accepted");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let Some(slot) = door::arrive(shared, socket.try_clone().ok()) else {
            continue;
        };
        let for_thread = Arc::clone(shared);
        let name = format!("client-{}", slot.number());
        let started = std::thread::Builder::new()
            .name(name)
            .spawn(move || serve(&for_thread, socket, &slot));
        if let Err(error) = started {
            shared.metrics.rejected.add(1);
            tracing::warn!(%error, "no thread could be started for a connection");
        }
    }
}

/// Wakes the thread that waits for connections at an address.
pub(super) fn wake(mut address: SocketAddr) {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}

/// Serves a connection over TLS.
pub(super) fn serve(shared: &Shared, socket: TcpStream, slot: &ConnectionSlot) {
    let peer = socket.peer_addr().map(|a| a.to_string());
    connection::serve(shared, slot, &peer.unwrap_or_default(), || {
        wait_for_input(&socket, slot);
        primer_net::tls_accept(socket, &shared.tls, &shared.channel_options())
    });
}

/// Waits for the first byte, so that the gate knows who is silent. A peer that stays silent is cut
/// there; what else may fail is left to the handshake.
fn wait_for_input(socket: &TcpStream, slot: &ConnectionSlot) {
    if socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0) {
        slot.progress(Progress::Speaking);
    }
}
