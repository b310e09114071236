//! A bundle's seed, and everything that is drawn from it.
//!
//! Most of what a party draws for an inference can be drawn again, so a bundle keeps a seed
//! instead: the client's masks of its input, of products and of the results of stops; those that
//! the server opens its shares with. Each use has its own generator, so the order of drawing does
//! not matter, and no two uses share randomness. A peer sees what masks hide, so it has stretches
//! of many generators of many bundles: seeds have 32 bytes ([`primer_ring::prg`]).

use crate::share::Share;
use primer_plan::graph::ValueId;
use primer_ring::prg::{Prg, SecretSeed};
use primer_ring::wipe::SecretBytes;
use zeroize::{Zeroize, Zeroizing};

/// What a matrix of residues is drawn for.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    /// The client's share of those columns of the one-hot rows that are not sent as bits.
    Input,
    /// What the client's bits of the input are padded with.
    Strings,
    /// The client's share of the padding, as residues.
    Padding,
    /// The client's share of which tokens count, as bits.
    Counted,
    /// A value: the client's share of it, or what the server opens its own share with.
    Value(ValueId),
}

impl Use {
    /// Returns a number that is different for different uses.
    fn index(self) -> u128 {
        let (kind, number): (u64, u64) = match self {
            Self::Input => (0, 0),
            Self::Padding => (0, 1),
            Self::Strings => (0, 3),
            Self::Counted => (0, 4),
            Self::Value(id) => (1, id.index() as u64),
        };
        u128::from(kind) << 64 | u128::from(number)
    }
}

/// Different from every [`Use::index`].
const SUBSETS: u128 = 2;

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

    /// Returns what the subsets of range flags are drawn with, which the client compares at the
    /// end.
    pub(crate) fn subsets(&self) -> Prg {
        self.generator(SUBSETS)
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

    /// Returns the uniform bytes of a use, always the same.
    pub(crate) fn bytes_for(&self, what: Use, length: usize) -> SecretBytes {
        let mut bytes = SecretBytes::zeros(length);
        self.generator(what.index()).fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;
    use primer_plan::graph::Graph;
    use std::collections::HashSet;

    #[test]
    fn uses_are_independent_and_repeatable() {
        let graph = Graph::new(&bert_shape(2, 16, 2), 4);
        let mut uses = vec![Use::Input, Use::Padding, Use::Strings, Use::Counted];
        uses.extend(graph.value_ids().map(Use::Value));
        let draw = |seed, what| Seeds::new([seed; 32]).share(what, 1, 2).data().to_vec();
        let distinct: HashSet<Vec<u64>> = uses.iter().map(|what| draw(1, *what)).collect();
        assert_eq!(distinct.len(), uses.len());
        assert!(uses.iter().all(|what| what.index() != SUBSETS));
        assert_eq!(draw(1, uses[9]), draw(1, uses[9]));
        assert_ne!(draw(1, uses[9]), draw(2, uses[9]));
    }
}
