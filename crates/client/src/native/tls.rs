//! Opening a connection to a server: TCP, then TLS with the certificate that is trusted.

use super::trust::KnownServers;
use crate::ClientOptions;
use crate::HangUp;
use crate::dial::{Dial, Dialled};
use crate::hangup::ShutDown;
use primer_net::tls::{Identity, TlsClient, Trust};
use primer_service::{ServiceError, io_error};
use primer_wire::peer::Fingerprint;
use primer_wire::{NetError, Options};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a connection may take to come up, for each address of a name.
const CONNECT: Duration = Duration::from_secs(10);

impl ShutDown for TcpStream {
    fn shut_down(&self) {
        // It may be broken already, which is as good.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Connects to servers whose certificates are known.
pub(super) struct TlsDial {
    known: KnownServers,
    /// The fingerprint of a server that is not known yet.
    trust: Option<Fingerprint>,
    identity: Option<Identity>,
    timeout: Duration,
    /// What is to be known of the connection dialled last until its greeting has ended.
    last: Option<Last>,
}

struct Last {
    tls: TlsClient,
    /// The fingerprint to record, if the server was not known.
    new: Option<Fingerprint>,
}

impl TlsDial {
    pub(super) fn new(known: KnownServers, options: &ClientOptions) -> Self {
        Self {
            known,
            trust: options.trust,
            identity: options.identity.clone(),
            timeout: options.timeout,
            last: None,
        }
    }
}

impl Dial for TlsDial {
    /// Connects to a server and checks that it is the trusted one. The fingerprint on record
    /// counts; the one of the options is for a server that is not known yet.
    fn dial(&mut self, address: &str, hang_up: &HangUp) -> Result<Dialled, ServiceError> {
        self.last = None;
        hang_up.check()?;
        let socket = connect(address, self.timeout)?;
        let twin = socket.try_clone().map_err(io_error("sharing a socket"))?;
        let line = hang_up.connected(twin)?;
        let channel_options = Options {
            timeout: Some(self.timeout),
            ..Options::default()
        };
        let recorded = self.known.find(address);
        let trusted = recorded.or(self.trust);
        let trust = trusted.map_or(Trust::None, Trust::Pinned);
        let tls = TlsClient::with_identity(trust, self.identity.as_ref())?;
        let channel = primer_net::tls_connect(socket, &tls, &channel_options);
        let channel = channel.map_err(|error| self.refused(error, address))?;
        if let (Some(got), Some(given)) = (recorded, self.trust)
            && got != given
        {
            let address = address.to_owned();
            return Err(ServiceError::NeedlessFingerprint {
                address,
                given,
                got,
            });
        }
        let new = trusted.filter(|_| recorded.is_none());
        self.last = Some(Last { tls, new });
        Ok(Dialled { channel, line })
    }

    fn greeted(&mut self, address: &str) -> Result<(), ServiceError> {
        match self.last.take().and_then(|last| last.new) {
            Some(fingerprint) => self.known.add(address, fingerprint),
            None => Ok(()),
        }
    }

    fn explained(&mut self, address: &str, error: ServiceError) -> ServiceError {
        let last = self.last.take();
        let asked = last.is_some_and(|last| last.tls.was_asked_for_certificate());
        match error {
            ServiceError::Net(cause @ (NetError::PeerGone { .. } | NetError::Tls(_))) if asked => {
                ServiceError::ClientCertificate {
                    address: address.to_owned(),
                    shown: self.identity.is_some(),
                    cause,
                }
            }
            other => other,
        }
    }
}

impl TlsDial {
    /// Says what a handshake that failed means.
    fn refused(&self, error: NetError, at: &str) -> ServiceError {
        let address = at.to_owned();
        match error {
            NetError::UnknownServer { got } => ServiceError::UnknownServer { address, got },
            NetError::Fingerprint { expected, got } if self.known.find(at).is_some() => {
                ServiceError::ChangedServer {
                    address,
                    known: expected,
                    got,
                    file: self.known.path().clone(),
                }
            }
            NetError::Fingerprint { expected, got } => ServiceError::OtherFingerprint {
                address,
                given: expected,
                got,
            },
            other => ServiceError::from(other).before_answer(at),
        }
    }
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
        assert!(matches!(hang_up.check(), Err(ServiceError::HungUp(_))));
        let (another, _far) = pair();
        let refused = hang_up.connected(another.try_clone().unwrap());
        assert!(matches!(refused, Err(ServiceError::HungUp(_))));
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
