//! What each step of a plan is to the protocols: linear, local, a product of two secrets, or a
//! stop.

use crate::error::{ProtocolError, Result};
use crate::linear::{self, Linear};
use crate::local::Local;
use crate::reveal::Reveal;
use crate::secrets::{self, Factors};
use crate::stop_kinds::{self, TRANSFERS};
use primer_plan::function::Function;
use primer_plan::graph::{Op, Step, StopFunction, ValueId};
use primer_plan::plan::Plan;
use primer_stops::kind::StopResult;
use primer_stops::{StopBuilder, StopKind, StopSpec, TwoPartyStop};
use std::sync::Arc;

/// A step, ready to be run.
pub(crate) enum CompiledStep {
    /// Products with the server's weights.
    Linear(Linear),
    /// A public map of shares.
    Local(Local),
    /// A product of two secrets.
    Product(CompiledProduct),
    /// An accumulator becomes a value.
    Stop(CompiledStop),
    /// Nothing is left to do: the product before it ended in this stop.
    Joined,
    /// Nothing is to be done: a coarse maximum where no head is measured.
    Nothing,
}

/// A product of two secrets, and how it ends.
pub(crate) struct CompiledProduct {
    pub(crate) factors: Factors,
    /// The stop that takes the parties' shares of it as they are. If there is none, the client
    /// shares the product anew.
    pub(crate) stop: Option<CompiledStop>,
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
    /// Returns what the bundles keep of the step; `masked` tells whether the client's mask of a
    /// value is more than its seed.
    pub(crate) fn kept(
        &self,
        plan: &Plan,
        step: &Step,
        masked: impl FnOnce(ValueId) -> bool,
    ) -> StoredMatrices {
        let mut kept = match self {
            Self::Product(compiled) => secrets::kept(plan.graph(), compiled.factors, step.output()),
            Self::Linear(_) => StoredMatrices {
                client: vec![],
                server: vec![linear::size(plan, step.output())],
            },
            Self::Local(_) | Self::Stop(_) | Self::Joined | Self::Nothing => {
                StoredMatrices::default()
            }
        };
        if let Some(output) = self.stop().map(|compiled| compiled.output)
            && masked(output)
        {
            kept.client.push(linear::size(plan, output));
        }
        kept
    }

    /// Returns the stop, if it is one or ends in one.
    pub(crate) fn stop(&self) -> Option<&CompiledStop> {
        match self {
            Self::Stop(compiled) => Some(compiled),
            Self::Product(compiled) => compiled.stop.as_ref(),
            Self::Linear(_) | Self::Local(_) | Self::Joined | Self::Nothing => None,
        }
    }

    /// Returns what the server waits for, online: the value that a step makes, or the one that it
    /// ends in; none if both parties have it without an answer.
    pub(crate) fn asks_for(&self, step: &Step) -> Option<ValueId> {
        match self {
            Self::Linear(_) | Self::Local(_) | Self::Joined | Self::Nothing => None,
            Self::Stop(compiled) if compiled.stop.is_lift() => None,
            Self::Product(CompiledProduct { stop: None, .. }) => Some(step.output()),
            Self::Stop(compiled)
            | Self::Product(CompiledProduct {
                stop: Some(compiled),
                ..
            }) => Some(compiled.output),
        }
    }

    /// Tells whether what it asks for is known to the server up to what the client will add.
    pub(crate) fn is_provisional(&self) -> bool {
        matches!(self, Self::Stop(compiled) if compiled.stop.is_provisional())
    }

    /// Tells whether it can begin with factors that are provisional: the server's part of its
    /// result is then known at the end, so no stop may want it sooner.
    pub(crate) fn takes_provisional(&self) -> bool {
        matches!(self, Self::Product(CompiledProduct { stop: None, .. }))
    }
}

/// Compiles the steps of a plan.
pub(crate) struct Compiler<'a> {
    plan: &'a Plan,
    reveal: Reveal,
    stops: StopBuilder,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(plan: &'a Plan, reveal: Reveal) -> Self {
        Self {
            plan,
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
        let plan = self.plan;
        let step = &plan.graph().steps[index];
        let linear = || Linear::of(plan, step).map(CompiledStep::Linear);
        let local = || Local::of(plan, step).map(CompiledStep::Local);
        if let Some(compiled) = linear().or_else(local) {
            return Ok(compiled);
        }
        if let Some(factors) = Factors::of(plan.graph(), step) {
            let stop = match self.ends_in(index) {
                Some(kind) => Some(self.stop(index + 1, Some(kind))?),
                None => None,
            };
            return Ok(CompiledStep::Product(CompiledProduct { factors, stop }));
        }
        if index > 0 && self.ends_in(index - 1).is_some() {
            return Ok(CompiledStep::Joined);
        }
        if self.measures_nothing(index) {
            return Ok(CompiledStep::Nothing);
        }
        Ok(CompiledStep::Stop(self.stop(index, None)?))
    }

    /// Returns the kind of stop that takes the product of step `index` in its own round trip: if
    /// there is one for the next step, and that is the only one that reads the product.
    fn ends_in(&self, index: usize) -> Option<StopKind> {
        let plan = self.plan;
        let steps = &plan.graph().steps;
        let (step, next) = (&steps[index], steps.get(index + 1)?);
        Factors::of(plan.graph(), step)?;
        let Op::Stop {
            function,
            input,
            output,
        } = next.op
        else {
            return None;
        };
        let kind = stop_kinds::after_products(function)?;
        let alone = |step: &&Step| step.inputs().contains(&input);
        let joined = input == step.output()
            && step.layer == next.layer
            && steps.iter().filter(alone).count() == 1
            && !self.shows_label(output);
        joined.then_some(kind)
    }

    /// Tells whether a step is a coarse maximum where no head is measured.
    fn measures_nothing(&self, index: usize) -> bool {
        let function = StopFunction::CoarseMaximum;
        let op = &self.plan.graph().steps[index].op;
        matches!(op, Op::Stop { function: f, .. } if *f == function)
            && self.plan.function(index).is_none()
    }

    /// Tells whether a label is revealed instead of this value.
    fn shows_label(&self, output: ValueId) -> bool {
        self.reveal == Reveal::Label && self.plan.graph().outputs.contains(&output)
    }

    /// Makes the stop of a step, of a given kind or of the usual one for its function.
    fn stop(&mut self, index: usize, kind: Option<StopKind>) -> Result<CompiledStop> {
        let plan = self.plan;
        let Op::Stop {
            function,
            input,
            output,
        } = plan.graph().steps[index].op
        else {
            unreachable!("a step is linear, local, a product or a stop");
        };
        let usual = match secrets::is_lifted(plan.graph(), output) {
            true => stop_kinds::LIFTED,
            false => stop_kinds::of(function),
        };
        let (usual, result) = match plan.function(index) {
            Some(function) => (usual, StopResult::Function(function)),
            // The label is a function of the outputs, which neither party gets to see.
            None if self.shows_label(output) => (stop_kinds::LABEL, StopResult::Position),
            None => (usual, StopResult::Same),
        };
        let value = plan.graph().value(input);
        let rows = match result {
            StopResult::Function(Function::CoarseMaximum(_)) => {
                plan.measured_heads(input).len() * plan.graph().tokens
            }
            _ => value.rows,
        };
        let spec = StopSpec {
            result,
            ring_bits: plan.truncation(input).ring_bits(),
            rows,
            cols: value.cols,
        };
        let stop = self.stops.stop(kind.unwrap_or(usual), &spec)?;
        Ok(CompiledStop {
            input,
            output,
            stop,
        })
    }
}
