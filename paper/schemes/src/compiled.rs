//! What each step of a plan is to the protocols: linear, a product of two secrets, or a stop.

use crate::error::{ProtocolError, Result};
use crate::linear::Linear;
use crate::scheme::{Recipe, Scheme, TRANSFERS, stop_kind};
use crate::secrets::SecretProduct;
use primer_engine::Reveal;
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_stops::kind::StopResult;
use primer_stops::{StopBuilder, StopKind, StopSpec, TwoPartyStop};
use std::sync::Arc;

/// A step, ready to be run.
pub(crate) enum CompiledStep {
    /// Products with the server's weights.
    Linear(Linear),
    /// What is not padding: each party has its share of it.
    Kept,
    /// A product of two secrets, which the client shares anew.
    Product(SecretProduct),
    /// An accumulator becomes a value.
    Stop(CompiledStop),
}

/// A stop, the value that goes into it and the value that it makes.
pub(crate) struct CompiledStop {
    pub(crate) input: ValueId,
    pub(crate) output: ValueId,
    pub(crate) stop: Arc<dyn TwoPartyStop>,
}

/// Rows and columns.
type Size = (usize, usize);

/// The matrices that the bundles keep of a step, besides what its stop needs.
#[derive(Default)]
pub(crate) struct StoredMatrices {
    pub(crate) client: Vec<Size>,
    pub(crate) server: Vec<Size>,
}

impl CompiledStep {
    /// Returns what the bundles keep of the step.
    pub(crate) fn kept(&self, graph: &Graph, step: &Step) -> StoredMatrices {
        match self {
            Self::Product(product) => product.kept(graph, step.output()),
            Self::Linear(_) | Self::Kept | Self::Stop(_) => StoredMatrices::default(),
        }
    }

    /// Returns the stop, if it is one.
    pub(crate) fn stop(&self) -> Option<&CompiledStop> {
        match self {
            Self::Stop(work) => Some(work),
            Self::Linear(_) | Self::Kept | Self::Product(_) => None,
        }
    }

    /// Returns what the server waits for, online: the value that a step makes; none if both parties
    /// have it without an answer.
    pub(crate) fn asks_for(&self, step: &Step) -> Option<ValueId> {
        match self {
            Self::Linear(_) | Self::Kept => None,
            Self::Product(_) | Self::Stop(_) => Some(step.output()),
        }
    }
}

/// Turns the steps of a plan into works by a scheme's recipe.
pub(crate) struct Compiler<'a> {
    plan: &'a Plan,
    recipe: Recipe,
    reveal: Reveal,
    stops: StopBuilder,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(plan: &'a Plan, scheme: Scheme, reveal: Reveal) -> Self {
        Self {
            plan,
            recipe: scheme.recipe(),
            reveal,
            stops: StopBuilder::over(TRANSFERS),
        }
    }

    pub(crate) fn steps(mut self) -> Result<Vec<CompiledStep>> {
        let graph = self.plan.graph();
        if self.reveal == Reveal::Label && !graph.shape.head.shows_labels() {
            return Err(ProtocolError::NoLabel);
        }
        (0..graph.steps.len())
            .map(|index| self.step(index))
            .collect()
    }

    fn step(&mut self, index: usize) -> Result<CompiledStep> {
        let (plan, recipe) = (self.plan, &self.recipe);
        let step = &plan.graph().steps[index];
        if let Some(linear) = Linear::of(plan, step) {
            return Ok(CompiledStep::Linear(linear));
        }
        if let Some(product) = SecretProduct::of(plan, recipe, step) {
            return Ok(CompiledStep::Product(product));
        }
        match step.op {
            Op::Kept { .. } => Ok(CompiledStep::Kept),
            _ => Ok(CompiledStep::Stop(self.stop(index)?)),
        }
    }

    /// Tells whether a label is revealed instead of this value.
    fn shows_label(&self, output: ValueId) -> bool {
        self.reveal == Reveal::Label && self.plan.graph().outputs.contains(&output)
    }

    /// Makes the stop of a step.
    fn stop(&mut self, index: usize) -> Result<CompiledStop> {
        let plan = self.plan;
        let Op::Stop {
            function,
            input,
            output,
        } = plan.graph().steps[index].op
        else {
            unreachable!("plans of these forms have no other steps");
        };
        let usual = stop_kind(function);
        let (kind, result) = match plan.function(index) {
            Some(function) => (usual, StopResult::Function(function)),
            // The label is a function of the outputs, which neither party gets to see.
            None if self.shows_label(output) => (StopKind::Garbling, StopResult::Position),
            None => (usual, StopResult::Same),
        };
        let value = plan.graph().value(input);
        let spec = StopSpec {
            result,
            ring_bits: plan.truncation(input).ring_bits(),
            rows: value.rows,
            cols: value.cols,
        };
        let stop = self.stops.stop(kind, &spec)?;
        Ok(CompiledStop {
            input,
            output,
            stop,
        })
    }
}
