//! What each step of a plan is to the protocols: linear, local, a product of two secrets, or a
//! stop.

use crate::error::{ProtocolError, Result};
use crate::linear::{self, Linear};
use crate::local::Local;
use crate::means::{self, TRANSFERS};
use crate::reveal::Reveal;
use crate::secrets::{self, Factors};
use primer_plan::function::Function;
use primer_plan::graph::{Op, Step, StopFunction, ValueId};
use primer_plan::plan::Plan;
use primer_stops::means::Wanted;
use primer_stops::{Means, StopBuilder, Task, TwoPartyStop};
use std::sync::Arc;

/// A step, ready to be run.
pub(crate) enum Work {
    /// Products with the server's weights.
    Linear(Linear),
    /// A public map of shares.
    Local(Local),
    /// A product of two secrets.
    Product(ProductWork),
    /// An accumulator becomes a value.
    Stop(StopWork),
    /// Nothing is left to do: the product before it ended in this stop.
    Joined,
    /// Nothing is to be done: a coarse maximum where no head is measured.
    Nothing,
}

/// A product of two secrets, and how it ends.
pub(crate) struct ProductWork {
    pub(crate) factors: Factors,
    /// The stop that takes the parties' shares of it as they are. If there is none, the client
    /// shares the product anew.
    pub(crate) stop: Option<StopWork>,
}

/// A stop, the value that goes into it and the value that it makes.
pub(crate) struct StopWork {
    pub(crate) input: ValueId,
    pub(crate) output: ValueId,
    pub(crate) stop: Arc<dyn TwoPartyStop>,
}

/// Rows and columns.
type Size = (usize, usize);

/// The matrices that the bundles keep of a step, besides what its stop needs.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) client: Vec<Size>,
    pub(crate) server: Vec<Size>,
}

impl Work {
    /// Returns what the bundles keep of the step; `masked` tells whether the client's mask of a
    /// value is more than its seed.
    pub(crate) fn kept(
        &self,
        plan: &Plan,
        step: &Step,
        masked: impl FnOnce(ValueId) -> bool,
    ) -> Kept {
        let mut kept = match self {
            Self::Product(work) => secrets::kept(plan.graph(), work.factors, step.output()),
            Self::Linear(_) => Kept {
                client: vec![],
                server: vec![linear::size(plan, step.output())],
            },
            Self::Local(_) | Self::Stop(_) | Self::Joined | Self::Nothing => Kept::default(),
        };
        if let Some(output) = self.stop().map(|work| work.output)
            && masked(output)
        {
            kept.client.push(linear::size(plan, output));
        }
        kept
    }

    /// Returns the stop, if it is one or ends in one.
    pub(crate) fn stop(&self) -> Option<&StopWork> {
        match self {
            Self::Stop(work) => Some(work),
            Self::Product(work) => work.stop.as_ref(),
            Self::Linear(_) | Self::Local(_) | Self::Joined | Self::Nothing => None,
        }
    }

    /// Returns what the server waits for, online: the value that a step makes, or the one that it
    /// ends in; none if both parties have it without an answer.
    pub(crate) fn asks_for(&self, step: &Step) -> Option<ValueId> {
        match self {
            Self::Linear(_) | Self::Local(_) | Self::Joined | Self::Nothing => None,
            Self::Stop(work) if work.stop.is_lift() => None,
            Self::Product(ProductWork { stop: None, .. }) => Some(step.output()),
            Self::Stop(work)
            | Self::Product(ProductWork {
                stop: Some(work), ..
            }) => Some(work.output),
        }
    }

    /// Tells whether what it asks for is known to the server up to what the client will add.
    pub(crate) fn is_provisional(&self) -> bool {
        matches!(self, Self::Stop(work) if work.stop.is_provisional())
    }

    /// Tells whether it can begin with factors that are provisional: the server's part of its
    /// result is then known at the end, so no stop may want it sooner.
    pub(crate) fn takes_provisional(&self) -> bool {
        matches!(self, Self::Product(ProductWork { stop: None, .. }))
    }
}

/// Turns the steps of a plan into works.
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

    pub(crate) fn steps(mut self) -> Result<Vec<Work>> {
        let graph = self.plan.graph();
        if self.reveal == Reveal::Label && !graph.shape.head.shows_labels() {
            return Err(ProtocolError::NoLabel);
        }
        (0..graph.steps.len())
            .map(|index| self.step(index))
            .collect()
    }

    fn step(&mut self, index: usize) -> Result<Work> {
        let plan = self.plan;
        let step = &plan.graph().steps[index];
        let linear = || Linear::of(plan, step).map(Work::Linear);
        let local = || Local::of(plan, step).map(Work::Local);
        if let Some(work) = linear().or_else(local) {
            return Ok(work);
        }
        if let Some(factors) = Factors::of(plan.graph(), step) {
            let stop = match self.ends_in(index) {
                Some(means) => Some(self.stop(index + 1, Some(means))?),
                None => None,
            };
            return Ok(Work::Product(ProductWork { factors, stop }));
        }
        if index > 0 && self.ends_in(index - 1).is_some() {
            return Ok(Work::Joined);
        }
        if self.measures_nothing(index) {
            return Ok(Work::Nothing);
        }
        Ok(Work::Stop(self.stop(index, None)?))
    }

    /// Returns the means by which a stop takes the product of step `index` in its own round trip:
    /// if there are some for the next step, and that is the only one that reads the product.
    fn ends_in(&self, index: usize) -> Option<Means> {
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
        let means = means::after_products(function)?;
        let alone = |step: &&Step| step.inputs().contains(&input);
        let joined = input == step.output()
            && step.layer == next.layer
            && steps.iter().filter(alone).count() == 1
            && !self.shows_label(output);
        joined.then_some(means)
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

    /// Makes the stop of a step, by means of its own or by the usual ones for its function.
    fn stop(&mut self, index: usize, means: Option<Means>) -> Result<StopWork> {
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
            true => means::LIFTED,
            false => means::of(function),
        };
        let (usual, result) = match plan.function(index) {
            Some(function) => (usual, Wanted::Function(function)),
            // The label is a function of the outputs, which neither party gets to see.
            None if self.shows_label(output) => (means::LABEL, Wanted::Position),
            None => (usual, Wanted::Same),
        };
        let value = plan.graph().value(input);
        let rows = match result {
            Wanted::Function(Function::CoarseMaximum(_)) => {
                plan.measured_heads(input).len() * plan.graph().tokens
            }
            _ => value.rows,
        };
        let task = Task {
            result,
            ring_bits: plan.truncation(input).ring_bits(),
            rows,
            cols: value.cols,
        };
        let stop = self.stops.stop(means.unwrap_or(usual), &task)?;
        Ok(StopWork {
            input,
            output,
            stop,
        })
    }
}
