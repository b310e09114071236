//! Ways to compute the same: where encoders may differ in their steps and scales.
//!
//! [`crate::encoder`] and [`crate::assign`] do what is common to all of them, and ask a [`Design`]
//! for the rest. The product has one, [`LookedUp`], which [`Plan::new`] takes. The
//! paper's schemes have others, in a crate of their own.

use crate::assign::{AssignError, Assigner, Weights};
use crate::encoder::Builder;
use crate::function::Function;
use crate::graph::{Op, StopFunction, ValueId, WeightId, WeightKind};
use crate::plan::{Plan, PlanError};
use crate::role::LinearMap;
use crate::scales::{ACTIVATION_BITS, Scale, WeightScale};
use primer_ring::fixed::Format;

/// A stop whose function a design chooses: the index of its step, what it reads and leaves.
#[derive(Debug, Clone, Copy)]
pub struct StopAt {
    /// The index of its step.
    pub index: usize,
    /// Which function the graph has there.
    pub function: StopFunction,
    /// The accumulator that it reads.
    pub input: ValueId,
    /// The fixed value that it leaves.
    pub output: ValueId,
}

/// How an encoder is computed.
pub trait Design: Sync {
    /// Adds the embedding table, and the positions if they are a weight of their own.
    fn table(&self, graph: &mut Builder) -> (WeightId, Option<WeightId>);

    /// Adds the scores and the values of a layer that reads `x`.
    fn scores(&self, graph: &mut Builder, x: ValueId) -> (ValueId, ValueId);

    /// Adds the probabilities that softmax makes of scores.
    fn probabilities(&self, graph: &mut Builder, scores: ValueId) -> ValueId;

    /// Returns the bits of a requantised value before it gets room.
    fn value_bits(&self) -> u32;

    /// Returns the format of the requantised value `output`, which needs `format`.
    fn requantised(&self, scales: &Assigner<'_>, output: ValueId, format: Format) -> Format;

    /// Returns the fractional bits of a sum of squares.
    fn squares_fraction(&self, scales: &Assigner<'_>, squares: ValueId) -> i32;

    /// Gives a stop of softmax, or a layer's activation, its function; returns the scale of what it
    /// leaves.
    ///
    /// # Errors
    /// [`AssignError`] if the model's ranges do not fit.
    fn function(&self, scales: &mut Assigner<'_>, stop: StopAt) -> Result<Scale, AssignError>;

    /// Returns the scales of all weights.
    fn weights(&self, weights: &Weights<'_>) -> Vec<WeightScale>;

    /// Checks what this design needs of a step of a plan, beyond what every plan needs.
    ///
    /// # Errors
    /// [`PlanError`] naming what does not fit.
    fn check(&self, plan: &Plan, index: usize) -> Result<(), PlanError>;
}

/// The design of the product: functions of short indices are looked up, and weights are multiplied
/// by hints, whose products err a little.
#[derive(Debug, Clone, Copy)]
pub struct LookedUp;

/// Fractional bits that a requantised value has beyond those of [`ACTIVATION_BITS`].
const FINER: u32 = 3;

impl Design for LookedUp {
    fn table(&self, graph: &mut Builder) -> (WeightId, Option<WeightId>) {
        let shape = graph.shape();
        let (rows, width) = (shape.one_hot() + shape.positions, shape.embedding);
        let table = graph.weight(LinearMap::Embedding, WeightKind::Dense, rows, width);
        (table, None)
    }

    fn scores(&self, graph: &mut Builder, x: ValueId) -> (ValueId, ValueId) {
        graph.projected_scores(x)
    }

    fn probabilities(&self, graph: &mut Builder, scores: ValueId) -> ValueId {
        graph.looked_up_softmax(scores)
    }

    fn value_bits(&self) -> u32 {
        ACTIVATION_BITS + FINER
    }

    fn requantised(&self, scales: &Assigner<'_>, output: ValueId, format: Format) -> Format {
        let sum = scales.graph().accumulator_of(output);
        let format = scales.roomy(sum, format, FINER);
        match scales.graph().outputs.contains(&output) {
            true => scales.no_finer_than_products(sum, format),
            false => format,
        }
    }

    fn squares_fraction(&self, scales: &Assigner<'_>, squares: ValueId) -> i32 {
        scales.squares_with_room(squares)
    }

    fn function(&self, scales: &mut Assigner<'_>, stop: StopAt) -> Result<Scale, AssignError> {
        let StopAt {
            index,
            input,
            output,
            ..
        } = stop;
        match stop.function {
            StopFunction::Activation => scales.sorted(index, (input, output)),
            StopFunction::CoarseMaximum => scales.references(index, input),
            StopFunction::Power => Ok(scales.power(index, input)),
            StopFunction::Reciprocal => Ok(scales.reciprocal(index, input)),
            other => unreachable!("{} is no stop of this design", other.name()),
        }
    }

    fn weights(&self, weights: &Weights<'_>) -> Vec<WeightScale> {
        weights.hinted()
    }

    fn check(&self, plan: &Plan, index: usize) -> Result<(), PlanError> {
        let step = &plan.graph().steps[index];
        match &step.op {
            Op::Embed { table, output, .. } => plan.check_one_hot(*table, *output),
            Op::Linear { terms, output, .. } => plan.check_diagonals(terms, *output),
            Op::Stop {
                function: StopFunction::Requantise,
                input,
                output,
            } => plan.check_output(*input, *output),
            Op::Stop {
                function: StopFunction::Activation,
                output,
                ..
            } => match plan.function(index) {
                Some(Function::Sorted(_)) => Ok(()),
                _ => Err(plan.conflict(*output, "the stop has another function")),
            },
            _ => Ok(()),
        }
    }
}
