//! Addresses, and a file behind TLS.

use super::*;
use primer_net::tls::Identity;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::net::TcpListener;

#[test]
fn addresses_are_read_and_followed() {
    let url = Url::parse("https://a.example/dir/x.hint?v=1#part").unwrap();
    assert_eq!(url.to_string(), "https://a.example:443/dir/x.hint?v=1");
    let there = |location: &str| url.redirected(location).unwrap().to_string();
    assert_eq!(there("/y"), "https://a.example:443/y");
    assert_eq!(there("y"), "https://a.example:443/dir/y");
    assert_eq!(there("http://b:81"), "http://b:81/");
    assert_eq!(there("//b?z"), "https://b:443/?z");
    let six = Url::parse("http://[::1]:8/x").unwrap();
    assert_eq!((&*six.host, six.port), ("[::1]", 8));
    assert_eq!(Url::parse("http://[::1]/x").unwrap().port, 80);
    for wrong in [
        "ftp://a/b",
        "http:///x",
        "http://a:b/x",
        "http://me@a/x",
        "http://a/x y",
        "http://a/x\r\nHost: b",
    ] {
        assert!(Url::parse(wrong).is_err(), "{wrong}");
    }
}

/// Starts a web server behind TLS that says one thing to each caller; returns its address.
fn secure_web(identity: &Identity) -> String {
    let chain = CertificateDer::from_pem_slice(identity.chain_pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![chain], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket.unwrap());
            let mut asked = [0; 1024];
            // One that does not trust us goes.
            if stream.read(&mut asked).is_ok_and(|bytes| bytes > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n0123456789");
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    format!("https://localhost:{port}/x")
}

#[test]
fn a_host_behind_tls_is_one_that_an_authority_vouches_for() {
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let url = secure_web(&identity);
    let trusting = |whom: &Identity| {
        let mut roots = RootCertStore::empty();
        let chain = CertificateDer::from_pem_slice(whom.chain_pem().as_bytes());
        roots.add(chain.unwrap()).unwrap();
        let timeout = Duration::from_secs(20);
        let opened = get_trusting(&url, 4, timeout, &HangUp::default(), || roots.clone());
        let mut text = String::new();
        opened.map(|mut body| body.read_to_string(&mut text).map(|_| text))
    };
    assert_eq!(trusting(&identity).unwrap().unwrap(), "456789");
    let stranger = Identity::self_signed(&["localhost".into()]).unwrap();
    let error = trusting(&stranger).unwrap_err();
    assert!(error.contains("certificate"), "{error}");
}
