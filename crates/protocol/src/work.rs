//! What each step of a plan is to the protocols.

use crate::chgs::{self, Merged, Sizes};
use crate::error::{ProtocolError, Result};
use crate::fhgs::{self, Factors};
use crate::hgs::{self, Linear};
use crate::homomorphic::Exchange;
use crate::program::Program;
use crate::scheme::Reveal;
use primer_garble::stop::Stop;
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_plan::shape::Head;
use primer_stops::Job;
use std::sync::Arc;

/// A step, ready to be run.
pub(crate) enum Work {
    /// Products with the server's weights.
    Linear(Linear),
    /// A product of two secrets.
    Product(Factors),
    /// Scores straight from the input of a layer.
    Merged(Merged),
    /// A requantisation of a value: one transfer for each element.
    Requantise(ValueId),
    /// A garbled circuit on a value.
    Garbled(ValueId, Job),
    /// A garbled circuit on a value that tells the client the largest position and nobody anything else.
    Argmax(ValueId, Job),
}

impl Work {
    /// The homomorphic exchanges that prepare the step.
    pub(crate) fn exchanges(&self, program: &Program, step: &Step) -> Result<Vec<Exchange>> {
        match self {
            Self::Linear(linear) => hgs::exchanges(program, linear, step.output()),
            Self::Product(factors) => fhgs::exchanges(program, *factors),
            Self::Merged(merged) => chgs::exchanges(program, *merged),
            Self::Requantise(_) | Self::Garbled(..) | Self::Argmax(..) => Ok(Vec::new()),
        }
    }
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
        let value = graph.value(step.output());
        let result = (value.rows, value.cols);
        match self {
            Self::Product(_) => Kept {
                client: vec![result],
                server: vec![],
            },
            Self::Merged(_) => Kept {
                client: vec![result, Sizes::of(graph).image()],
                server: vec![result],
            },
            Self::Linear(_) | Self::Requantise(_) | Self::Garbled(..) | Self::Argmax(..) => {
                Kept::default()
            }
        }
    }
}

/// Turns the steps of a plan into works; equal circuits are built once.
pub(crate) struct Compiler<'a> {
    plan: &'a Plan,
    reveal: Reveal,
    built: Vec<(&'a Function, usize, Arc<Stop>)>,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(plan: &'a Plan, reveal: Reveal) -> Self {
        Self {
            plan,
            reveal,
            built: Vec::new(),
        }
    }

    pub(crate) fn works(mut self) -> Result<Vec<Work>> {
        let graph = self.plan.graph();
        if self.reveal == Reveal::Label && !matches!(graph.shape.head, Head::Classify { .. }) {
            return Err(ProtocolError::NoLabel);
        }
        (0..graph.steps.len())
            .map(|index| self.work(index))
            .collect()
    }

    fn work(&mut self, index: usize) -> Result<Work> {
        let plan = self.plan;
        let step = &plan.graph().steps[index];
        if let Op::Stop { input, output, .. } = step.op {
            let shown = plan.graph().outputs.contains(&output);
            return match plan.function(index) {
                None if shown && self.reveal == Reveal::Label => self.argmax(input),
                None => Ok(Work::Requantise(input)),
                Some(function) => self.garbled(input, function),
            };
        }
        let merged = || Merged::of(plan, step).map(Work::Merged);
        let linear = || Linear::of(plan, step).map(Work::Linear);
        let work = Factors::of(step).map(Work::Product);
        let work = work.or_else(merged).or_else(linear);
        Ok(work.expect("a step is of one of these kinds"))
    }

    fn argmax(&self, input: ValueId) -> Result<Work> {
        let value = self.plan.graph().value(input);
        let stop = Stop::argmax(self.plan.truncation(input).ring_bits(), value.cols)?;
        Ok(Work::Argmax(
            input,
            Job::new(Arc::new(stop), value.rows as u64)?,
        ))
    }

    /// Rows for softmax, elements for everything else.
    fn garbled(&mut self, input: ValueId, function: &'a Function) -> Result<Work> {
        let value = self.plan.graph().value(input);
        let (row, instances) = match function {
            Function::Softmax(_) => (value.cols, value.rows),
            _ => (1, value.rows * value.cols),
        };
        let known = (self.built.iter()).find(|(f, r, _)| *f == function && *r == row);
        let stop = match known {
            Some((_, _, stop)) => Arc::clone(stop),
            None => {
                let stop = Arc::new(Stop::new(function, row)?);
                self.built.push((function, row, Arc::clone(&stop)));
                stop
            }
        };
        Ok(Work::Garbled(input, Job::new(stop, instances as u64)?))
    }
}
