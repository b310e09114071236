//! Methods: which parameters, and how matrices lie in ciphertexts.

use super::packer::Packer;
use super::slotted::SlotPacker;
use super::split::SplitPacker;
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
    /// Products of two secrets, in slots of a subring or of the ring: answers are split.
    Split,
}

/// Primes for products of two secrets. With four, BERT-base would have a wrong share once in 600
/// inferences of 30 tokens.
const SPLIT_PRIMES: usize = 5;

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

    /// Products of two secrets, without rotations and with five primes: each party keeps a half of
    /// the answer and rounds it to a share ([`super::Product::split`]).
    pub fn split() -> Self {
        static SET: LazyLock<Arc<Params>> = LazyLock::new(|| {
            let set = Params::without_rotations(8192, SPLIT_PRIMES);
            set.expect("the set is within the table")
        });
        Self {
            params: SET.clone(),
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

    /// Whether each party keeps a half of an answer.
    pub(super) fn is_split(&self) -> bool {
        self.packing == Packing::Split
    }

    /// What knows the packing.
    pub(super) fn packer(&self) -> Box<dyn Packer> {
        match self.packing {
            Packing::TokensFirst => Box::new(SlotPacker::TokensFirst),
            Packing::FeaturesFirst { width } => Box::new(SlotPacker::FeaturesFirst { width }),
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
