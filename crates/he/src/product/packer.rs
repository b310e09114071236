//! The seam between products and packings: what a packing has to provide.
//!
//! A packing is a way of laying matrices into ciphertexts so that ciphertexts times plaintexts are
//! products of matrices. Everything above this file (relations, queries, keys, the protocol) is the
//! same for all packings; everything about cells, chunks and rotations is below. A packing that
//! joins implements [`Packer`] in a file of its own, adds a variant to [`super::method`], and
//! proves itself by joining the list in `tests/product.rs`.

use super::query::Form;
use super::relation::{Relation, Weights};
use super::split::SplitWeights;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::keys::SecretKey;
use crate::params::Params;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::sync::Arc;

/// A way of laying matrices into ciphertexts. Sizes were checked by the caller.
pub(super) trait Packer {
    /// A bound of the squared statistical distance between the answer to one run of a product and
    /// one that does not depend on the weights; such bounds add up. Of a product that passed
    /// [`Self::check`].
    fn squared_distance(&self, params: &Arc<Params>, relation: &Relation) -> f64;

    /// A bound of the probability that one run of a product gives a wrong result, which
    /// neither party notices: none, where noise has a bound and is checked.
    fn odds(&self, _params: &Params, _relation: &Relation) -> Result<f64, HeError> {
        Ok(0.0)
    }

    /// Fails if a product does not fit the parameters, its worst-case noise included.
    fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError>;

    /// The rotations that a product needs keys for; none, if it does not rotate.
    fn rotations(&self, params: &Params, relation: &Relation) -> Result<Vec<i32>, HeError>;

    /// Bytes of a query.
    fn query_len(&self, params: &Params, form: &Form) -> Result<usize, HeError>;

    /// Encrypts a matrix that was arranged for a form, into the bytes of a query, with at most so
    /// many threads.
    fn encrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        form: &Form,
        matrix: &Matrix<u64>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, HeError>;

    /// Reads a query.
    fn read(
        &self,
        params: &Params,
        form: &Form,
        bytes: &[u8],
    ) -> Result<Vec<SeededCiphertext>, HeError>;

    /// Encodes weights of a relation.
    fn prepare(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Weights<'_>,
    ) -> Result<Prepared, HeError>;

    /// Encodes small weights of a dense relation, within some memory as long as it lasts.
    fn prepare_within(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Matrix<i16>,
        room: &mut usize,
    ) -> Result<Prepared, HeError>;

    /// Bytes of an answer.
    fn answer_len(&self, params: &Params, relation: &Relation) -> Result<usize, HeError>;

    /// Opens the bytes of an answer, with at most `threads` threads.
    fn decrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        relation: &Relation,
        bytes: &[u8],
    ) -> Result<Matrix<u64>, HeError>;
}

/// Weights that are ready to be multiplied with ciphertexts, by what becomes of the product.
pub(super) enum Prepared {
    /// It goes to the client, under a mask of the server's.
    Masked(Box<dyn Multiplier>),
    /// Each party has a half of its ciphertexts.
    Split(Box<SplitWeights>),
}

impl Prepared {
    /// Weights whose products are masked.
    pub(super) fn masked(weights: impl Multiplier + 'static) -> Self {
        Self::Masked(Box::new(weights))
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Masked(weights) => weights.memory(),
            Self::Split(weights) => weights.memory(),
        }
    }
}

/// Weights that are ready to be multiplied with ciphertexts. They are the server's secret and wiped
/// when dropped.
pub(super) trait Multiplier: Send + Sync {
    /// The product with the ciphertexts of each query, masked and circuit-private, as it travels.
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError>;

    /// Bytes in memory.
    fn memory(&self) -> usize;
}
