//! The packing of products with a model's weights that needs no rotations: dense products and the
//! residual's term, by coefficients ([`crate::subring`]).
//!
//! A query is cut as its product wants it, so the block of a dense query is part of its form:
//! products that cut a matrix in the same way share it. Products of two secrets have a packing of
//! their own ([`super::split`]).

mod describe;
mod plan;
mod weights;

use super::method::WeightSize;
use super::packer::{Packer, Prepared};
use super::query::Form;
use super::relation::{Relation, Weights};
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::SecretKey;
use crate::params::Params;
use crate::subring::dense::DenseWeights;
use crate::subring::noise::Margins;
use crate::subring::open::open_blocks;
use crate::subring::query;
use crate::subring::residual::Centring;
use crate::subring::shape::Lanes;
use crate::wire::{self, Told};
use plan::Cut;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use std::sync::Arc;
use weights::{Signed, SubringWeights, centred_squares, squares};

/// The packing, for weights of some size.
pub(super) struct SubringPacker {
    pub(super) size: WeightSize,
}

impl SubringPacker {
    /// Fails if weights are larger than the method admits.
    fn check_size(&self, columns: usize, inputs: usize, squares: f64) -> Result<(), HeError> {
        let most = columns as f64 * self.size.column_energy(inputs);
        if squares <= most {
            return Ok(());
        }
        let column = |energy: f64| (energy / columns as f64).log2() / 2.0;
        Err(HeError::WeightSize {
            column_bits: column(squares),
            admitted_bits: column(most),
        })
    }

    fn multiplier(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: DenseWeights,
    ) -> Result<Prepared, HeError> {
        let (described, len) = self.describe_answer(params, relation)?;
        Ok(Prepared::masked(SubringWeights {
            described,
            len,
            weights,
        }))
    }
}

impl Packer for SubringPacker {
    fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError> {
        let Cut { blocks, residual } = self.cut(params, relation)?;
        if let Some(block) = residual {
            // A residual's ciphertext has room for as many features as the answer's stride.
            crate::packing::layout::in_range("features of a ciphertext", block, blocks.stride)?;
        }
        self.hidden(params, relation)?.check(params)
    }

    fn squared_distance(&self, params: &Arc<Params>, relation: &Relation) -> f64 {
        let hidden = self.hidden(params, relation);
        let both = hidden.and_then(|hidden| Ok((hidden, Margins::of(params)?)));
        both.map_or(f64::INFINITY, |(hidden, margins)| {
            hidden.squared_distance(&margins)
        })
    }

    fn forms(&self, params: &Params, relation: &Relation) -> Vec<Form> {
        let (rows, cols) = relation.size();
        let Ok(Cut { blocks, residual }) = self.cut(params, relation) else {
            return relation.forms();
        };
        let dense = Form::Blocks {
            rows,
            cols: blocks.inputs,
            block: blocks.stride,
        };
        let dense = Some(dense).filter(|_| !matches!(relation, Relation::Centred { .. }));
        let residual = residual.map(|block| Form::Blocks { rows, cols, block });
        dense.into_iter().chain(residual).collect()
    }

    fn rotations(&self, _: &Params, _: &Relation) -> Result<Vec<i32>, HeError> {
        Ok(Vec::new())
    }

    fn query_len(&self, params: &Params, form: &Form) -> Result<usize, HeError> {
        let [.., count] = self.describe_query(params, form)?.numbers;
        Ok(wire::query_len(params, count))
    }

    fn encrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        form: &Form,
        matrix: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, HeError> {
        let (params, rng) = (secret.params(), &mut rng);
        let mut message = wire::start_query(params, &self.describe_query(params, form)?);
        let out = wire::query_ciphertexts(&mut message);
        let Form::Blocks { rows, cols, block } = *form else {
            unreachable!("it has a description");
        };
        let lanes = Lanes::new(params, rows);
        let terms = cols.div_ceil(block);
        // Beyond a block's inputs there is nothing.
        let used = lanes.lanes() * block;
        query::encrypt(secret, threads, used, rng, out, |index, plain, _| {
            let first = index % terms * block;
            for (t, row) in lanes.of_run(index / terms).enumerate() {
                let features = &matrix.row(row)[first..cols.min(first + block)];
                for (i, &x) in features.iter().enumerate() {
                    plain[lanes.at(t, i)] = x;
                }
            }
        });
        Ok(message)
    }

