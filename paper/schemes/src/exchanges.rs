//! The homomorphic exchanges of a program.

use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::flow::Planned;
use crate::hgs;
use crate::scheme::Recipe;
use primer_paper_he::product::Product;
use primer_plan::graph::Step;
use primer_plan::plan::Plan;
use std::ops::Range;

/// The exchanges of a whole program.
pub(crate) struct Exchanges {
    by_step: Vec<Vec<Exchange>>,
}

impl Exchanges {
    /// Lists those that prepare a bundle.
    pub(crate) fn new(plan: &Plan, recipe: &Recipe, compiled: &[CompiledStep]) -> Result<Self> {
        let graph = plan.graph();
        let of = |(work, step): (&CompiledStep, &Step)| match work {
            CompiledStep::Linear(linear) => hgs::exchanges(graph, recipe, (linear, step.output())),
            CompiledStep::Product(product) => product.exchanges(graph, recipe),
            CompiledStep::Kept | CompiledStep::Stop(_) => Ok(Vec::new()),
        };
        let by_step = compiled.iter().zip(&graph.steps).map(of);
        Ok(Self {
            by_step: by_step.collect::<Result<_>>()?,
        })
    }

    /// Returns all products.
    pub(crate) fn products(&self) -> impl Iterator<Item = &Product> {
        let all = self.by_step.iter().flatten();
        all.map(|exchange| &exchange.product)
    }

    /// Returns those that prepare a step.
    pub(crate) fn of_step(&self, index: usize) -> &[Exchange] {
        &self.by_step[index]
    }

    /// Returns those of some steps, in order.
    pub(crate) fn of(&self, steps: &Range<usize>) -> impl Iterator<Item = Planned<'_>> {
        steps.clone().flat_map(|index| {
            let parts = &self.by_step[index];
            let each = parts.iter().enumerate();
            each.map(move |(part, exchange)| Planned {
                index,
                part,
                exchange,
                last: part + 1 == parts.len(),
            })
        })
    }
}
