//! Counting: bytes, frames and rounds, per named phase and direction.
//!
//! A phase is a path such as `offline/garble`. [`Meter::phase`] enters one below the phase in force
//! and leaves it when the guard is dropped, so that a protocol step can name its own part without
//! knowing who calls it. Counters belong to the innermost phase; [`Report::under`] adds up a whole
//! branch.
//!
//! * **Bytes** are those of the frames, headers included, when their header passes the channel. TLS
//!   records, TCP and IP add theirs on the wire (TLS 1.3: 22 bytes per 16 KiB record).
//! * A **round** is counted each time this party turns from sending to receiving: it has said
//!   something and now waits. For the party that speaks first this is the number of round trips on
//!   the critical path.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What passed in one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes from here to the peer.
    pub bytes_sent: u64,
    /// Bytes from the peer to here.
    pub bytes_received: u64,
    /// Frames from here to the peer.
    pub frames_sent: u64,
    /// Frames from the peer to here.
    pub frames_received: u64,
    /// Turns from sending to receiving.
    pub rounds: u64,
}

impl Traffic {
    fn combine(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            bytes_sent: f(self.bytes_sent, other.bytes_sent),
            bytes_received: f(self.bytes_received, other.bytes_received),
            frames_sent: f(self.frames_sent, other.frames_sent),
            frames_received: f(self.frames_received, other.frames_received),
            rounds: f(self.rounds, other.rounds),
        }
    }

    /// Returns the bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.bytes_sent + self.bytes_received
    }
}

/// A snapshot of a meter, ready for JSON: phase name to traffic. Traffic outside any phase has the
/// empty name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Traffic by phase.
    pub phases: BTreeMap<String, Traffic>,
}

impl Report {
    /// Returns the sum over all phases.
    pub fn total(&self) -> Traffic {
        self.sum(|_| true)
    }

    /// Returns the sum over a phase and everything below it.
    pub fn under(&self, phase: &str) -> Traffic {
        self.sum(|name| {
            name.strip_prefix(phase)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns what has passed since an earlier report of the same meter.
    pub fn since(&self, earlier: &Report) -> Report {
        let phases = self.phases.iter().map(|(name, &now)| {
            let before = earlier.phases.get(name).copied().unwrap_or_default();
            (name.clone(), now.combine(before, u64::saturating_sub))
        });
        Report {
            phases: phases.collect(),
        }
    }

    fn sum(&self, wanted: impl Fn(&str) -> bool) -> Traffic {
        let chosen = self.phases.iter().filter(|(name, _)| wanted(name));
        chosen.fold(Traffic::default(), |sum, (_, &t)| {
            sum.combine(t, |a, b| a + b)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Nothing was sent since the last receive.
    Listening,
    /// Something was sent and nothing received since.
    Spoken,
}

struct State {
    phases: Vec<(String, Traffic)>,
    current: usize,
    turn: Turn,
}

impl State {
    fn enter(&mut self, name: String) -> usize {
        let found = self.phases.iter().position(|(n, _)| *n == name);
        let index = found.unwrap_or_else(|| {
            self.phases.push((name, Traffic::default()));
            self.phases.len() - 1
        });
        std::mem::replace(&mut self.current, index)
    }
}

/// The counters of one channel; clones share them.
#[derive(Clone)]
pub struct Meter {
    state: Arc<Mutex<State>>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let state = State {
            phases: vec![(String::new(), Traffic::default())],
            current: 0,
            turn: Turn::Listening,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counters stay meaningful even if a thread panicked while holding them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a phase below the one in force, until the guard is dropped.
    #[must_use = "the phase ends when this guard is dropped"]
    pub fn phase(&self, name: &str) -> Phase {
        let mut state = self.lock();
        let parent = &state.phases[state.current].0;
        let path = if parent.is_empty() {
            name.to_owned()
        } else {
            format!("{parent}/{name}")
        };
        let previous = state.enter(path);
        Phase {
            meter: self.clone(),
            previous,
        }
    }

    /// Returns the counters as they stand.
    pub fn report(&self) -> Report {
        let state = self.lock();
        let seen = state
            .phases
            .iter()
            .filter(|(_, t)| *t != Traffic::default());
        Report {
            phases: seen.cloned().collect(),
        }
    }

    pub(crate) fn sent(&self, bytes: u64) {
        let mut state = self.lock();
        state.turn = Turn::Spoken;
        let current = state.current;
        let traffic = &mut state.phases[current].1;
        traffic.bytes_sent += bytes;
        traffic.frames_sent += 1;
    }

    pub(crate) fn received(&self, bytes: u64) {
        let mut state = self.lock();
        let turned = std::mem::replace(&mut state.turn, Turn::Listening) == Turn::Spoken;
        let current = state.current;
        let traffic = &mut state.phases[current].1;
        traffic.bytes_received += bytes;
        traffic.frames_received += 1;
        traffic.rounds += u64::from(turned);
    }
}

/// Keeps a phase in force; see [`Meter::phase`].
pub struct Phase {
    meter: Meter,
    previous: usize,
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.meter.lock().current = self.previous;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_nest_and_add_up() {
        let meter = Meter::new();
        meter.sent(1);
        {
            let _offline = meter.phase("offline");
            meter.sent(10);
            {
                let _garble = meter.phase("garble");
                meter.sent(100);
                meter.received(1000);
            }
            meter.received(10_000);
        }
        let _other = meter.phase("offline-not");
        meter.sent(5);
        let report = meter.report();
        assert_eq!(report.phases["offline/garble"].bytes_sent, 100);
        assert_eq!(report.phases["offline/garble"].rounds, 1);
        assert_eq!(report.under("offline").bytes_sent, 110);
        assert_eq!(report.under("offline").bytes_received, 11_000);
        assert_eq!(report.under("offline").rounds, 1);
        assert_eq!(report.total().bytes(), 1 + 110 + 11_000 + 5);
    }

    #[test]
    fn reports_subtract_and_survive_json() {
        let meter = Meter::new();
        let _p = meter.phase("a");
        meter.sent(10);
        let before = meter.report();
        meter.sent(32);
        let after = meter.report();
        assert_eq!(after.since(&before).under("a").bytes_sent, 32);
        let text = serde_json::to_string(&after).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), after);
    }

    #[test]
    fn a_round_is_a_turn_from_sending_to_receiving() {
        let meter = Meter::new();
        meter.received(1);
        assert_eq!(meter.report().total().rounds, 0);
        for _ in 0..3 {
            meter.sent(1);
            meter.sent(1);
            meter.received(1);
            meter.received(1);
        }
        assert_eq!(meter.report().total().rounds, 3);
    }
}
