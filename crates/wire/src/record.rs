//! What a party does with its time, moment by moment, written down for a picture.
//!
//! A channel knows when its party sends, receives and waits; what it computes in between, a
//! protocol knows ([`Recorder::step`]). A recorder takes down both on one clock, which the
//! processes of a machine share, so that the records of two parties can be laid beside each other.
//! Of a channel over a socket waiting is told apart from receiving and from sending; of one in
//! memory it is not.
//!
//! A record is of the thread that asked for it: a shaped link has one of its own, which waits for
//! the socket while its party goes on. A recorder that is off costs a look at a flag wherever
//! something would be taken down.

use crate::clock::now;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// What a party does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    /// A step of the protocol that runs over the channel, by a number of the protocol's; what else
    /// is taken down in this time is part of it.
    Step(u32),
    /// Handing bytes to the network, encryption included.
    Sending,
    /// Taking bytes from the network, decryption included.
    Receiving,
    /// Nothing: neither is there anything to receive, nor room to send.
    Waiting,
}

/// From when to when it does something, on the clock of [`now`]. Spans of one recorder follow or
/// contain each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// What.
    pub doing: Doing,
    /// Its begin.
    pub from: Duration,
    /// Its end.
    pub to: Duration,
}

/// Takes down what is done; clones write into the same record.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Shared>);

#[derive(Default)]
struct Shared {
    on: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    /// Whose time it is.
    thread: Option<ThreadId>,
    spans: Vec<Span>,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Record> {
        // What was taken down stays true even if a thread panicked since.
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a record of what this thread does.
    pub fn start(&self) {
        *self.lock() = Record {
            thread: Some(std::thread::current().id()),
            spans: Vec::new(),
        };
        self.0.on.store(true, Ordering::Relaxed);
    }

    /// Ends the record, and returns the spans in the order of their ends.
    pub fn stop(&self) -> Vec<Span> {
        self.0.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.lock().spans)
    }

    /// Returns the time, if a record is being made.
    #[inline]
    pub fn begin(&self) -> Option<Duration> {
        self.0.on.load(Ordering::Relaxed).then(now)
    }

    /// Takes down a step that began then; returns its end, where the next one may begin.
    #[inline]
    pub fn step(&self, step: u32, begun: Option<Duration>) -> Option<Duration> {
        self.end(Doing::Step(step), begun)
    }

    /// Takes down what began then.
    #[inline]
    pub fn end(&self, doing: Doing, begun: Option<Duration>) -> Option<Duration> {
        let from = begun?;
        let to = now();
        let mut record = self.lock();
        if record.thread == Some(std::thread::current().id()) {
            record.spans.push(Span { doing, from, to });
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_what_was_done_while_it_was_made() {
        let recorder = Recorder::default();
        assert_eq!(recorder.begin(), None);
        assert_eq!(recorder.step(1, None), None);
        recorder.start();
        let begun = recorder.begin();
        let within = recorder.begin();
        recorder.end(Doing::Waiting, within);
        let next = recorder.step(7, begun);
        recorder.step(8, next);
        let spans = recorder.stop();
        let doing: Vec<Doing> = spans.iter().map(|span| span.doing).collect();
        assert_eq!(doing, [Doing::Waiting, Doing::Step(7), Doing::Step(8)]);
        assert!(spans[1].from <= spans[0].from && spans[0].to <= spans[1].to);
        assert_eq!(spans[1].to, spans[2].from);
        recorder.step(9, next);
        assert_eq!(recorder.begin(), None);
        recorder.start();
        assert_eq!(recorder.stop(), [], "a record begins empty");
    }

    #[test]
    fn what_another_thread_does_is_not_taken_down() {
        let recorder = Recorder::default();
        recorder.start();
        let other = recorder.clone();
        let other = std::thread::spawn(move || other.end(Doing::Waiting, other.begin()));
        assert!(other.join().unwrap().is_some());
        assert_eq!(recorder.stop(), []);
    }

    /// Agrees with the clock of `Instant`, which other processes cannot be told.
    #[test]
    fn the_clock_goes_on() {
        let (before, started) = (now(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (passed, elapsed) = (now() - before, started.elapsed());
        assert!(
            passed >= Duration::from_millis(20)
                && passed.abs_diff(elapsed) < Duration::from_millis(10)
        );
    }
}
