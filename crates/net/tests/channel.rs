//! The channel's promises, over every transport.

use primer_net::pair::{Medium, connect, run_pair_over};
use primer_wire::kind::trial::{FIRST as ASK, SECOND as TELL, THIRD as BULK};
use primer_wire::pair::{run_pair, run_parties, test_options};
use primer_wire::{Channel, Direction, NetError, Options};
use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn pattern(n: usize, seed: u64) -> Vec<u8> {
    (0..n as u64)
        .map(|i| ((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect()
}

fn impatient() -> Options {
    Options {
        timeout: Some(Duration::from_millis(200)),
        ..test_options()
    }
}

#[test]
fn messages_arrive_over_every_transport() {
    for transport in Medium::ALL {
        let sizes = [0, 1, 7, 1000, 65_535, 65_536, 65_537, 1 << 20, 3_333_333];
        let ends = run_pair_over(
            transport,
            &test_options(),
            |channel| {
                for (i, n) in sizes.into_iter().enumerate() {
                    channel.send(ASK, &pattern(n, i as u64))?;
                    let mut back = vec![0; n / 2];
                    channel.recv_exact(TELL, &mut back)?;
                    assert_eq!(back, pattern(n / 2, 77));
                }
                Ok::<_, NetError>(channel.meter().report().total())
            },
            |channel| {
                for (i, n) in sizes.into_iter().enumerate() {
                    assert_eq!(channel.recv(ASK, 4 << 20)?, pattern(n, i as u64));
                    channel.send(TELL, &pattern(n / 2, 77))?;
                }
                Ok(channel.meter().report().total())
            },
        );
        let (left, right) = ends.unwrap();
        let up: usize = sizes.iter().map(|n| n + 8).sum();
        let down: usize = sizes.iter().map(|n| n / 2 + 8).sum();
        assert_eq!(left.bytes_sent, up as u64);
        assert_eq!(left.bytes_received, down as u64);
        assert_eq!(right.bytes_sent, left.bytes_received);
        assert_eq!(right.bytes_received, left.bytes_sent);
        assert_eq!(left.rounds, sizes.len() as u64);
        // The answering party's last answer is not followed by a receive.
        assert_eq!(right.rounds, sizes.len() as u64 - 1);
    }
}

#[test]
fn limits_are_checked_before_the_payload() {
    let (left, right) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| channel.send(BULK, &[0; 1001]),
        |channel| {
            let first = channel.recv(BULK, 1000).unwrap_err();
            (first, channel.recv(BULK, 2000).unwrap_err())
        },
    );
    left.unwrap();
    assert!(right.0.to_string().contains("1001") && right.0.to_string().contains("1000"));
    assert!(matches!(
        right.0,
        NetError::TooLong {
            announced: 1001,
            limit: 1000,
            ..
        }
    ));
    assert!(matches!(
        right.1,
        NetError::Broken {
            direction: Direction::Receive
        }
    ));
}

/// Refuses a peer that announces 2^55 bytes, by every way of receiving.
#[test]
fn enormous_announcements_cost_nothing() {
    type Receive = fn(&mut Channel) -> Result<(), NetError>;
    let ways: [Receive; 5] = [
        |c| c.recv(BULK, 1 << 20).map(drop),
        |c| c.recv_exact(BULK, &mut [0; 10]),
        |c| c.recv_stream(BULK, 1 << 30).map(drop),
        |c| c.recv_value::<Vec<u64>>(BULK, 100).map(drop),
        |c| c.recv_residues(BULK, 41, 1 << 41, &mut [0; 9]),
    ];
    for receive in ways {
        let (_, error) = run_parties(
            connect(Medium::Memory, &test_options()).unwrap(),
            |channel| channel.send_stream(BULK, 1 << 55).map(drop),
            |channel| receive(channel).unwrap_err(),
        );
        assert!(
            matches!(
                error,
                NetError::TooLong { .. } | NetError::WrongLength { .. }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(&(1u64 << 55).to_string()));
    }
}

#[test]
fn wrong_kinds_and_lengths_are_named() {
    let error = run_pair(
        |channel| channel.send(ASK, b"x"),
        |channel| channel.recv(TELL, 10),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected `second of a trial` (kind 2), the peer sent a message of kind 1"
    );
    let error = run_pair(
        |channel| channel.send(ASK, b"four"),
        |channel| channel.recv_exact(ASK, &mut [0; 5]),
    )
    .unwrap_err();
    assert!(matches!(
        error,
        NetError::WrongLength {
            announced: 4,
            expected: 5,
            ..
        }
    ));
}

#[test]
fn streams_keep_account() {
    run_pair(
        |channel| {
            let mut stream = channel.send_stream(BULK, 10)?;
            stream.put(&[1; 4])?;
            assert!(matches!(
                stream.put(&[0; 7]),
                Err(NetError::Overrun {
                    asked: 7,
                    left: 6,
                    ..
                })
            ));
            stream.write_all(&[2; 6]).unwrap();
            assert!(matches!(
                stream.put(&[0]),
                Err(NetError::Overrun { left: 0, .. })
            ));
            stream.finish()?;
            let _ = channel.send_stream(BULK, 3)?;
            assert!(matches!(
                channel.send(ASK, b""),
                Err(NetError::Unfinished {
                    missing: 3,
                    direction: Direction::Send,
                    ..
                })
            ));
            Ok::<_, NetError>(())
        },
        |channel| {
            let mut stream = channel.recv_stream(BULK, 10)?;
            assert_eq!(stream.left(), 10);
            let mut some = [0; 5];
            stream.get(&mut some)?;
            assert_eq!(some, [1, 1, 1, 1, 2]);
            assert!(matches!(
                stream.get(&mut [0; 6]),
                Err(NetError::Overrun { left: 5, .. })
            ));
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, [2; 5]);
            stream.finish()?;
            let mut stream = channel.recv_stream(BULK, 3)?;
            assert_eq!(stream.left(), 3);
            let error = stream.get(&mut [0; 3]).unwrap_err();
            assert!(matches!(error, NetError::PeerGone { .. }), "{error}");
            Ok(())
        },
    )
    .unwrap();
    run_pair(
        |channel| channel.send(BULK, &[0; 10]),
        |channel| {
            let _ = channel.recv_stream(BULK, 10)?;
            assert!(matches!(
                channel.recv(BULK, 10),
                Err(NetError::Unfinished {
                    missing: 10,
                    direction: Direction::Receive,
                    ..
                })
            ));
            Ok::<_, NetError>(())
        },
    )
    .unwrap();
}

#[test]
fn a_silent_peer_is_a_time_out() {
    for transport in Medium::ALL {
        let start = Instant::now();
        let (over, all_over) = mpsc::channel::<()>();
        let (_, error) = run_parties(
            connect(transport, &impatient()).unwrap(),
            move |_| all_over.recv().unwrap(),
            move |channel| {
                let error = channel.recv(ASK, 10).unwrap_err();
                over.send(()).unwrap();
                error
            },
        );
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(
            matches!(
                error,
                NetError::Timeout {
                    direction: Direction::Receive,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(error.to_string(), "no progress on a receive for 200 ms");
    }
}

#[test]
fn a_peer_that_does_not_read_is_a_time_out() {
    for transport in Medium::ALL {
        let (over, all_over) = mpsc::channel::<()>();
        let (_, error) = run_parties(
            connect(transport, &impatient()).unwrap(),
            move |_| all_over.recv().unwrap(),
            move |channel| {
                let piece = vec![0; 1 << 20];
                // More than any socket buffer holds.
                let error = (0..200).find_map(|_| channel.send(BULK, &piece).err());
                over.send(()).unwrap();
                error
            },
        );
        let error = error.expect("the transport is bounded");
        assert!(
            matches!(
                error,
                NetError::Timeout {
                    direction: Direction::Send,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_vanished_peer_is_said_to_be_gone() {
    for transport in Medium::ALL {
        let (_, (reading, writing)) = run_parties(
            connect(transport, &test_options()).unwrap(),
            |channel| channel.send(ASK, b"half").unwrap(),
            |channel| {
                channel.recv(ASK, 10).unwrap();
                let reading = channel.recv(ASK, 10).unwrap_err();
                let piece = vec![0; 1 << 20];
                let writing = (0..200).find_map(|_| channel.send(BULK, &piece).err());
                (reading, writing.expect("the peer is gone"))
            },
        );
        let receive = NetError::PeerGone {
            direction: Direction::Receive,
        };
        assert_eq!(reading.to_string(), receive.to_string());
        assert_eq!(writing.to_string(), "the peer disappeared during a send");
    }
}

/// Lets both parties send 8 MiB before they read: the mistake that the bounded memory channel must
/// show.
#[test]
fn both_sending_first_is_found() {
    let party = |channel: &mut Channel| {
        channel.send(BULK, &vec![0; 8 << 20])?;
        channel.recv(BULK, 8 << 20).map(drop)
    };
    let error = run_pair_over(Medium::Memory, &impatient(), party, party).unwrap_err();
    assert!(
        matches!(
            error,
            NetError::Timeout {
                direction: Direction::Send,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn residues_and_values_arrive_or_are_refused() {
    let p = (1u64 << 41) - (1 << 16) + 1;
    let values: Vec<u64> = (0..10_001u64)
        .map(|i| i.wrapping_mul(0x1234_5678_9abc) % p)
        .collect();
    run_pair(
        |channel| {
            channel.send_residues(BULK, 41, values.iter().copied())?;
            channel.send_value(ASK, &(7u32, "text".to_owned()))?;
            channel.send_residues(BULK, 41, [p - 1, p].into_iter())?;
            channel.send(ASK, &[1, 2, 3])
        },
        |channel| {
            let mut got = vec![0; values.len()];
            channel.recv_residues(BULK, 41, p, &mut got)?;
            assert_eq!(got, values);
            let bytes = channel.meter().report().total().bytes_received;
            assert_eq!(bytes, 8 + (10_001u64 * 41).div_ceil(8));
            assert_eq!(
                channel.recv_value::<(u32, String)>(ASK, 100)?,
                (7, "text".into())
            );
            let error = channel.recv_residues(BULK, 41, p, &mut [0; 2]).unwrap_err();
            assert!(error.to_string().contains("value 1"), "{error}");
            let error = channel.recv_value::<u8>(ASK, 100).unwrap_err();
            assert!(error.to_string().contains("2 bytes follow"), "{error}");
            Ok(())
        },
    )
    .unwrap();
}

#[test]
#[should_panic(expected = "the cause")]
fn the_first_panic_is_reported() {
    run_pair(
        |channel| channel.recv(ASK, 10).map_err(|e| panic!("an echo: {e}")),
        |_| -> Result<(), NetError> { panic!("the cause") },
    )
    .unwrap();
}

#[test]
fn the_first_error_is_reported() {
    let error = run_pair(
        |channel| channel.recv(ASK, 10).map(drop),
        |channel| {
            channel.send(ASK, &[0; 4])?;
            channel.send(TELL, b"")?;
            let _ = channel.send_stream(BULK, 1)?;
            channel.send(ASK, b"")
        },
    )
    .unwrap_err();
    assert!(matches!(error, NetError::Unfinished { .. }), "{error}");
}
