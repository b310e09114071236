//! Both packings of the paper: a feature of a token is a slot ([`crate::packing`]).
//!
//! The layout of a matrix follows from its number of rows alone, so a query and the answer to it
//! have the same one. Columns are cut evenly into ciphertexts; where there are heads, a head is
//! never cut unless it is wider than a cell.

use super::multipliers::{Multiplier, RowFactors, SlotFactors};
use super::relation::{Relation, Weights};
use crate::centred::PreparedCentred;
use crate::error::HeError;
use crate::noise;
use crate::packing::chunks::{BlockShape, Chunks};
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use crate::slotwise::{check_row_sums, check_slotwise, doublings};
use primer_ring::matrix::Matrix;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::error::HeError as Common;
use primer_rlwe::form::Form;
use primer_rlwe::keys::SecretKey;
use rand_core::CryptoRng;
use std::sync::Arc;

/// Which of the two. Sizes were checked by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SlotPacker {
    /// Each cell of a ciphertext holds another token.
    TokensFirst,
    /// All cells of a ciphertext hold the same token, of a model of `width` features.
    FeaturesFirst { width: usize },
}

impl SlotPacker {
    fn layout(&self, params: &Params, rows: usize) -> Result<Layout, Common> {
        match *self {
            Self::TokensFirst => Layout::tokens_first(params, rows),
            Self::FeaturesFirst { width } => Layout::features_first(params, rows, width),
        }
    }

    /// Tells where the entries of a query lie.
    fn query(&self, params: &Params, form: &Form) -> Result<(Layout, Chunks), Common> {
        let rows = match *form {
            Form::Rows { rows, .. } | Form::Heads { rows, .. } | Form::Repeated { rows } => rows,
        };
        let layout = self.layout(params, rows)?;
        let chunks = match *form {
            Form::Rows { cols, .. } => Chunks::even(&layout, cols),
            Form::Heads {
                heads,
                inputs,
                outputs,
                ..
            } => BlockShape::blocks(heads, inputs, outputs).input_chunks(&layout),
            Form::Repeated { .. } => Chunks::even(&layout, 1),
        };
        Ok((layout, chunks))
    }

    /// Tells where the entries of an answer lie.
    fn answer(&self, params: &Params, relation: &Relation) -> Result<(Layout, Chunks), Common> {
        let (rows, cols) = relation.size();
        let layout = self.layout(params, rows)?;
        let chunks = match *relation {
            Relation::Heads {
                heads,
                inputs,
                outputs,
                ..
            } => BlockShape::blocks(heads, inputs, outputs).output_chunks(&layout),
            _ => Chunks::even(&layout, cols),
        };
        Ok((layout, chunks))
    }

    /// Returns the worst noise of an answer, if it fits.
    fn noise(&self, params: &Arc<Params>, relation: &Relation) -> Result<f64, HeError> {
        let layout = self.layout(params, relation.size().0)?;
        match *relation {
            Relation::Dense {
                inputs, outputs, ..
            } => {
                let shape = BlockShape::dense(inputs, outputs);
                Ok(PreparedWeights::plan(params, &layout, shape)?.noise())
            }
            Relation::Heads {
                heads,
                inputs,
                outputs,
                ..
            } => {
                let shape = BlockShape::blocks(heads, inputs, outputs);
                Ok(PreparedWeights::plan(params, &layout, shape)?.noise())
            }
            Relation::Centred { cols, .. } => PreparedCentred::check(params, &layout, cols),
            Relation::RowSums { cols, .. } => {
                check_row_sums(params, &layout, Chunks::even(&layout, cols).len())
            }
            Relation::Hadamard { .. } => check_slotwise(params, 1),
            Relation::ScaledRows { .. } => check_slotwise(params, 2),
        }
    }

    /// Checks that a product fits the parameters, its worst-case noise included.
    pub(super) fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError> {
        self.noise(params, relation).map(drop)
    }

    /// Returns a bound of the squared statistical distance between the answer to one run of a
    /// product and one that does not depend on the weights; such bounds add up. Of a product that
    /// passed [`Self::check`].
    pub(super) fn squared_distance(&self, params: &Arc<Params>, relation: &Relation) -> f64 {
        let answers = self.answer(params, relation);
        let answers = answers.map(|(layout, chunks)| EncryptedMatrix::count(&layout, &chunks));
        match (self.noise(params, relation), answers) {
            (Ok(noise), Ok(answers)) => answers as f64 * noise::squared_distance(params, noise),
            _ => f64::INFINITY,
        }
    }

