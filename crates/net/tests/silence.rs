//! Peers that are silent, slow or gone: no party waits for them longer than the time-out, in either
//! direction, on a bare link and on one with 100 ms of latency.

use primer_net::tls::{Identity, TlsClient, TlsServer, Trust};
use primer_wire::kind::trial::FIRST as BULK;
use primer_wire::{Channel, Direction, LinkShape, NetError, Options};
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LINKS: [LinkShape; 2] = [
    LinkShape::NONE,
    LinkShape::new(Duration::from_millis(100), 25_000_000),
];

fn options(timeout: u64, shape: LinkShape) -> Options {
    Options {
        timeout: Some(Duration::from_millis(timeout)),
        shape,
        ..Options::default()
    }
}

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Connects a client with TLS, and its server with another handle of the socket below it.
fn secured(options: &Options) -> (Channel, Channel, TcpStream) {
    let (client, server) = sockets();
    let below = server.try_clone().unwrap();
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let tls = TlsServer::new(&identity).unwrap();
    let patient = Options::default();
    let accepting = std::thread::spawn(move || primer_net::tls_accept(server, &tls, &patient));
    let tls = TlsClient::new(Trust::Pinned(identity.fingerprint())).unwrap();
    let client = primer_net::tls_connect(client, &tls, options).unwrap();
    (client, accepting.join().unwrap().unwrap(), below)
}

/// Sends until it fails, then lets go of the channel; tells how, and how long both took.
fn sent_in_vain(mut channel: Channel) -> (NetError, Duration) {
    let started = Instant::now();
    let block = vec![0; 1 << 20];
    let error = loop {
        if let Err(error) = channel.send(BULK, &block).and_then(|()| channel.flush()) {
            break error;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "never failed");
    };
    drop(channel);
    (error, started.elapsed())
}

#[test]
fn a_peer_that_does_not_read_is_waited_for_once() {
    for shape in LINKS {
        let (client, _server, _) = secured(&options(1000, shape));
        let (error, took) = sent_in_vain(client);
        let sending = matches!(
            error,
            NetError::Timeout {
                direction: Direction::Send,
                ..
            }
        );
        assert!(sending, "{error}");
        // The goodbye does not wait again.
        assert!(took >= Duration::from_secs(1), "{took:?}");
        assert!(took < Duration::from_millis(1900), "{took:?}");
    }
}

/// Ends a client that is sending: a server that is told to stop shuts its sockets down, with much
/// unread in them. The client is in the middle of sending, and the news comes on the side that it
/// does not read.
#[test]
fn a_sender_notices_that_its_peer_has_ended() {
    for shape in LINKS {
        let (client, _server, below) = secured(&options(30_000, shape));
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            below.shutdown(Shutdown::Write).unwrap();
            below
        });
        let (error, took) = sent_in_vain(client);
        assert!(matches!(error, NetError::PeerGone { .. }), "{error}");
        assert!(took < Duration::from_secs(10), "{took:?}");
        drop(ending.join().unwrap());
    }
}

/// Calls `send` with one byte after the other, a tenth of a second apart.
fn trickle(mut peer: TcpStream, bytes: Vec<u8>) {
    std::thread::spawn(move || {
        for byte in bytes {
            if peer.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn a_peer_that_sends_a_byte_now_and_then_is_not_waited_for_longer() {
    let long = [&[BULK.code(), 0, 1, 0, 0, 0, 0, 0], &[0; 256][..]].concat();
    // Within the header, within the payload taken at once, within the payload taken piecemeal.
    for (at_once, pieces) in [(0, false), (8, false), (8, true)] {
        for shape in LINKS {
            let (client, mut server) = sockets();
            server.write_all(&long[..at_once]).unwrap();
            trickle(server, long[at_once..].to_vec());
            let mut channel = primer_net::tcp(client, &options(500, shape)).unwrap();
            let started = Instant::now();
            let error = if pieces {
                let mut stream = channel.recv_stream(BULK, 256).unwrap();
                loop {
                    if let Err(error) = stream.get(&mut [0; 2]) {
                        break error;
                    }
                }
            } else {
                channel.recv(BULK, 256).unwrap_err()
            };
            let took = started.elapsed();
            assert!(matches!(error, NetError::Timeout { .. }), "{error}");
            assert!(took >= Duration::from_millis(500), "{took:?}");
            assert!(took < Duration::from_millis(2500), "{took:?}");
        }
    }
}

#[test]
fn time_that_this_party_takes_is_not_the_peers() {
    let (client, mut server) = sockets();
    let mut channel = primer_net::tcp(client, &options(500, LinkShape::NONE)).unwrap();
    server
        .write_all(&[BULK.code(), 6, 0, 0, 0, 0, 0, 0, 1, 2])
        .unwrap();
    let mut stream = channel.recv_stream(BULK, 6).unwrap();
    for _ in 0..2 {
        stream.get(&mut [0; 2]).unwrap();
        std::thread::sleep(Duration::from_millis(600));
        server.write_all(&[3, 4]).unwrap();
    }
    stream.get(&mut [0; 2]).unwrap();
}

#[test]
fn a_handshake_is_bounded_as_a_whole() {
    let (client, server) = sockets();
    trickle(server, [&[0x16, 3, 3, 0x40, 0], &[2; 100][..]].concat());
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let tls = TlsClient::new(Trust::Pinned(identity.fingerprint())).unwrap();
    let started = Instant::now();
    let ended = primer_net::tls_connect(client, &tls, &options(700, LinkShape::NONE));
    let took = started.elapsed();
    assert!(matches!(ended, Err(NetError::Timeout { .. })));
    assert!(took < Duration::from_millis(3000), "{took:?}");
}
