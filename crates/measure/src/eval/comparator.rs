//! The seam for engines that compute in the clear what no scheme computes, to be compared with.

use crate::Progress;
use anyhow::Result;
use primer::source::Model;
use primer_model::fixed::OutOfRange;
use primer_text::Input;
use serde_json::{Map, Value};

/// A way to compute answers that is not the protocol's.
pub trait Comparator: Sync {
    /// Returns the name of the engine.
    fn name(&self) -> &'static str;

    /// Says what it is, in a few words.
    fn about(&self) -> &'static str;

    /// Returns its settings, as results have them.
    fn settings(&self) -> Map<String, Value>;

    /// Fits it to a model and the inputs that the model is calibrated with.
    ///
    /// # Errors
    /// If it cannot compute this model.
    fn fit(
        &self,
        model: &Model,
        inputs: &[Input],
        progress: Progress<'_>,
    ) -> Result<Box<dyn Fitted>>;
}

/// A comparator that was fitted to a model.
pub trait Fitted: Sync {
    /// Returns the outputs for an input, and the values that left the ranges it was fitted to.
    fn run(&self, input: &Input) -> (Vec<Vec<f64>>, Vec<OutOfRange>);
}
