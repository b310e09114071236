//! Both packings of the paper: a feature of a token is a slot ([`crate::packing`]).
//!
//! The layout of a matrix follows from its number of rows alone, so a query and the answer to it
//! have the same one. Columns are cut evenly into ciphertexts; where there are heads, a head is
//! never cut unless it is wider than a cell.

use super::multipliers::{RowFactors, SlotFactors};
use super::packer::{Packer, Prepared};
use super::query::Form;
use super::relation::{Relation, Weights};
use crate::centred::PreparedCentred;
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::SecretKey;
use crate::noise;
use crate::packing::chunks::{BlockShape, Chunks};
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use crate::slotwise::{check_row_sums, check_slotwise, doublings};
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::sync::Arc;

/// Which of the two.
pub(super) enum SlotPacker {
    /// Each cell of a ciphertext holds another token.
    TokensFirst,
    /// All cells of a ciphertext hold the same token, of so many features.
    FeaturesFirst { width: usize },
}

impl SlotPacker {
    fn layout(&self, params: &Params, rows: usize) -> Result<Layout, HeError> {
        match *self {
            Self::TokensFirst => Layout::tokens_first(params, rows),
            Self::FeaturesFirst { width } => Layout::features_first(params, rows, width),
        }
    }

    /// Where the entries of a query lie.
    fn query(&self, params: &Params, form: &Form) -> Result<(Layout, Chunks), HeError> {
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

    /// Where the entries of an answer lie.
    fn answer(&self, params: &Params, relation: &Relation) -> Result<(Layout, Chunks), HeError> {
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
}

impl SlotPacker {
    /// The worst noise of an answer; fails if it does not fit.
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
}

impl Packer for SlotPacker {
    fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError> {
        self.noise(params, relation).map(drop)
    }

    fn squared_distance(&self, params: &Arc<Params>, relation: &Relation) -> f64 {
        let answers = self.answer(params, relation);
        let answers = answers.map(|(layout, chunks)| EncryptedMatrix::count(&layout, &chunks));
        match (self.noise(params, relation), answers) {
            (Ok(noise), Ok(answers)) => answers as f64 * noise::squared_distance(params, noise),
            _ => f64::INFINITY,
        }
    }

    fn rotations(&self, params: &Params, relation: &Relation) -> Result<Vec<i32>, HeError> {
        let layout = self.layout(params, relation.size().0)?;
        Ok(match relation {
            Relation::Dense { .. } | Relation::Heads { .. } | Relation::Centred { .. } => {
                layout.rotations()
            }
            Relation::RowSums { .. } => doublings(&layout).collect(),
            Relation::ScaledRows { .. } | Relation::Hadamard { .. } => Vec::new(),
        })
    }

    fn query_len(&self, params: &Params, form: &Form) -> Result<usize, HeError> {
        let (layout, chunks) = self.query(params, form)?;
        Ok(EncryptedMatrix::wire_len(params, &layout, &chunks))
    }

    fn encrypt(
        &self,
        secret: &SecretKey,
        _threads: usize,
        form: &Form,
        matrix: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, HeError> {
        let (layout, chunks) = self.query(secret.params(), form)?;
        let rng = &mut rng;
        let matrix = match form {
            Form::Repeated { .. } => {
                EncryptedMatrix::encrypt_repeated(secret, &layout, matrix.data(), rng)?
            }
            _ => EncryptedMatrix::encrypt(secret, &layout, &chunks, matrix, rng)?,
        };
        Ok(matrix.to_bytes(secret.params()))
    }

    fn read(
        &self,
        params: &Params,
        form: &Form,
        bytes: &[u8],
    ) -> Result<Vec<SeededCiphertext>, HeError> {
        let (layout, chunks) = self.query(params, form)?;
        Ok(EncryptedMatrix::from_bytes(params, &layout, &chunks, bytes)?.ciphertexts)
    }

    fn prepare(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Weights<'_>,
    ) -> Result<Prepared, HeError> {
        let (layout, chunks) = self.answer(params, relation)?;
        Ok(match *weights {
            Weights::Dense(w) => {
                let shape = BlockShape::dense(w.rows(), w.cols());
                let entry = |_, r, c| w.get(r, c);
                Prepared::masked(PreparedWeights::new(params, &layout, shape, entry)?)
            }
            Weights::Centred { gain, mean } => {
                Prepared::masked(PreparedCentred::new(params, &layout, gain, mean)?)
            }
            Weights::Heads(blocks) => {
                Prepared::masked(PreparedWeights::blocks(params, &layout, blocks)?)
            }
            Weights::RowSums(u) => Prepared::masked(RowFactors::new(layout, u)),
            Weights::ScaledRows { u, v } => {
                let repeated = Chunks::even(&layout, 1);
                Prepared::masked(SlotFactors::new(layout, [(chunks, v), (repeated, u)]))
            }
            Weights::Hadamard(u) => Prepared::masked(SlotFactors::new(layout, [(chunks, u)])),
        })
    }

    fn prepare_within(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Matrix<i16>,
        room: &mut usize,
    ) -> Result<Prepared, HeError> {
        let layout = self.layout(params, relation.size().0)?;
        let shape = BlockShape::dense(weights.rows(), weights.cols());
        let bytes = PreparedWeights::dense_bytes(params, &layout, shape)?;
        Ok(Prepared::masked(if bytes <= *room {
            *room -= bytes;
            PreparedWeights::dense(params, &layout, weights)?
        } else {
            PreparedWeights::streamed(params, &layout, weights.clone())?
        }))
    }

    fn answer_len(&self, params: &Params, relation: &Relation) -> Result<usize, HeError> {
        let (layout, chunks) = self.answer(params, relation)?;
        Ok(EncryptedAnswer::wire_len(params, &layout, &chunks))
    }

    fn decrypt(
        &self,
        secret: &SecretKey,
        _threads: usize,
        relation: &Relation,
        bytes: &[u8],
    ) -> Result<Matrix<u64>, HeError> {
        let (layout, chunks) = self.answer(secret.params(), relation)?;
        EncryptedAnswer::from_bytes(secret.params(), &layout, &chunks, bytes)?.decrypt(secret)
    }
}
