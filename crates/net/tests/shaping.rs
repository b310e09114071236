//! Shaped links: latency and throughput are both right, also together.
//!
//! Lower bounds are exact, since a shaped link is never too fast; upper bounds leave room for a
//! busy machine.

use primer_net::Link;
use primer_net::pair::{Medium, run_pair_over};
use primer_wire::kind::trial::{FIRST as PING, SECOND as BULK};
use primer_wire::pair::test_options;
use primer_wire::{LinkShape, NetError, Options};
use std::time::{Duration, Instant};

fn options(shape: LinkShape) -> Options {
    Options {
        shape,
        ..test_options()
    }
}

/// Takes the best of three runs: other work on the machine only ever adds time.
fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..3).map(|_| run()).min().expect("three runs")
}

fn ping_pong(transport: Medium, shape: LinkShape, rounds: u32) -> Duration {
    let (elapsed, ()) = run_pair_over(
        transport,
        &options(shape),
        |channel| {
            let start = Instant::now();
            for _ in 0..rounds {
                channel.send(PING, b"ping")?;
                channel.recv(PING, 10)?;
            }
            Ok::<_, NetError>(start.elapsed())
        },
        |channel| {
            for _ in 0..rounds {
                channel.recv(PING, 10)?;
                channel.send(PING, b"pong")?;
            }
            channel.flush()
        },
    )
    .unwrap();
    elapsed
}

#[test]
fn a_round_trip_takes_the_round_trip_time() {
    for transport in Medium::ALL {
        let shape = Link::Wan.shape();
        let elapsed = best(|| ping_pong(transport, shape, 3));
        assert!(
            elapsed >= Duration::from_millis(120),
            "{transport:?} {elapsed:?}"
        );
        assert!(
            elapsed < Duration::from_millis(180),
            "{transport:?} {elapsed:?}"
        );
    }
    let elapsed = best(|| ping_pong(Medium::Memory, Link::Paper.shape(), 20));
    assert!(elapsed >= Duration::from_micros(20 * 2300), "{elapsed:?}");
    assert!(elapsed < Duration::from_micros(20 * 3500), "{elapsed:?}");
}

fn one_way(transport: Medium, shape: LinkShape, messages: usize, size: usize) -> Duration {
    let (start, end) = run_pair_over(
        transport,
        &options(shape),
        |channel| {
            let start = Instant::now();
            let data = vec![7; size];
            for _ in 0..messages {
                channel.send(BULK, &data)?;
                channel.flush()?;
            }
            Ok::<_, NetError>(start)
        },
        |channel| {
            for _ in 0..messages {
                channel.recv(BULK, size)?;
            }
            Ok(Instant::now())
        },
    )
    .unwrap();
    end - start
}

#[test]
fn bulk_runs_at_the_bandwidth() {
    for transport in Medium::ALL {
        // 5 MB at 25 MB/s take 200 ms, the last byte 20 ms more.
        let elapsed = best(|| one_way(transport, Link::Wan.shape(), 1, 5_000_000));
        assert!(
            elapsed >= Duration::from_millis(219),
            "{transport:?} {elapsed:?}"
        );
        assert!(
            elapsed < Duration::from_millis(280),
            "{transport:?} {elapsed:?}"
        );
    }
    let elapsed = best(|| one_way(Medium::Memory, Link::Paper.shape(), 1, 20_000_000));
    assert!(elapsed >= Duration::from_millis(201), "{elapsed:?}");
    assert!(elapsed < Duration::from_millis(260), "{elapsed:?}");
}

/// Sends a hundred flushed messages in a row: they share one delay of 100 ms; one each would be 10
/// s.
#[test]
fn messages_in_a_row_are_under_way_together() {
    let shape = LinkShape {
        delay: Duration::from_millis(100),
        bandwidth: None,
    };
    for transport in Medium::ALL {
        let elapsed = best(|| one_way(transport, shape, 100, 1000));
        assert!(
            elapsed >= Duration::from_millis(100),
            "{transport:?} {elapsed:?}"
        );
        assert!(
            elapsed < Duration::from_millis(200),
            "{transport:?} {elapsed:?}"
        );
    }
}

/// Checks that what is on its way when a party leaves still arrives.
#[test]
fn the_last_words_arrive() {
    for transport in Medium::ALL {
        let (_, got) = run_pair_over(
            transport,
            &options(Link::Wan.shape()),
            |channel| channel.send(PING, b"bye"),
            |channel| channel.recv(PING, 10),
        )
        .unwrap();
        assert_eq!(got, b"bye");
    }
}
