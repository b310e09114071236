//! The homomorphic exchanges of a program, for one bundle or for several that are prepared
//! together.
//!
//! A product costs ciphertexts, and a ciphertext has room for thousands of values: a bundle of few
//! tokens leaves most of it empty. Where the packing allows it ([`Recipe::most_bundles`]), the
//! tokens of several bundles lie side by side in one product. Bundles share nothing else, but that
//! is something: one ciphertext hides values of several bundles by one fresh secret
//! (`docs/protocol/strangers.md`, section 4, counts their answers together). Each has a seed of its
//! own, from which its masks are drawn as if it were prepared alone; each is written, kept and
//! spent on its own, and one that is lost does not concern its neighbours.

use crate::error::Result;
use crate::exchange::Exchange;
use crate::flow::Planned;
use crate::hgs;
use crate::scheme::{Linear, Recipe};
use crate::work::Work;
use primer_he::product::{Product, check_odds};
use primer_plan::plan::Plan;
use std::ops::Range;

/// The exchanges of a whole program.
pub(crate) struct Exchanges {
    by_step: Vec<Vec<Exchange>>,
}

impl Exchanges {
    /// Of some bundles together.
    pub(crate) fn new(
        plan: &Plan,
        recipe: &Recipe,
        works: &[Work],
        bundles: usize,
    ) -> Result<Self> {
        let graph = plan.graph();
        let mut by_step: Vec<Vec<Exchange>> = Vec::with_capacity(works.len());
        for (work, step) in works.iter().zip(&graph.steps) {
            by_step.push(match work {
                Work::Linear(linear) => match linear.by {
                    // No packing of the paper's takes more than one bundle.
                    Linear::Encrypted(packing) => {
                        hgs::exchanges(graph, packing, (linear, step.output()))?
                    }
                    Linear::Hints => Vec::new(),
                },
                Work::Product(work) => work.product.exchanges(graph, recipe, bundles)?,
                Work::Local(_) | Work::Stop(_) | Work::Joined | Work::Nothing => Vec::new(),
            });
        }
        let this = Self { by_step };
        check_odds(this.products())?;
        Ok(this)
    }

    /// All products.
    pub(crate) fn products(&self) -> impl Iterator<Item = &Product> {
        let all = self.by_step.iter().flatten();
        all.map(|exchange| &exchange.product)
    }

    /// Those that prepare a step.
    pub(crate) fn of_step(&self, index: usize) -> &[Exchange] {
        &self.by_step[index]
    }

    /// Those of some steps, in order.
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
