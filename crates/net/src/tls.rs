//! TLS 1.3 under the channel: who is trusted, and two halves of one connection.
//!
//! **Trust.** A Primer server makes its own certificate and prints its SHA-256 fingerprint; the
//! client pins that fingerprint ([`Trust::Pinned`]), as with SSH host keys. Names and dates in the
//! certificate mean nothing then; possession of its key is proved by the handshake signature, which
//! is verified. By default the client shows no certificate; a server may ask for one and admit
//! clients by fingerprint or by the authority that signed for them ([`Clients`]).
//!
//! **Algorithms.** TLS 1.3 only, from AWS-LC; the hybrid X25519MLKEM768 key exchange is preferred,
//! so traffic recorded today stays closed to a quantum computer. No session tickets: every session
//! is a full handshake.
//!
//! **Two halves.** A TLS connection is one state machine, but a shaped link sends in a thread of
//! its own while the party receives. The state is behind a lock that is held for encryption and
//! decryption only, never during a system call: a writer that waits for the network does not keep
//! the reader from emptying it.

use crate::socket::Socket;
pub use crate::tls_clients::Clients;
use aws_lc_rs::digest;
use primer_wire::peer::{Agreed, Fingerprint};
use primer_wire::{Direction, NetError, Result};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    ServerConfig, ServerConnection, SignatureScheme,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// Returns the fingerprint of a certificate.
pub(crate) fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    let hash = digest::digest(&digest::SHA256, certificate);
    Fingerprint::from_hash(hash.as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

/// A server's certificate chain and private key.
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    chain_pem: String,
    key_pem: Zeroizing<String>,
}

impl Identity {
    /// Makes a fresh key and a certificate signed by itself, for these names.
    ///
    /// # Errors
    /// [`NetError::Tls`] if a name cannot appear in a certificate.
    pub fn self_signed(names: &[String]) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| NetError::Tls(error.to_string()))?;
        Ok(Self {
            chain: vec![made.cert.der().clone()],
            chain_pem: made.cert.pem(),
            key_pem: Zeroizing::new(made.signing_key.serialize_pem()),
        })
    }

    /// Reads a certificate chain and a key.
    ///
    /// # Errors
    /// [`NetError::Tls`] if either is not what it should be.
    pub fn from_pem(chain_pem: &str, key_pem: &str) -> Result<Self> {
        let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| NetError::Tls(format!("certificate file: {error}")))?;
        if chain.is_empty() {
            return Err(NetError::Tls("the certificate file has none".into()));
        }
        let identity = Self {
            chain,
            chain_pem: chain_pem.to_owned(),
            key_pem: Zeroizing::new(key_pem.to_owned()),
        };
        identity.key()?;
        Ok(identity)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|error| NetError::Tls(format!("key file: {error}")))
    }

    /// Returns the certificate and its key as the TLS library takes them, found to belong together.
    fn certified(&self) -> Result<Arc<CertifiedKey>> {
        let made = CertifiedKey::from_der(self.chain.clone(), self.key()?, &crypto());
        Ok(Arc::new(made.map_err(own_certificate)?))
    }

    /// Returns what clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint_of(&self.chain[0])
    }

    /// Returns the certificate chain, to be stored.
    pub fn chain_pem(&self) -> &str {
        &self.chain_pem
    }

    /// Returns the private key, to be stored where only the server can read it.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }
}

/// Whom a client trusts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Trust {
    /// Only the server whose certificate has this fingerprint.
    Pinned(Fingerprint),
    /// No server: the handshake ends with [`NetError::UnknownServer`], which carries the
    /// fingerprint to ask about.
    None,
}

/// The server's side of TLS.
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

impl TlsServer {
    /// Prepares to serve under an identity.
    ///
    /// # Errors
    /// [`NetError::Tls`] if the key does not belong to the certificate.
    pub fn new(identity: &Identity) -> Result<Self> {
        Self::for_clients(identity, &Clients::Anyone)
    }

    /// Prepares to serve certain clients only.
    ///
    /// # Errors
    /// [`NetError::Tls`] if the key does not belong to the certificate, or the authority is not
    /// usable.
    pub fn for_clients(identity: &Identity, clients: &Clients) -> Result<Self> {
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls_error)?
            .with_client_cert_verifier(clients.verifier(crypto())?)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified()?)));
        // An unread ticket in the client's socket would turn its close into a reset.
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    pub(crate) fn handshake(&self, socket: &Socket) -> Result<Connection> {
        let connection = ServerConnection::new(Arc::clone(&self.config)).map_err(tls_error)?;
        complete(Connection::Server(connection), socket)
    }
}

/// The client's side of TLS.
pub struct TlsClient {
    config: Arc<ClientConfig>,
    verifier: Arc<Pin>,
    shown: Arc<Shown>,
}

