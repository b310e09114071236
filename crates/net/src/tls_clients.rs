//! Which clients a server admits: anyone, or holders of certain certificates (mutual TLS).
//!
//! A pinned client proves possession of its key by the handshake signature; names and dates in its
//! certificate mean nothing. Under an authority the whole chain is checked as on the web, dates
//! included.

use crate::tls::fingerprint_of;
use primer_wire::peer::Fingerprint;
use primer_wire::{NetError, Result};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// Whom a server admits.
#[derive(Debug, Clone, Default)]
pub enum Clients {
    /// Everyone; no certificate is asked for.
    #[default]
    Anyone,
    /// Clients whose certificate has one of these fingerprints.
    Pinned(Vec<Fingerprint>),
    /// Clients with a certificate that one of these authorities signed, as PEM.
    Authority(String),
}

impl Clients {
    pub(crate) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>> {
        match self {
            Self::Anyone => Ok(Arc::new(NoClientAuth)),
            Self::Pinned(list) => Ok(Arc::new(PinnedClients {
                admitted: list.clone(),
                provider,
            })),
            Self::Authority(pem) => {
                let failed = |reason: String| NetError::Tls(format!("client authority: {reason}"));
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                    let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                    roots
                        .add(certificate)
                        .map_err(|error| failed(error.to_string()))?;
                }
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
                    .map_err(|error| failed(error.to_string()))
            }
        }
    }
}

/// Admits exactly the certificates of a list.
#[derive(Debug)]
struct PinnedClients {
    admitted: Vec<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for PinnedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        // Certificates are public, so an ordinary comparison gives nothing away.
        if self.admitted.contains(&fingerprint_of(end_entity)) {
            return Ok(ClientCertVerified::assertion());
        }
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
