//! The clock of a phase.

use crate::times::Times;
use primer_plan::graph::Step;
use std::time::Instant;

/// A clock that runs through a phase without a gap: what passes between two laps, reading a bundle
/// and waiting for the other party included, belongs to the step that the second lap names.
pub(crate) struct Clock {
    times: Times,
    since: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            times: Times::default(),
            since: Instant::now(),
        }
    }

    /// Gives a step the time since the last lap.
    pub(crate) fn lap(&mut self, step: &Step) {
        self.times.add(step, self.since);
        self.since = Instant::now();
    }

    /// What the laps have found.
    pub(crate) fn times(self) -> Times {
        self.times
    }
}
