//! The choices that a design makes, for both forms.

use crate::{Form, scales};
use primer_plan::assign::{AssignError, Assigner, Weights};
use primer_plan::design::{Design, StopAt};
use primer_plan::encoder::Builder;
use primer_plan::function::Function;
use primer_plan::graph::{Op, StopFunction, ValueId, WeightId, WeightKind};
use primer_plan::plan::{Plan, PlanError};
use primer_plan::role::{LinearMap, ValueRole};
use primer_plan::scales::{ACTIVATION_BITS, Scale, WeightScale};
use primer_ring::fixed::Format;

impl Design for Form {
    fn table(&self, graph: &mut Builder) -> (WeightId, Option<WeightId>) {
        let (map, shape) = (LinearMap::Embedding, graph.shape());
        let (rows, positions, width) = (shape.one_hot(), shape.positions, shape.embedding);
        let table = graph.weight(map, WeightKind::Dense, rows, width);
        let positions = graph.weight(map, WeightKind::Bias, positions, width);
        (table, Some(positions))
    }

    fn scores(&self, graph: &mut Builder, x: ValueId) -> (ValueId, ValueId) {
        match self {
            Self::Separate => graph.projected_scores(x),
            Self::Merged => merged_scores(graph, x),
        }
    }

    fn probabilities(&self, graph: &mut Builder, scores: ValueId) -> ValueId {
        let (role, softmax) = (ValueRole::Probabilities, StopFunction::Softmax);
        graph.stop("probabilities", role, softmax, scores)
    }

    fn value_bits(&self) -> u32 {
        ACTIVATION_BITS
    }

    /// Returns the format that is needed: there is no room.
    fn requantised(&self, _: &Assigner<'_>, _: ValueId, format: Format) -> Format {
        format
    }

    /// Returns as many as the range allows. Separate plans are garbled whole by a comparator, which
    /// would pay for room in gates.
    fn squares_fraction(&self, scales: &Assigner<'_>, squares: ValueId) -> i32 {
        match self {
            Self::Separate => scales.squares_with_margin(squares),
            Self::Merged => scales.squares_with_room(squares),
        }
    }

    fn function(&self, scales: &mut Assigner<'_>, stop: StopAt) -> Result<Scale, AssignError> {
        match stop.function {
            StopFunction::Softmax => scales::softmax(scales, stop.index, stop.input),
            StopFunction::Activation => {
                let activation = scales.graph().shape.activation;
                scales.activation(stop.index, stop.input, activation)
            }
            other => unreachable!("{} is no stop of these graphs", other.name()),
        }
    }

    fn weights(&self, weights: &Weights<'_>) -> Vec<WeightScale> {
        scales::of_weights(weights)
    }

    /// Checks that activations are circuits.
    fn check(&self, plan: &Plan, index: usize) -> Result<(), PlanError> {
        match (&plan.graph().steps[index].op, plan.function(index)) {
            (Op::Stop { output, .. }, Some(Function::Sorted(_))) => {
                Err(plan.conflict(*output, "the stop has another function"))
            }
            _ => Ok(()),
        }
    }
}

/// Adds the scores and the values, without queries and keys.
fn merged_scores(graph: &mut Builder, x: ValueId) -> (ValueId, ValueId) {
    let value = graph.projection(LinearMap::Value, ValueRole::Value, x);
    let (hidden, heads) = (graph.shape().hidden, graph.shape().heads);
    let output = graph.scores();
    let map = LinearMap::Scores;
    let weight = graph.weight(map, WeightKind::Dense, hidden, heads * hidden);
    let bias = graph.weight(map, WeightKind::Bias, 1, heads * hidden);
    graph.push(Op::MergedScores {
        input: x,
        weight,
        bias,
        output,
    });
    (output, value)
}
