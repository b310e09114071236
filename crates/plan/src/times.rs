//! Seconds by the steps of the paper's table.

use crate::graph::{PaperStep, Step};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that a party spent on each step, including waiting for the other.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// By step, and whether it belongs to a layer.
    spent: BTreeMap<(PaperStep, bool), Duration>,
}

impl Times {
    /// Adds time to a step of a plan.
    pub fn add(&mut self, step: &Step, spent: Duration) {
        self.record(step.paper, step.layer.is_some(), spent);
    }

    /// Adds time to a step, in a layer or outside.
    pub fn record(&mut self, step: PaperStep, in_layers: bool, spent: Duration) {
        *self.spent.entry((step, in_layers)).or_default() += spent;
    }

    /// Returns the seconds of one step.
    pub fn seconds(&self, step: PaperStep) -> f64 {
        self.outside_layers(step) + self.in_layers(step)
    }

    /// Returns the seconds of one step in all layers.
    pub fn in_layers(&self, step: PaperStep) -> f64 {
        self.get(step, true)
    }

    /// Returns the seconds of one step before and after the layers.
    pub fn outside_layers(&self, step: PaperStep) -> f64 {
        self.get(step, false)
    }

    fn get(&self, step: PaperStep, in_layers: bool) -> f64 {
        let spent = self.spent.get(&(step, in_layers));
        spent.map_or(0.0, Duration::as_secs_f64)
    }

    /// Returns the seconds of all steps.
    pub fn total(&self) -> f64 {
        self.spent.values().map(Duration::as_secs_f64).sum()
    }
}
