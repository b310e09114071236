//! A bundle's seed, and everything that is drawn from it.
//!
//! Most of what a party draws for an inference can be drawn again, so a bundle keeps a seed
//! instead: the client's masks of its input, of every product and of every stop's result; the
//! server's masks of its homomorphic answers and those that it opens its shares with. Each use has
//! its own generator, so the order of drawing does not matter, and no two uses share randomness. A
//! peer sees what masks hide, so it has stretches of many generators of many bundles: seeds have 32
//! bytes ([`primer_ring::prg`]).

use primer_engine::share::Share;
use primer_plan::graph::ValueId;
use primer_ring::prg::{Prg, SecretSeed};
use zeroize::{Zeroize, Zeroizing};

/// What a matrix of residues is drawn for.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    /// The client's share of the one-hot rows.
    Input,
    /// The client's share of the padding.
    Padding,
    /// A value: the client's share of it, or what the server opens its own share with.
    Value(ValueId),
    /// What the server opens its share of a first product with, where a step has two: of which
    /// step.
    Image { step: usize },
    /// The server's mask of a homomorphic answer: of which step, and which of its answers.
    Answer { step: usize, part: usize },
}

impl Use {
    /// Returns a number that is different for different uses.
    fn index(self) -> u128 {
        let (kind, number): (u64, u64) = match self {
            Self::Input => (0, 0),
            Self::Padding => (0, 1),
            Self::Value(id) => (1, id.index() as u64),
            Self::Image { step } => (u64::MAX, step as u64),
            Self::Answer { step, part } => (2 + part as u64, step as u64),
        };
        u128::from(kind) << 64 | u128::from(number)
    }
}

/// The seed of one bundle of one party.
pub(crate) struct Seeds(Zeroizing<SecretSeed>);

impl Seeds {
    pub(crate) fn new(seed: SecretSeed) -> Self {
        Self(Zeroizing::new(seed))
    }

    /// Returns the seed, to be stored.
    pub(crate) fn bytes(&self) -> &SecretSeed {
        &self.0
    }

    /// Makes the generator of an index: blake3 under the seed, as a pseudorandom function.
    fn generator(&self, index: u128) -> Prg {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&index.to_le_bytes());
        let seed = Zeroizing::new(*hasher.finalize().as_bytes());
        hasher.zeroize();
        Prg::secret(&seed)
    }

    /// Returns the uniform residues of a use, always the same.
    pub(crate) fn share(&self, what: Use, rows: usize, cols: usize) -> Share {
        Share::random(rows, cols, &mut self.generator(what.index()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;
    use primer_paper_plan::Form;
    use std::collections::HashSet;

    #[test]
    fn uses_are_independent_and_repeatable() {
        let graph = Form::Separate.graph(&bert_shape(2, 16, 2), 4);
        let mut uses = vec![Use::Input, Use::Padding];
        uses.extend(graph.value_ids().map(Use::Value));
        for step in 0..graph.steps.len() {
            uses.extend((0..4).map(|part| Use::Answer { step, part }));
            uses.push(Use::Image { step });
        }
        let draw = |seed, what| Seeds::new([seed; 32]).share(what, 1, 2).data().to_vec();
        let distinct: HashSet<Vec<u64>> = uses.iter().map(|what| draw(1, *what)).collect();
        assert_eq!(distinct.len(), uses.len());
        assert_eq!(draw(1, uses[9]), draw(1, uses[9]));
        assert_ne!(draw(1, uses[9]), draw(2, uses[9]));
    }
}
