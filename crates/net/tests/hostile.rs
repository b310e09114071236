//! A peer that sends arbitrary bytes: every receive ends with a value within its limits or an
//! error.

use primer_wire::kind::trial::{FIRST as A, SECOND as B};
use primer_wire::pair::test_options;
use primer_wire::{Channel, LinkShape, NetError, Options};
use proptest::prelude::*;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Makes a channel whose peer has sent these bytes and left.
fn after(bytes: &[u8]) -> (Channel, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.write_all(bytes).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let channel = primer_net::tcp(listener.accept().unwrap().0, &test_options()).unwrap();
    (channel, peer)
}

/// Draws byte strings that look like frames more often than chance would have it.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let frame = (
        1u8..4,
        any::<u8>(),
        proptest::collection::vec(any::<u8>(), 0..40),
    )
        .prop_map(|(kind, twist, payload)| {
            let mut frame = vec![kind];
            let announced = payload.len() as u64 + u64::from(twist < 20) * (1 << (twist % 56));
            frame.extend_from_slice(&announced.to_le_bytes()[..7]);
            frame.extend(payload);
            frame
        });
    prop_oneof![
        proptest::collection::vec(frame, 0..4).prop_map(|f| f.concat()),
        proptest::collection::vec(any::<u8>(), 0..64),
    ]
}

/// Receives in some ways: values within their limits, or errors.
fn receive(channel: &mut Channel, ways: &[u8]) {
    let mut failed = false;
    for way in ways {
        let kind = if way % 2 == 0 { A } else { B };
        let result: Result<(), NetError> = match way {
            0 => channel
                .recv(kind, 20)
                .map(|payload| assert!(payload.len() <= 20)),
            1 => channel.recv_exact(kind, &mut [0; 7]),
            2 => channel
                .recv_value::<(u16, Vec<u32>, String)>(kind, 30)
                .map(drop),
            3 => channel.recv_residues(kind, 5, 19, &mut [0; 8]),
            _ => channel.recv_stream(kind, 9).and_then(|mut stream| {
                let mut rest = vec![0; stream.left() as usize];
                stream.get(&mut rest)
            }),
        };
        // Framing errors are final; a payload that does not decode is not.
        assert!(!failed || result.is_err());
        failed |= matches!(
            result,
            Err(NetError::TooLong { .. }
                | NetError::WrongLength { .. }
                | NetError::WrongKind { .. }
                | NetError::PeerGone { .. })
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_arrives_is_within_limits_or_refused(
        bytes in frames(),
        ways in proptest::collection::vec(0u8..5, 1..5),
    ) {
        let (mut channel, _peer) = after(&bytes);
        receive(&mut channel, &ways);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Does the same over a link with 100 ms of latency, in two pieces a way apart.
    #[test]
    fn whatever_arrives_late_is_within_limits_or_refused(
        bytes in frames(),
        cut in 0usize..64,
        ways in proptest::collection::vec(0u8..5, 1..5),
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let options = Options {
            shape: LinkShape::new(Duration::from_millis(100), 25_000_000),
            ..test_options()
        };
        let mut channel = primer_net::tcp(listener.accept().unwrap().0, &options).unwrap();
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                peer.write_all(first).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                // The channel may be gone by then.
                let _ = peer.write_all(second);
                let _ = peer.shutdown(Shutdown::Write);
            });
            channel.send(B, b"a question").unwrap();
            receive(&mut channel, &ways);
        });
    }
}

#[test]
fn errors_and_shapes_print_without_payload() {
    let mut bytes = vec![A.code(), 200, 0, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(b"secret text");
    let (mut channel, _peer) = after(&bytes);
    let error = channel.recv(A, 10).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
    assert!(format!("{:?}", LinkShape::NONE).contains("delay"));
}
