//! The clock of a phase.

use crate::times::Times;
use primer_plan::graph::Step;
use primer_wire::clock::now;
use primer_wire::{Channel, Recorder};
use std::time::Duration;

/// A clock that runs through a phase without a gap: what passes between two laps, reading a bundle
/// and waiting for the other party included, belongs to the step that the second lap names.
///
/// If the channel keeps a record, the laps are in it, under the numbers of the values that the
/// steps make.
pub struct Clock {
    times: Times,
    since: Duration,
    recorder: Recorder,
    recorded: Option<Duration>,
}

impl Clock {
    /// Starts one for what passes on a channel.
    pub fn start(channel: &Channel) -> Self {
        let recorder = channel.recorder().clone();
        Self {
            times: Times::default(),
            since: now(),
            recorded: recorder.begin(),
            recorder,
        }
    }

    /// Gives a step the time since the last lap.
    pub fn lap(&mut self, step: &Step) {
        let now = now();
        self.times.add(step, now - self.since);
        self.since = now;
        let number = step.output().index() as u32;
        self.recorded = self.recorder.step(number, self.recorded);
    }

    /// Returns what the laps have found.
    pub fn times(self) -> Times {
        self.times
    }
}