    fn read(
        &self,
        params: &Params,
        form: &Form,
        bytes: &[u8],
    ) -> Result<Vec<SeededCiphertext>, HeError> {
        wire::read_query(params, &self.describe_query(params, form)?, bytes)
    }

    fn prepare(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Weights<'_>,
    ) -> Result<Prepared, HeError> {
        let signed = |w: &Matrix<u64>| {
            let mut signed = Matrix::zeros(w.rows(), w.cols());
            let entries = signed.data_mut().iter_mut().zip(w.data());
            entries.for_each(|(to, &x)| *to = modulus::to_signed(x));
            signed
        };
        let Cut { blocks, residual } = self.cut(params, relation)?;
        let made = match (*weights, residual) {
            (Weights::Dense(w), _) => {
                let w = Signed(signed(w));
                self.check_size(w.0.cols(), w.0.rows(), squares(&w.0))?;
                let entry = |r, c| w.0.get(r, c);
                DenseWeights::kept(params, blocks, entry, None)
            }
            (
                Weights::Residual {
                    weights,
                    gain,
                    mean,
                },
                Some(block),
            ) => {
                let w = Signed(signed(weights));
                let both = squares(&w.0) + centred_squares(gain, mean);
                self.check_size(w.0.cols(), w.0.rows() + w.0.cols(), both)?;
                let residual = Centring::new(params, &blocks, block, gain, mean);
                let entry = |r, c| w.0.get(r, c);
                DenseWeights::kept(params, blocks, entry, Some(residual))
            }
            (Weights::Centred { gain, mean }, Some(block)) => {
                self.check_size(gain.len(), gain.len(), centred_squares(gain, mean))?;
                let residual = Centring::new(params, &blocks, block, gain, mean);
                DenseWeights::centred(params, blocks, residual)
            }
            _ => unreachable!("weights were compared with the relation"),
        };
        self.multiplier(params, relation, made)
    }

    fn prepare_within(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Matrix<i16>,
        residual: Option<(&[u64], &[u64])>,
        room: &mut usize,
    ) -> Result<Prepared, HeError> {
        let cut = self.cut(params, relation)?;
        let (blocks, block) = (cut.blocks, cut.residual);
        let mut inputs = weights.rows();
        let mut all = squares(weights);
        let residual = residual.zip(block).map(|((gain, mean), block)| {
            inputs += gain.len();
            all += centred_squares(gain, mean);
            Centring::new(params, &blocks, block, gain, mean)
        });
        self.check_size(weights.cols(), inputs, all)?;
        let bytes = DenseWeights::kept_bytes(params, &blocks)
            + residual.as_ref().map_or(0, Centring::memory);
        let made = if bytes <= *room {
            *room -= bytes;
            let entry = |r, c| i64::from(weights.get(r, c));
            DenseWeights::kept(params, blocks, entry, residual)
        } else {
            DenseWeights::streamed(params, blocks, weights.clone(), residual)
        };
        self.multiplier(params, relation, made)
    }

    fn answer_len(&self, params: &Params, relation: &Relation) -> Result<usize, HeError> {
        Ok(self.describe_answer(params, relation)?.1)
    }

    fn decrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        relation: &Relation,
        bytes: &[u8],
    ) -> Result<Matrix<u64>, HeError> {
        let params = secret.params();
        let (described, len) = self.describe_answer(params, relation)?;
        let bytes = wire::read_answer(params, Told::Both, &described, bytes, len)?;
        let margins = Margins::of(params)?;
        let one = |sent: usize| margins.answer_len(params.degree(), sent);
        let Cut { blocks, .. } = self.cut(params, relation)?;
        open_blocks(secret, threads, &blocks, bytes, one)
    }
}
