//! Methods: which parameters, and how matrices lie in ciphertexts.

use super::packer::Packer;
use super::slotted::SlotPacker;
use super::split::SplitPacker;
use super::subring::SubringPacker;
use crate::params::Params;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// How products are computed: what a scheme's recipe names. Cheap to copy.
#[derive(Clone)]
pub struct Method {
    params: Arc<Params>,
    packing: Packing,
}

/// How matrices lie in ciphertexts. A packing is a variant here and a [`Packer`] in a file of its
/// own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Packing {
    /// A ciphertext holds some features of all tokens.
    TokensFirst,
    /// A ciphertext holds one token of a model of so many features.
    FeaturesFirst { width: usize },
    /// Weights in a subring, for weights of some size: no rotations.
    Subring { size: WeightSize },
    /// Products of two secrets, in slots of a subring or of the ring: answers are split.
    Split,
}

/// How large weights may be. It is public: noise is bounded, and flooded, for all weights of this
/// size, and others are refused when they are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WeightSize {
    /// Columns have this length at most, as the root of the mean of their squares: a column is all
    /// weights of one output, and its length the root of the sum of their squares.
    Columns(u64),
    /// Any residues modulo p.
    Residues,
}

/// Primes of a modulus for a model's weights without rotations: the more, the larger the weights
/// that are hidden through a client's life, and the more bytes a query has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primes {
    /// For BERT-base, columns of some 2^13.
    Four,
    /// Larger ones.
    Five,
}

impl Primes {
    /// How many there are.
    pub const fn count(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Five => 5,
        }
    }
}

/// Primes for products of two secrets. With four, BERT-base would have a wrong share once in 600
/// inferences of 30 tokens.
const SPLIT_PRIMES: usize = 5;

/// The sets without rotations, whose tables are made once.
fn without_rotations(primes: usize) -> Arc<Params> {
    static SETS: LazyLock<[Arc<Params>; 2]> = LazyLock::new(|| {
        let set = |primes| Params::without_rotations(8192, primes);
        [4, 5].map(|primes| set(primes).expect("the set is within the table"))
    });
    SETS[primes - 4].clone()
}

/// Four primes hide columns of this length through the life of a client of BERT-base.
const NARROW: u64 = 1 << 14;

impl Method {
    /// One ciphertext for some features of all tokens, with [`Params::products`]: few ciphertexts,
    /// few rotations.
    pub fn tokens_first() -> Self {
        Self {
            params: Params::products(),
            packing: Packing::TokensFirst,
        }
    }

    /// One ciphertext for each token of a model of `width` features, with [`Params::products`]: the
    /// paper's starting point.
    pub fn features_first(width: usize) -> Self {
        Self {
            params: Params::products(),
            packing: Packing::FeaturesFirst { width },
        }
    }

    /// Weights in a subring and no rotations, with four primes for columns of up to 2^14 and five
    /// beyond: no keys but a public one, and products as matrix products modulo small primes. For
    /// products with a model's weights.
    pub fn subring(size: WeightSize) -> Self {
        let primes = match size {
            WeightSize::Columns(..=NARROW) => Primes::Four,
            WeightSize::Columns(_) | WeightSize::Residues => Primes::Five,
        };
        Self::subring_of(primes, size)
    }

    /// The same with a number of primes; [`super::check_lifetime`] says whether it is enough.
    pub fn subring_of(primes: Primes, size: WeightSize) -> Self {
        Self {
            params: without_rotations(primes.count()),
            packing: Packing::Subring { size },
        }
    }

    /// Products of two secrets, without rotations and with five primes: each party keeps a half of
    /// the answer and rounds it to a share ([`super::Product::split`]).
    pub fn split() -> Self {
        Self {
            params: without_rotations(SPLIT_PRIMES),
            packing: Packing::Split,
        }
    }

    /// The same packing with other parameters.
    #[must_use]
    pub fn with_params(self, params: Arc<Params>) -> Self {
        Self { params, ..self }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Whether a value is a slot, and answers hide as much as they hide then.
    pub(super) fn is_slotted(&self) -> bool {
        !matches!(self.packing, Packing::Subring { .. } | Packing::Split)
    }

    /// Whether each party keeps a half of an answer.
    pub(super) fn is_split(&self) -> bool {
        self.packing == Packing::Split
    }

    /// What knows the packing.
    pub(super) fn packer(&self) -> Box<dyn Packer> {
        match self.packing {
            Packing::TokensFirst => Box::new(SlotPacker::TokensFirst),
            Packing::FeaturesFirst { width } => Box::new(SlotPacker::FeaturesFirst { width }),
            Packing::Subring { size } => Box::new(SubringPacker { size }),
            Packing::Split => Box::new(SplitPacker),
        }
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.packing == other.packing && self.params.fingerprint() == other.params.fingerprint()
    }
}

impl Eq for Method {}

impl Hash for Method {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.packing.hash(state);
        self.params.fingerprint().hash(state);
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (degree, primes) = (self.params.degree(), self.params.data_primes());
        write!(f, "{:?} at degree {degree}, {primes} primes", self.packing)
    }
}
