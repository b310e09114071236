//! What a recorder takes down of a channel.

use primer_net::kind::trial::FIRST as BULK;
use primer_net::pair::{Transport, run_pair_over, test_options};
use primer_net::record::{Doing, Span};
use primer_net::{Channel, NetError, Options, Result};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

fn total(spans: &[Span], doing: Doing) -> Duration {
    let alike = spans.iter().filter(|span| span.doing == doing);
    alike.map(|span| span.to - span.from).sum()
}

/// Both parties say something; the second thinks before it does. Returns the first's record.
fn asked(transport: Transport, options: &Options) -> Vec<Span> {
    let (spans, ()) = run_pair_over::<_, _, NetError>(
        transport,
        options,
        |channel: &mut Channel| {
            channel.recorder().start();
            channel.send(BULK, &[1; 100])?;
            channel.recv_exact(BULK, &mut [0; 100])?;
            Ok(channel.recorder().stop())
        },
        |channel: &mut Channel| -> Result<()> {
            channel.recv_exact(BULK, &mut [0; 100])?;
            std::thread::sleep(PAUSE);
            channel.send(BULK, &[2; 100])?;
            channel.flush()
        },
    )
    .unwrap();
    spans
}

#[test]
fn a_wait_is_taken_down_within_the_receiving() {
    for transport in [Transport::Tcp, Transport::Tls] {
        let spans = asked(transport, &test_options());
        let (waited, received) = (
            total(&spans, Doing::Waiting),
            total(&spans, Doing::Receiving),
        );
        assert!(waited > PAUSE * 9 / 10, "{waited:?}");
        // Received is what was waited for, and little more.
        assert!(received >= waited, "{received:?}, {waited:?}");
        assert!(total(&spans, Doing::Sending) > Duration::ZERO);
        let waits = spans.iter().filter(|span| span.doing == Doing::Waiting);
        for wait in waits {
            let mut outer = spans.iter().filter(|span| span.doing == Doing::Receiving);
            assert!(outer.any(|outer| outer.from <= wait.from && wait.to <= outer.to));
        }
    }
}

/// A memory channel has no socket: what it waits counts as receiving.
#[test]
fn in_memory_waiting_is_receiving() {
    let spans = asked(Transport::Memory, &test_options());
    assert_eq!(total(&spans, Doing::Waiting), Duration::ZERO);
    assert!(total(&spans, Doing::Receiving) > PAUSE * 9 / 10);
}

/// The thread of a shaped link waits as well, but that is not the party's time.
#[test]
fn a_shaped_link_delays_and_takes_down_nothing_of_its_own() {
    let options = Options {
        shape: primer_net::LinkShape::new(PAUSE, 25_000_000),
        ..test_options()
    };
    let spans = asked(Transport::Tls, &options);
    assert!(total(&spans, Doing::Waiting) > PAUSE * 18 / 10);
    // Nothing is waited for but what is received.
    let waits = spans.iter().filter(|span| span.doing == Doing::Waiting);
    for wait in waits {
        let mut outer = spans.iter().filter(|span| span.doing == Doing::Receiving);
        assert!(outer.any(|outer| outer.from <= wait.from && wait.to <= outer.to));
    }
}
