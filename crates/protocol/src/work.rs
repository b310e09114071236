//! What each step of a plan is to the protocols: linear, local, a product of two secrets, or a
//! stop.

use crate::error::{ProtocolError, Result};
use crate::fhgs::{self, Factors};
use crate::linear::{self, Linear};
use crate::local::Local;
use crate::scheme::{self, Recipe, Reveal, Scheme};
use crate::secrets::SecretProduct;
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
    pub(crate) product: SecretProduct,
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
    /// What the bundles keep of the step; `masked` tells whether the client's mask of a value is
    /// more than its seed.
    pub(crate) fn kept(
        &self,
        plan: &Plan,
        step: &Step,
        masked: impl FnOnce(ValueId) -> bool,
    ) -> Kept {
        let mut kept = match self {
            Self::Product(work) => work.product.kept(plan.graph(), step.output()),
            Self::Linear(linear) if linear.by == scheme::Linear::Hints => Kept {
                client: vec![],
                server: vec![linear::size(plan, step.output())],
            },
            Self::Linear(_) | Self::Local(_) | Self::Stop(_) | Self::Joined | Self::Nothing => {
                Kept::default()
            }
        };
        if let Some(output) = self.stop().map(|work| work.output)
            && masked(output)
        {
            kept.client.push(linear::size(plan, output));
        }
        kept
    }

    /// The stop, if it is one or ends in one.
    pub(crate) fn stop(&self) -> Option<&StopWork> {
        match self {
            Self::Stop(work) => Some(work),
            Self::Product(work) => work.stop.as_ref(),
            Self::Linear(_) | Self::Local(_) | Self::Joined | Self::Nothing => None,
        }
    }

    /// What the server waits for, online: the value that a step makes, or the one that it ends in;
    /// none if both parties have it without an answer.
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
        let Self::Product(ProductWork { product, stop }) = self else {
            return false;
        };
        stop.is_none()
            && product
                .factors()
                .is_some_and(|factors| !factors.opens().is_empty())
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
            stops: StopBuilder::over(scheme.recipe().transfers),
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
        let (plan, recipe) = (self.plan, &self.recipe);
        let step = &plan.graph().steps[index];
        let linear = || Linear::of(plan, recipe.linear, step).map(Work::Linear);
        let local = || Local::of(plan, step).map(Work::Local);
        if let Some(work) = linear().or_else(local) {
            return Ok(work);
        }
        if let Some(product) = SecretProduct::of(plan, recipe, step) {
            let stop = match self.ends_in(index) {
                Some(means) => Some(self.stop(index + 1, Some(means))?),
                None => None,
            };
            return Ok(Work::Product(ProductWork { product, stop }));
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
    /// if the recipe has some for the next step, and that is the only one that reads the product.
    fn ends_in(&self, index: usize) -> Option<Means> {
        let plan = self.plan;
        let steps = &plan.graph().steps;
        let (step, next) = (&steps[index], steps.get(index + 1)?);
        Factors::of(plan.graph(), &self.recipe, step)?;
        let Op::Stop {
            function,
            input,
            output,
        } = next.op
        else {
            return None;
        };
        let means = self.recipe.after_products(function)?;
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

    /// Whether a label is revealed instead of this value.
    fn shows_label(&self, output: ValueId) -> bool {
        self.reveal == Reveal::Label && self.plan.graph().outputs.contains(&output)
    }

    /// The stop of a step, by means of its own or by those that the recipe has for its function.
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
        let usual = match fhgs::is_lifted(plan.graph(), &self.recipe, output) {
            true => self.recipe.requantise_rows,
            false => self.recipe.means(function),
        };
        let (usual, result) = match plan.function(index) {
            Some(function) => (usual, Wanted::Function(function)),
            // The label is a function of the outputs, which nobody gets to see.
            None if self.shows_label(output) => (Means::Garbling, Wanted::Position),
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
