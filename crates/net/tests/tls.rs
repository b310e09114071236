//! TLS: what is negotiated, who is refused, what a tampered record does.

use primer_net::pair::{Medium, connect};
use primer_net::tls::{Clients, Identity, TlsClient, TlsServer, Trust};
use primer_wire::NetError;
use primer_wire::kind::trial::FIRST as HELLO;
use primer_wire::pair::test_options;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn identity() -> Identity {
    Identity::self_signed(&["localhost".into()]).unwrap()
}

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let left = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (left, listener.accept().unwrap().0)
}

#[test]
fn the_key_exchange_is_post_quantum() {
    let (client, server) = connect(Medium::Tls, &test_options()).unwrap();
    let agreed = client.agreed().unwrap();
    assert_eq!(agreed.key_exchange, "X25519MLKEM768");
    assert!(
        agreed.cipher_suite.starts_with("TLS13_"),
        "{}",
        agreed.cipher_suite
    );
    let theirs = server.agreed().unwrap();
    assert_eq!(theirs.key_exchange, agreed.key_exchange);
    assert_eq!(theirs.cipher_suite, agreed.cipher_suite);
    assert!(agreed.peer.is_some() && theirs.peer.is_none());
    let (left, _) = connect(Medium::Memory, &test_options()).unwrap();
    assert!(left.agreed().is_none());
}

#[test]
fn another_certificate_is_refused_by_fingerprint() {
    let (ours, theirs) = (identity(), identity());
    let (left, right) = sockets();
    let server = TlsServer::new(&theirs).unwrap();
    let accepting =
        std::thread::spawn(move || primer_net::tls_accept(right, &server, &test_options()).err());
    let client = TlsClient::new(Trust::Pinned(ours.fingerprint())).unwrap();
    let error = primer_net::tls_connect(left, &client, &test_options())
        .err()
        .unwrap();
    match error {
        NetError::Fingerprint { expected, got } => {
            assert_eq!(expected, ours.fingerprint());
            assert_eq!(got, theirs.fingerprint());
        }
        other => panic!("{other}"),
    }
    assert!(matches!(
        accepting.join().unwrap(),
        Some(NetError::Tls(_) | NetError::PeerGone { .. })
    ));
}

#[test]
fn an_unknown_server_is_refused_with_its_fingerprint() {
    let identity = identity();
    let (left, right) = sockets();
    let server = TlsServer::new(&identity).unwrap();
    let accepting =
        std::thread::spawn(move || primer_net::tls_accept(right, &server, &test_options()).err());
    let client = TlsClient::new(Trust::None).unwrap();
    let error = primer_net::tls_connect(left, &client, &test_options()).err();
    assert!(
        matches!(error, Some(NetError::UnknownServer { got }) if got == identity.fingerprint())
    );
    assert!(accepting.join().unwrap().is_some());
}

/// Sends one message up and one down; returns the error of each side.
fn exchange(clients: Clients, shown: Option<&Identity>) -> (Option<NetError>, Option<NetError>) {
    let identity = identity();
    let (left, right) = sockets();
    let server = TlsServer::for_clients(&identity, &clients).unwrap();
    let expected = shown.map(Identity::fingerprint);
    let serving = std::thread::spawn(move || {
        let mut channel = primer_net::tls_accept(right, &server, &test_options())?;
        assert_eq!(channel.agreed().unwrap().peer, expected);
        channel.recv(HELLO, 100)?;
        channel.send(HELLO, b"welcome")?;
        channel.flush()
    });
    let talk = || {
        let client = TlsClient::with_identity(Trust::Pinned(identity.fingerprint()), shown)?;
        let mut channel = primer_net::tls_connect(left, &client, &test_options())?;
        channel.send(HELLO, b"hello")?;
        channel.recv(HELLO, 100)
    };
    (talk().err(), serving.join().unwrap().err())
}

#[test]
fn clients_are_admitted_by_their_certificates() {
    let (known, unknown) = (identity(), identity());
    let pinned = || Clients::Pinned(vec![known.fingerprint()]);
    assert!(matches!(exchange(pinned(), Some(&known)), (None, None)));
    for shown in [None, Some(&unknown)] {
        let (client, server) = exchange(pinned(), shown);
        // The server's alert may be lost when the connection closes over unread data.
        assert!(client.is_some());
        assert!(matches!(server, Some(NetError::Tls(_))));
    }
    let (client, server) = exchange(Clients::Authority(unknown.chain_pem().into()), Some(&known));
    assert!(client.is_some() && server.is_some());
    for pem in ["", "no certificate"] {
        let clients = Clients::Authority(pem.into());
        assert!(TlsServer::for_clients(&known, &clients).is_err());
    }
}

#[test]
fn a_peer_that_does_not_speak_tls_is_refused() {
    let (mut left, right) = sockets();
    let server = TlsServer::new(&identity()).unwrap();
    let accepting =
        std::thread::spawn(move || primer_net::tls_accept(right, &server, &test_options()).err());
    left.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(matches!(accepting.join().unwrap(), Some(NetError::Tls(_))));
}

/// Flips one bit of an application record, as a man in the middle.
#[test]
fn a_flipped_bit_is_an_error() {
    let identity = identity();
    let (client_socket, mut client_side) = sockets();
    let (mut server_side, server_socket) = sockets();
    let server = TlsServer::new(&identity).unwrap();
    let serving = std::thread::spawn(move || {
        let mut channel = primer_net::tls_accept(server_socket, &server, &test_options())?;
        assert_eq!(channel.recv(HELLO, 100)?, b"first");
        channel.send(HELLO, b"ready")?;
        channel.recv(HELLO, 100)
    });
    let mut back_from = server_side.try_clone().unwrap();
    let mut back_to = client_side.try_clone().unwrap();
    std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    let tamper = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tampering = std::sync::Arc::clone(&tamper);
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(n) = client_side.read(&mut buffer) {
            if n == 0 {
                return;
            }
            if tampering.load(std::sync::atomic::Ordering::SeqCst) {
                buffer[n - 1] ^= 1;
            }
            if server_side.write_all(&buffer[..n]).is_err() {
                return;
            }
        }
    });
    let client = TlsClient::new(Trust::Pinned(identity.fingerprint())).unwrap();
    let mut channel = primer_net::tls_connect(client_socket, &client, &test_options()).unwrap();
    channel.send(HELLO, b"first").unwrap();
    assert_eq!(channel.recv(HELLO, 100).unwrap(), b"ready");
    tamper.store(true, std::sync::atomic::Ordering::SeqCst);
    channel.send(HELLO, b"second").unwrap();
    channel.flush().unwrap();
    let error = serving.join().unwrap().unwrap_err();
    assert!(matches!(error, NetError::Tls(_)), "{error}");
}
