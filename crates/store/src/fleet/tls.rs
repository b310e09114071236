//! How the database is reached: in the clear on this machine, by TLS anywhere else.

use crate::error::{Result, StoreError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

fn options(fault: String) -> StoreError {
    StoreError::Options { fault }
}

/// Reads the URL of a database. Its password appears in no message.
pub(super) fn parse(url: &str) -> Result<Config> {
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let cause = cause.unwrap_or_else(|| error.to_string());
        options(format!("--store is not the URL of a database: {cause}"))
    })?;
    if config.get_hosts().is_empty() {
        return Err(options("--store names no host".into()));
    }
    // In the clear beyond this machine only on explicit request.
    let said = url.contains("sslmode=disable");
    if !config.get_hosts().iter().all(is_here) && !said {
        config.ssl_mode(SslMode::Require);
    }
    Ok(config)
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) if name == "localhost" => true,
        Host::Tcp(name) => name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Returns where a database is, without the user's name and password.
pub(super) fn place(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

/// Checks the database's certificate by the given authorities, or by the system's.
pub(super) fn connector(authority: Option<&Path>) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(path) => {
            let wrong = |e: String| options(format!("--store-ca {}: {e}", path.display()));
            let pem = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
                roots.add(certificate).map_err(|e| wrong(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("no certificate in it".into()));
            }
        }
        None => {
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| options(format!("TLS to the database: {e}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_elsewhere_are_spoken_to_by_tls() {
        let mode = |url: &str| parse(url).unwrap().get_ssl_mode();
        for here in ["postgres://u@localhost/p", "postgres://u@127.0.0.1,[::1]/p"] {
            assert_eq!(mode(here), SslMode::Prefer, "{here}");
        }
        assert_eq!(mode("postgres://u@%2Ftmp%2Fpg/p"), SslMode::Prefer);
        for there in [
            "postgres://u@db/p",
            "postgres://u@localhost,db/p?sslmode=prefer",
        ] {
            assert_eq!(mode(there), SslMode::Require, "{there}");
        }
        assert_eq!(mode("postgres://u@db/p?sslmode=disable"), SslMode::Disable);
        let secret = "postgres://me:secret@db:99/p";
        assert_eq!(place(&parse(secret).unwrap()), "postgres://db/p");
        for wrong in ["postgres://", "postgres://u@h/p?secret=1", "mysql://secret"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("--store"), "{error}");
        }
        assert!(connector(Some(Path::new("/nowhere"))).is_err());
        assert!(connector(None).is_ok());
    }
}
