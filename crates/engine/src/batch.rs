//! The homomorphic exchanges of a program, for one bundle or for several that are prepared
//! together.
//!
//! A product costs ciphertexts, and a ciphertext has room for thousands of values: a bundle of few
//! tokens leaves most of it empty. So the tokens of several bundles lie side by side in one
//! product. Bundles share nothing else, but that is something: one ciphertext hides values of
//! several bundles by one fresh secret (`docs/protocol/strangers.md`, section 4, counts their
//! answers together). Each has a seed of its own, from which its masks are drawn as if it were
//! prepared alone; each is written, kept and spent on its own, and one that is lost does not
//! concern its neighbours.

use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::flow::Planned;
use crate::program::MAX_MATRIX;
use crate::secrets;
use primer_plan::plan::Plan;
use primer_plan::shape::MAX_POSITIONS;
use primer_rlwe::product::{Product, check_odds};
use std::ops::Range;

/// The most bundles that are prepared together: with their tokens, what bounds the memory of both
/// parties.
pub const MOST_BUNDLES: usize = 32;
/// Tokens of all bundles that are prepared together.
pub const TOKENS_TOGETHER: usize = 256;

/// Returns how many bundles of a padded length are best prepared in one go when `wanted` are: as
/// many as fill [`TOKENS_TOGETHER`], which is what one message about a value serves. Of a very
/// large vocabulary fewer: the masks of all their one-hot rows, with columns for `one_hot` words
/// and types and for any number of positions, are computed together.
pub fn bundles_together((tokens, one_hot): (usize, usize), wanted: usize) -> usize {
    let rows = TOKENS_TOGETHER.min(MAX_MATRIX as usize / (one_hot + MAX_POSITIONS));
    let together = (rows / tokens.max(1)).min(MOST_BUNDLES);
    wanted.min(together).max(1)
}

/// The exchanges of a whole program.
pub(crate) struct Exchanges {
    by_step: Vec<Vec<Exchange>>,
}

impl Exchanges {
    /// Lists those that prepare some bundles together.
    pub(crate) fn new(plan: &Plan, compiled: &[CompiledStep], bundles: usize) -> Result<Self> {
        let graph = plan.graph();
        let of = |compiled: &CompiledStep| match compiled {
            CompiledStep::Product(compiled) => secrets::exchanges(graph, compiled.factors, bundles),
            CompiledStep::Linear(_)
            | CompiledStep::Local(_)
            | CompiledStep::Stop(_)
            | CompiledStep::Joined
            | CompiledStep::Nothing => Ok(Vec::new()),
        };
        let by_step = compiled.iter().map(of).collect::<Result<_>>()?;
        let this = Self { by_step };
        check_odds(this.products())?;
        Ok(this)
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
