//! What each step of a plan is to the protocols: linear, local, a product of two secrets, or a stop.

use crate::error::{ProtocolError, Result};
use crate::hgs::Linear;
use crate::local::Local;
use crate::scheme::{Recipe, Reveal, Scheme};
use crate::secrets::SecretProduct;
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_plan::shape::Head;
use primer_stops::means::Wanted;
use primer_stops::{StopBuilder, Task, TwoPartyStop};
use std::sync::Arc;

/// A step, ready to be run.
pub(crate) enum Work {
    /// Products with the server's weights.
    Linear(Linear),
    /// A public map of shares.
    Local(Local),
    /// A product of two secrets.
    Product(SecretProduct),
    /// An accumulator becomes a value.
    Stop(StopWork),
}

/// A stop and the value that goes into it.
pub(crate) struct StopWork {
    pub(crate) input: ValueId,
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
    /// What the bundles keep of the step.
    pub(crate) fn kept(&self, graph: &Graph, step: &Step) -> Kept {
        match self {
            Self::Product(product) => product.kept(graph, step.output()),
            Self::Linear(_) | Self::Local(_) | Self::Stop(_) => Kept::default(),
        }
    }

    /// The stop, if it is one.
    pub(crate) fn stop(&self) -> Option<&StopWork> {
        match self {
            Self::Stop(work) => Some(work),
            Self::Linear(_) | Self::Local(_) | Self::Product(_) => None,
        }
    }

    /// Whether the parties speak with each other for it, online.
    pub(crate) fn speaks(&self) -> bool {
        match self {
            Self::Linear(_) | Self::Local(_) => false,
            Self::Product(_) | Self::Stop(_) => true,
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
            stops: StopBuilder::over(scheme.recipe().transfers),
        }
    }

    pub(crate) fn steps(mut self) -> Result<Vec<Work>> {
        let graph = self.plan.graph();
        if self.reveal == Reveal::Label && !matches!(graph.shape.head, Head::Classify { .. }) {
            return Err(ProtocolError::NoLabel);
        }
        (0..graph.steps.len())
            .map(|index| self.step(index))
            .collect()
    }

    fn step(&mut self, index: usize) -> Result<Work> {
        let (plan, recipe) = (self.plan, &self.recipe);
        let step = &plan.graph().steps[index];
        let linear = || Linear::of(plan, recipe, step).map(Work::Linear);
        let local = || Local::of(plan, step).map(Work::Local);
        let product = || SecretProduct::of(plan, recipe, step).map(Work::Product);
        match linear().or_else(local).or_else(product) {
            Some(work) => Ok(work),
            None => Ok(Work::Stop(self.stop(index)?)),
        }
    }

    fn stop(&mut self, index: usize) -> Result<StopWork> {
        let plan = self.plan;
        let Op::Stop {
            function,
            input,
            output,
        } = plan.graph().steps[index].op
        else {
            unreachable!("a step is linear, local, a product or a stop");
        };
        let shown = plan.graph().outputs.contains(&output);
        let (means, result) = match plan.function(index) {
            Some(function_of) => (self.recipe.means(function), Wanted::Function(function_of)),
            // The label is a function of the outputs, which nobody gets to see.
            None if shown && self.reveal == Reveal::Label => {
                (self.recipe.functions, Wanted::Position)
            }
            None => (self.recipe.means(function), Wanted::Same),
        };
        let value = plan.graph().value(input);
        let task = Task {
            result,
            ring_bits: plan.truncation(input).ring_bits(),
            rows: value.rows,
            cols: value.cols,
        };
        let stop = self.stops.stop(means, &task)?;
        Ok(StopWork { input, stop })
    }
}
