//! What a recorder takes down of a channel.

use primer_net::pair::{Medium, run_pair_over};
use primer_wire::kind::trial::FIRST as BULK;
use primer_wire::pair::test_options;
use primer_wire::record::{Doing, Span};
use primer_wire::{Channel, NetError, Options, Result};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

fn total(spans: &[Span], doing: Doing) -> Duration {
    let alike = spans.iter().filter(|span| span.doing == doing);
    alike.map(|span| span.to - span.from).sum()
}

/// Returns the first party's record. Both say something; the second thinks before it does.
fn asked(transport: Medium, options: &Options) -> Vec<Span> {
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
    for transport in [Medium::Tcp, Medium::Tls] {
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

/// Counts what a memory channel waits as receiving: it has no socket.
#[test]
fn in_memory_waiting_is_receiving() {
    let spans = asked(Medium::Memory, &test_options());
    assert_eq!(total(&spans, Doing::Waiting), Duration::ZERO);
    assert!(total(&spans, Doing::Receiving) > PAUSE * 9 / 10);
}

/// Leaves out the waits of a shaped link's own thread, which are not the party's time.
#[test]
fn a_shaped_link_delays_and_takes_down_nothing_of_its_own() {
    let options = Options {
        shape: primer_wire::LinkShape::new(PAUSE, 25_000_000),
        ..test_options()
    };
    let spans = asked(Medium::Tls, &options);
    assert!(total(&spans, Doing::Waiting) > PAUSE * 18 / 10);
    // Nothing is waited for but what is received.
    let waits = spans.iter().filter(|span| span.doing == Doing::Waiting);
    for wait in waits {
        let mut outer = spans.iter().filter(|span| span.doing == Doing::Receiving);
        assert!(outer.any(|outer| outer.from <= wait.from && wait.to <= outer.to));
    }
}