impl TlsClient {
    /// Prepares to connect under a trust model.
    ///
    /// # Errors
    /// [`NetError::Tls`] if the TLS library refuses the configuration.
    pub fn new(trust: Trust) -> Result<Self> {
        Self::with_identity(trust, None)
    }

    /// Prepares to connect, and to show a certificate to a server that asks for one.
    ///
    /// # Errors
    /// [`NetError::Tls`] if the TLS library refuses the configuration or the identity.
    pub fn with_identity(trust: Trust, identity: Option<&Identity>) -> Result<Self> {
        let expected = match trust {
            Trust::Pinned(fingerprint) => Some(fingerprint),
            Trust::None => None,
        };
        let verifier = Arc::new(Pin {
            expected,
            refused: Mutex::new(None),
            provider: crypto(),
        });
        let config = ClientConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls_error)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
        let shown = Arc::new(Shown {
            identity: identity.map(Identity::certified).transpose()?,
            asked: AtomicBool::new(false),
        });
        let config = config.with_client_cert_resolver(Arc::clone(&shown) as _);
        Ok(Self {
            config: Arc::new(config),
            verifier,
            shown,
        })
    }

    /// Tells whether a server asked for a certificate. One that gets none, or one that it does not
    /// accept, ends the connection after the handshake, and may not get to say why.
    pub fn was_asked_for_certificate(&self) -> bool {
        self.shown.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn handshake(&self, socket: &Socket) -> Result<Connection> {
        // A pinned certificate is found by its fingerprint, so one name serves for all.
        let name = ServerName::try_from("primer").expect("a valid name");
        let connection =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(tls_error)?;
        complete(Connection::Client(connection), socket).map_err(|error| {
            let refused = self.verifier.refused().take();
            match (refused, self.verifier.expected) {
                (Some(got), Some(expected)) => NetError::Fingerprint { expected, got },
                (Some(got), None) => NetError::UnknownServer { got },
                (None, _) => error,
            }
        })
    }
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

fn tls_error(error: rustls::Error) -> NetError {
    NetError::Tls(error.to_string())
}

/// Says what is wrong with a certificate of ours, which the TLS library calls the peer's.
fn own_certificate(error: rustls::Error) -> NetError {
    let why = match error {
        rustls::Error::InvalidCertificate(why) => {
            format!("{why}; it must be an X.509 certificate of version 3")
        }
        other => other.to_string(),
    };
    NetError::Tls(format!("our own certificate cannot be used: {why}"))
}

/// The certificate that a client shows, if it has one, and whether it was asked for one.
#[derive(Debug)]
struct Shown {
    identity: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
}

impl ResolvesClientCert for Shown {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.identity.clone()
    }

    fn has_certs(&self) -> bool {
        self.identity.is_some()
    }
}

fn complete(mut connection: Connection, socket: &Socket) -> Result<Connection> {
    let mut hurried = socket.hurried();
    while connection.is_handshaking() {
        connection
            .complete_io(&mut hurried)
            .map_err(|error| NetError::from_io(error, Direction::Receive, socket.timeout()))?;
    }
    // Pieces are bounded where they are written, so the library need not bound them again.
    connection.set_buffer_limit(None);
    Ok(connection)
}

pub(crate) fn agreed(connection: &Connection) -> Agreed {
    let group = connection.negotiated_key_exchange_group();
    let suite = connection.negotiated_cipher_suite();
    Agreed {
        key_exchange: group.map_or(String::new(), |g| format!("{:?}", g.name())),
        cipher_suite: suite.map_or(String::new(), |s| format!("{:?}", s.suite())),
        peer: connection
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(fingerprint_of),
    }
}

/// Accepts exactly one certificate, or none.
struct Pin {
    expected: Option<Fingerprint>,
    /// The certificate that was refused, for the error.
    refused: Mutex<Option<Fingerprint>>,
    provider: Arc<CryptoProvider>,
}

impl Pin {
    fn refused(&self) -> std::sync::MutexGuard<'_, Option<Fingerprint>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({:?})", self.expected)
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let got = fingerprint_of(end_entity);
        if Some(got) == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        *self.refused() = Some(got);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken here".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_storage() {
        let made = Identity::self_signed(&["localhost".into()]).unwrap();
        let read = Identity::from_pem(made.chain_pem(), made.key_pem()).unwrap();
        assert_eq!(read.fingerprint(), made.fingerprint());
        TlsServer::new(&read).unwrap();
        assert!(Identity::from_pem("", made.key_pem()).is_err());
        assert!(Identity::from_pem(made.chain_pem(), "no key").is_err());
        let other = Identity::self_signed(&["localhost".into()]).unwrap();
        let mixed = Identity::from_pem(made.chain_pem(), other.key_pem()).unwrap();
        assert!(TlsServer::new(&mixed).is_err());
    }
}
