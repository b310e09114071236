//! Opening a connection to a server: TCP, then TLS with the certificate that is trusted.

use super::ClientOptions;
use super::hangup::ShutDown;
use super::trust::KnownServers;
use primer_net::tls::{TlsClient, Trust};
use primer_service::{ServiceError, io_error};
use primer_wire::peer::Fingerprint;
use primer_wire::{Channel, NetError, Options};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection may take to come up, for each address of a name.
const CONNECT: Duration = Duration::from_secs(10);

impl ShutDown for TcpStream {
    fn shut_down(&self) {
        // It may be broken already, which is as good.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A connection to a server that is the trusted one.
pub(super) struct Dialled {
    pub(super) channel: Channel,
    /// What a hang-up breaks.
    pub(super) line: Arc<dyn ShutDown>,
    /// The fingerprint to record, if the server was not known.
    pub(super) new: Option<Fingerprint>,
    tls: TlsClient,
}

impl Dialled {
    /// Tells whether the server asked for a certificate.
    pub(super) fn was_asked_for_certificate(&self) -> bool {
        self.tls.was_asked_for_certificate()
    }
}

/// Connects to a server and checks that it is the trusted one. The fingerprint on record counts;
/// the one of the options is for a server that is not known yet.
pub(super) fn dial(
    address: &str,
    options: &ClientOptions,
    known: &KnownServers,
) -> Result<Dialled, ServiceError> {
    options.hang_up.check()?;
    let socket = connect(address, options.timeout)?;
    let twin = socket.try_clone().map_err(io_error("sharing a socket"))?;
    let line = options.hang_up.connected(twin)?;
    let channel_options = Options {
        timeout: Some(options.timeout),
        ..Options::default()
    };
    let recorded = known.find(address);
    let trusted = recorded.or(options.trust);
    let trust = trusted.map_or(Trust::None, Trust::Pinned);
    let tls = TlsClient::with_identity(trust, options.identity.as_ref())?;
    let channel = primer_net::tls_connect(socket, &tls, &channel_options).map_err(|error| {
        let address = address.to_owned();
        match error {
            NetError::UnknownServer { got } => ServiceError::UnknownServer { address, got },
            NetError::Fingerprint { expected, got } if recorded.is_some() => {
                ServiceError::ChangedServer {
                    address,
                    known: expected,
                    got,
                    file: known.path().clone(),
                }
            }
            NetError::Fingerprint { expected, got } => ServiceError::OtherFingerprint {
                address,
                given: expected,
                got,
            },
            other => ServiceError::from(other).before_answer(&address),
        }
    })?;
    if let (Some(got), Some(given)) = (recorded, options.trust)
        && got != given
    {
        let address = address.to_owned();
        return Err(ServiceError::NeedlessFingerprint {
            address,
            given,
            got,
        });
    }
    Ok(Dialled {
        channel,
        line,
        new: trusted.filter(|_| recorded.is_none()),
        tls,
    })
}

fn connect(address: &str, timeout: Duration) -> Result<TcpStream, ServiceError> {
    let failed = |cause| ServiceError::Connect {
        address: address.to_owned(),
        cause,
    };
    let mut last = std::io::Error::other("the name has no address");
    let deadline = Instant::now() + timeout;
    for candidate in address.to_socket_addrs().map_err(failed)? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&candidate, left.min(CONNECT)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HangUp;
    use std::io::Read;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        for socket in [&near, &far] {
            let patience = Some(Duration::from_secs(20));
            socket.set_read_timeout(patience).unwrap();
        }
        (near, far)
    }

    #[test]
    fn hanging_up_ends_a_wait_and_refuses_until_picked_up() {
        let hang_up = HangUp::default();
        let (near, _far) = pair();
        let kept = hang_up.connected(near.try_clone().unwrap()).unwrap();
        let waiting = std::thread::spawn(move || (&near).read(&mut [0]));
        hang_up.check().unwrap();
        hang_up.hang_up();
        assert_eq!(waiting.join().unwrap().unwrap(), 0, "the wait has ended");
        assert!(matches!(hang_up.check(), Err(ServiceError::Stopped(_))));
        let (another, _far) = pair();
        let refused = hang_up.connected(another.try_clone().unwrap());
        assert!(matches!(refused, Err(ServiceError::Stopped(_))));
        hang_up.pick_up();
        hang_up.check().unwrap();
        hang_up.connected(another).unwrap();
        drop(kept);
    }

    #[test]
    fn a_connection_ends_with_its_link() {
        let hang_up = HangUp::default();
        let (near, mut far) = pair();
        drop(hang_up.connected(near).unwrap());
        assert_eq!(far.read(&mut [0]).unwrap(), 0, "nothing else holds it");
        hang_up.hang_up();
    }
}
