//! A transport of one's own, as a browser needs it: two rings in shared memory, waits that end, a
//! flag for the end.
#![allow(missing_docs)]

use primer_wire::kind::trial::{FIRST as ASK, SECOND as TELL};
use primer_wire::{Channel, Direction, NetError, Receive, Transport, run_parties};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const CAPACITY: usize = 1000;
const TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Ring {
    state: Mutex<(VecDeque<u8>, bool)>,
    changed: Condvar,
}

impl Ring {
    /// Waits until the ring can go on, or for as long as the time-out says.
    fn when<T>(
        &self,
        patience: Option<Duration>,
        can: impl Fn(&(VecDeque<u8>, bool)) -> bool,
        act: impl FnOnce(&mut (VecDeque<u8>, bool)) -> T,
    ) -> io::Result<T> {
        let state = self.state.lock().unwrap();
        let patience = patience.unwrap_or(Duration::MAX);
        let waited = self
            .changed
            .wait_timeout_while(state, patience, |state| !can(state));
        let (mut state, waited) = waited.unwrap();
        if waited.timed_out() {
            return Err(ErrorKind::TimedOut.into());
        }
        let done = act(&mut state);
        self.changed.notify_all();
        Ok(done)
    }

    fn close(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// The half that fills a ring.
struct Filler(Arc<Ring>);

impl Write for Filler {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let can = |(bytes, closed): &(VecDeque<u8>, bool)| *closed || bytes.len() < CAPACITY;
        self.0.when(Some(TIMEOUT), can, |(bytes, closed)| {
            if *closed {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let taken = data.len().min(CAPACITY - bytes.len());
            bytes.extend(&data[..taken]);
            Ok(taken)
        })?
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The half that empties a ring.
struct Drainer(Arc<Ring>);

impl Receive for Drainer {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        let can = |(bytes, closed): &(VecDeque<u8>, bool)| *closed || !bytes.is_empty();
        self.0.when(patience, can, |(bytes, _)| {
            let taken = out.len().min(bytes.len());
            for (place, byte) in out.iter_mut().zip(bytes.drain(..taken)) {
                *place = byte;
            }
            taken
        })
    }
}

impl Drop for Drainer {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Rings {
    there: Arc<Ring>,
    here: Arc<Ring>,
}

impl Transport for Rings {
    type Sender = Filler;
    type Receiver = Drainer;

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    fn split(self) -> (Filler, Drainer) {
        (Filler(self.there), Drainer(self.here))
    }
}

fn ends() -> (Channel, Channel) {
    let (up, down) = (Arc::new(Ring::default()), Arc::new(Ring::default()));
    let left = Rings {
        there: Arc::clone(&up),
        here: Arc::clone(&down),
    };
    let right = Rings {
        there: down,
        here: up,
    };
    (Channel::new(left), Channel::new(right))
}

#[test]
fn messages_pass_and_the_end_is_told() {
    let long: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    let (left, right) = run_parties(
        ends(),
        |channel| {
            channel.send(ASK, &long)?;
            channel.recv(TELL, 10)
        },
        |channel| {
            let got = channel.recv(ASK, 100_000)?;
            channel.send(TELL, b"thanks")?;
            channel.flush()?;
            assert_eq!(got, long);
            Ok::<_, NetError>(channel.recv(ASK, 10).unwrap_err())
        },
    );
    assert_eq!(left.unwrap(), b"thanks");
    let error = right.unwrap();
    assert!(matches!(error, NetError::PeerGone { .. }), "{error}");
}

#[test]
fn the_channel_ends_what_the_transport_waits_for() {
    let (mut left, mut right) = ends();
    let error = right.recv(ASK, 10).unwrap_err();
    let receive = Direction::Receive;
    assert!(
        matches!(error, NetError::Timeout { direction, after } if direction == receive
            && after == TIMEOUT),
        "{error}"
    );
    let error = left.send(ASK, &[0; 200_000]).unwrap_err();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");
}