    /// Returns the rotations that a product needs keys for; none, if it does not rotate.
    pub(super) fn rotations(
        &self,
        params: &Params,
        relation: &Relation,
    ) -> Result<Vec<i32>, HeError> {
        let layout = self.layout(params, relation.size().0)?;
        Ok(match relation {
            Relation::Dense { .. } | Relation::Heads { .. } | Relation::Centred { .. } => {
                layout.rotations()
            }
            Relation::RowSums { .. } => doublings(&layout).collect(),
            Relation::ScaledRows { .. } | Relation::Hadamard { .. } => Vec::new(),
        })
    }

    /// Counts the bytes of a query.
    pub(super) fn query_len(&self, params: &Params, form: &Form) -> Result<usize, HeError> {
        let (layout, chunks) = self.query(params, form)?;
        Ok(EncryptedMatrix::wire_len(params, &layout, &chunks))
    }

    /// Encrypts a matrix that was arranged for a form, into the bytes of a query.
    pub(super) fn encrypt(
        &self,
        secret: &SecretKey,
        form: &Form,
        matrix: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u8>, HeError> {
        let (layout, chunks) = self.query(secret.params(), form)?;
        let matrix = match form {
            Form::Repeated { .. } => {
                EncryptedMatrix::encrypt_repeated(secret, &layout, matrix.data(), rng)?
            }
            _ => EncryptedMatrix::encrypt(secret, &layout, &chunks, matrix, rng)?,
        };
        Ok(matrix.to_bytes(secret.params()))
    }

    /// Reads a query.
    pub(super) fn read(
        &self,
        params: &Params,
        form: &Form,
        bytes: &[u8],
    ) -> Result<Vec<SeededCiphertext>, HeError> {
        let (layout, chunks) = self.query(params, form)?;
        Ok(EncryptedMatrix::from_bytes(params, &layout, &chunks, bytes)?.ciphertexts)
    }

    /// Encodes weights of a relation.
    pub(super) fn prepare(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Weights<'_>,
    ) -> Result<Box<dyn Multiplier>, HeError> {
        let (layout, chunks) = self.answer(params, relation)?;
        Ok(match *weights {
            Weights::Dense(w) => {
                let shape = BlockShape::dense(w.rows(), w.cols());
                let entry = |_, r, c| w.get(r, c);
                Box::new(PreparedWeights::new(params, &layout, shape, entry)?)
            }
            Weights::Centred { gain, mean } => {
                Box::new(PreparedCentred::new(params, &layout, gain, mean)?)
            }
            Weights::Heads(blocks) => Box::new(PreparedWeights::blocks(params, &layout, blocks)?),
            Weights::RowSums(u) => Box::new(RowFactors::new(layout, u)),
            Weights::ScaledRows { u, v } => {
                let repeated = Chunks::even(&layout, 1);
                Box::new(SlotFactors::new(layout, [(chunks, v), (repeated, u)]))
            }
            Weights::Hadamard(u) => Box::new(SlotFactors::new(layout, [(chunks, u)])),
        })
    }

    /// Encodes small weights of a dense relation, within some memory as long as it lasts.
    pub(super) fn prepare_within(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Matrix<i16>,
        room: &mut usize,
    ) -> Result<Box<dyn Multiplier>, HeError> {
        let layout = self.layout(params, relation.size().0)?;
        let shape = BlockShape::dense(weights.rows(), weights.cols());
        let bytes = PreparedWeights::dense_bytes(params, &layout, shape)?;
        Ok(Box::new(if bytes <= *room {
            *room -= bytes;
            PreparedWeights::dense(params, &layout, weights)?
        } else {
            PreparedWeights::streamed(params, &layout, weights.clone())?
        }))
    }

    /// Counts the bytes of an answer.
    pub(super) fn answer_len(
        &self,
        params: &Params,
        relation: &Relation,
    ) -> Result<usize, HeError> {
        let (layout, chunks) = self.answer(params, relation)?;
        Ok(EncryptedAnswer::wire_len(params, &layout, &chunks))
    }

    /// Opens the bytes of an answer.
    pub(super) fn decrypt(
        &self,
        secret: &SecretKey,
        relation: &Relation,
        bytes: &[u8],
    ) -> Result<Matrix<u64>, HeError> {
        let (layout, chunks) = self.answer(secret.params(), relation)?;
        EncryptedAnswer::from_bytes(secret.params(), &layout, &chunks, bytes)?.decrypt(secret)
    }
}
