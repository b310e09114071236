//! Bytes of an inference by phase and direction: what a formula says, or what a client has counted.
//!
//! The client is below and the server above. [`crate::Traffic`] is the view of one end, whichever
//! that is; this is what both ends agree on.

use crate::meter::Report;
use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Bytes of frames, headers included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseBytes {
    /// Offline, from the client to the server.
    pub offline_up: u64,
    /// Offline, from the server to the client.
    pub offline_down: u64,
    /// Online, from the client to the server.
    pub online_up: u64,
    /// Online, from the server to the client.
    pub online_down: u64,
}

impl PhaseBytes {
    /// Takes what the client's meter counted in its phases `offline` and `online`.
    pub fn counted_by_client(report: &Report) -> Self {
        let (offline, online) = (report.under("offline"), report.under("online"));
        Self {
            offline_up: offline.bytes_sent,
            offline_down: offline.bytes_received,
            online_up: online.bytes_sent,
            online_down: online.bytes_received,
        }
    }

    /// Returns both directions of the offline phase.
    pub const fn offline(&self) -> u64 {
        self.offline_up + self.offline_down
    }

    /// Returns both directions of the online phase.
    pub const fn online(&self) -> u64 {
        self.online_up + self.online_down
    }

    /// Returns all of them.
    pub const fn total(&self) -> u64 {
        self.offline() + self.online()
    }
}

impl AddAssign for PhaseBytes {
    fn add_assign(&mut self, other: Self) {
        self.offline_up += other.offline_up;
        self.offline_down += other.offline_down;
        self.online_up += other.online_up;
        self.online_down += other.online_down;
    }
}

impl Add for PhaseBytes {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sum for PhaseBytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;

    #[test]
    fn phases_and_directions_are_told_apart() {
        let meter = Meter::new();
        meter.sent(1000);
        for (name, up, down) in [("offline", 1, 20), ("online", 300, 4000)] {
            let _phase = meter.phase(name);
            meter.sent(up);
            let _part = meter.phase("part");
            meter.received(down);
        }
        let bytes = PhaseBytes::counted_by_client(&meter.report());
        let wanted = PhaseBytes {
            offline_up: 1,
            offline_down: 20,
            online_up: 300,
            online_down: 4000,
        };
        assert_eq!(bytes, wanted);
        assert_eq!((bytes.offline(), bytes.online()), (21, 4300));
        let twice: PhaseBytes = [bytes, bytes].into_iter().sum();
        assert_eq!(twice.total(), 2 * 4321);
        assert_eq!(twice.online_down, 8000);
    }
}
