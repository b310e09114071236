//! The server's certificate and key: given as PEM files, or made on the first start and kept.

use primer_net::tls::Identity;
use primer_service::state::{read_if_there, write_private};
use primer_service::{ServiceError, io_error};
use std::path::Path;
use zeroize::Zeroizing;

/// Reads an identity from two PEM files.
///
/// # Errors
/// [`ServiceError`] naming the file at fault.
pub fn from_files(certificate: &Path, key: &Path) -> Result<Identity, ServiceError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(io_error(format!("reading {}", path.display())))
    };
    let (chain, key_text) = (read(certificate)?, Zeroizing::new(read(key)?));
    Identity::from_pem(&chain, &key_text).map_err(|error| {
        let files = format!("{} and {}", certificate.display(), key.display());
        ServiceError::Options(format!("{files}: {error}"))
    })
}

/// Returns the identity that a directory keeps; made on the first call.
///
/// # Errors
/// [`ServiceError`] if it cannot be read, made or written.
pub fn kept(dir: &Path) -> Result<Identity, ServiceError> {
    let (certificate, key) = (dir.join("certificate.pem"), dir.join("key.pem"));
    // The key is written first: a certificate that is there has its key.
    if read_if_there(&certificate)?.is_some() {
        return from_files(&certificate, &key);
    }
    let made = Identity::self_signed(&["primer".to_owned()])?;
    write_private(&key, made.key_pem().as_bytes())?;
    write_private(&certificate, made.chain_pem().as_bytes())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let first = kept(dir.path()).unwrap().fingerprint();
        assert_eq!(kept(dir.path()).unwrap().fingerprint(), first);
        std::fs::write(dir.path().join("key.pem"), "no key").unwrap();
        let error = kept(dir.path()).err().unwrap().to_string();
        assert!(error.contains("key.pem"), "{error}");
    }
}
