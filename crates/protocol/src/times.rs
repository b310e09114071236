//! Seconds by the steps of the paper's table.

use primer_plan::graph::PaperStep;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time that a party spent on each step, waiting for the other included.
#[derive(Debug, Clone, Default)]
pub struct Times {
    spent: BTreeMap<PaperStep, Duration>,
}

impl Times {
    pub(crate) fn add(&mut self, step: PaperStep, since: Instant) {
        *self.spent.entry(step).or_default() += since.elapsed();
    }

    /// Seconds of one step.
    pub fn seconds(&self, step: PaperStep) -> f64 {
        self.spent.get(&step).map_or(0.0, Duration::as_secs_f64)
    }

    /// Seconds of all steps.
    pub fn total(&self) -> f64 {
        self.spent.values().map(Duration::as_secs_f64).sum()
    }
}
