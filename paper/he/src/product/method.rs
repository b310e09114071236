//! Methods: which parameters, and how matrices lie in ciphertexts.

use super::slotted::SlotPacker;
use crate::params::{self, Params};
use std::fmt;
use std::sync::Arc;

/// How products are computed: what a scheme's recipe names. Cheap to copy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Method {
    params: Arc<Params>,
    pub(super) packer: SlotPacker,
}

impl Method {
    /// Takes one ciphertext for some features of all tokens, with [`params::products`]: few
    /// ciphertexts, few rotations.
    pub fn tokens_first() -> Self {
        Self {
            params: params::products(),
            packer: SlotPacker::TokensFirst,
        }
    }

    /// Takes one ciphertext for each token of a model of `width` features, with
    /// [`params::products`]: the paper's starting point.
    pub fn features_first(width: usize) -> Self {
        Self {
            params: params::products(),
            packer: SlotPacker::FeaturesFirst { width },
        }
    }

    /// Packs in the same way with other parameters, of [`params::rotating`].
    #[must_use]
    pub fn with_params(self, params: Arc<Params>) -> Self {
        Self { params, ..self }
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.packer, self.params)
    }
}
