//! The packing without rotations: which of the ways of [`crate::subring`] a relation takes.
//!
//! Dense products and the residual's term go by coefficients, heads by slots of the subring, row
//! sums and scaled rows by slots of the ring. A query is cut as its product wants it, so the block
//! of a dense query is part of its form: products that cut a matrix in the same way share it.

mod describe;
mod plan;
mod weights;

use super::method::WeightSize;
use super::packer::{Multiplier, Packer};
use super::query::{Form, Wiped};
use super::relation::{Relation, Weights};
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::SecretKey;
use crate::params::Params;
use crate::subring::dense::DenseWeights;
use crate::subring::heads::{HeadShape, HeadWeights};
use crate::subring::noise::Margins;
use crate::subring::open::open_blocks;
use crate::subring::query;
use crate::subring::residual::Centring;
use crate::subring::shape::Lanes;
use crate::subring::slots::SlotShape;
use crate::wire;
use plan::Plan;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use std::sync::Arc;
use weights::{Product, Signed, SubringWeights, centred_squares, squares};

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
        weights: Product,
    ) -> Result<Box<dyn Multiplier>, HeError> {
        let (described, len) = self.describe_answer(params, relation)?;
        Ok(Box::new(SubringWeights {
            described,
            len,
            weights,
        }))
    }
}

impl Packer for SubringPacker {
    fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError> {
        if let Plan::Blocks(blocks, Some(block)) = self.plan(params, relation) {
            // A residual's ciphertext has room for as many features as the answer's stride.
            crate::packing::layout::in_range("features of a ciphertext", block, blocks.stride)?;
        }
        self.hidden(params, relation).check(params)
    }

    fn squared_distance(&self, params: &Arc<Params>, relation: &Relation) -> f64 {
        let hidden = self.hidden(params, relation);
        let margins = Margins::of(params);
        margins.map_or(f64::INFINITY, |margins| hidden.squared_distance(&margins))
    }

    fn forms(&self, params: &Params, relation: &Relation) -> Vec<Form> {
        let (rows, cols) = relation.size();
        match (relation, self.plan(params, relation)) {
            (Relation::Centred { .. }, Plan::Blocks(_, Some(block))) => {
                vec![Form::Blocks { rows, cols, block }]
            }
            (_, Plan::Blocks(blocks, residual)) => {
                let dense = Form::Blocks {
                    rows,
                    cols: blocks.inputs,
                    block: blocks.stride,
                };
                let residual = residual.map(|block| Form::Blocks { rows, cols, block });
                std::iter::once(dense).chain(residual).collect()
            }
            _ => relation.forms(),
        }
    }

    fn rotations(&self, _: &Params, _: &Relation) -> Result<Vec<i32>, HeError> {
        Ok(Vec::new())
    }

    fn query_len(&self, params: &Params, form: &Form) -> Result<usize, HeError> {
        let [.., count] = self.describe_query(params, form).numbers;
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
        let mut message = wire::start_query(params, &self.describe_query(params, form));
        let out = wire::query_ciphertexts(&mut message);
        match *form {
            Form::Blocks { rows, cols, block } => {
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
            }
            Form::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => HeadShape::choose(params, rows, (heads, inputs, outputs))
                .encrypt(secret, threads, matrix, rng, out),
            Form::Rows { rows, cols } => {
                SlotShape::new(params, rows, cols).encrypt(secret, threads, matrix, rng, out);
            }
            Form::Repeated { rows } => SlotShape::new(params, rows, 1).encrypt_repeated(
                secret,
                threads,
                matrix.data(),
                rng,
                out,
            ),
        }
        Ok(message)
    }

    fn read(
        &self,
        params: &Params,
        form: &Form,
        bytes: &[u8],
    ) -> Result<Vec<SeededCiphertext>, HeError> {
        wire::read_query(params, &self.describe_query(params, form), bytes)
    }

    fn prepare(
        &self,
        params: &Arc<Params>,
        relation: &Relation,
        weights: &Weights<'_>,
    ) -> Result<Box<dyn Multiplier>, HeError> {
        let signed = |w: &Matrix<u64>| {
            let mut signed = Matrix::zeros(w.rows(), w.cols());
            let entries = signed.data_mut().iter_mut().zip(w.data());
            entries.for_each(|(to, &x)| *to = modulus::to_signed(x));
            signed
        };
        let made = match (*weights, self.plan(params, relation)) {
            (Weights::Dense(w), Plan::Blocks(blocks, _)) => {
                let w = Signed(signed(w));
                self.check_size(w.0.cols(), w.0.rows(), squares(&w.0))?;
                let entry = |r, c| w.0.get(r, c);
                Product::Dense(DenseWeights::kept(params, blocks, entry, None))
            }
            (
                Weights::Residual {
                    weights,
                    gain,
                    mean,
                },
                Plan::Blocks(blocks, Some(block)),
            ) => {
                let w = Signed(signed(weights));
                let both = squares(&w.0) + centred_squares(gain, mean);
                self.check_size(w.0.cols(), w.0.rows() + w.0.cols(), both)?;
                let residual = Centring::new(params, &blocks, block, gain, mean);
                let entry = |r, c| w.0.get(r, c);
                Product::Dense(DenseWeights::kept(params, blocks, entry, Some(residual)))
            }
            (Weights::Centred { gain, mean }, Plan::Blocks(blocks, Some(block))) => {
                self.check_size(gain.len(), gain.len(), centred_squares(gain, mean))?;
                let residual = Centring::new(params, &blocks, block, gain, mean);
                Product::Dense(DenseWeights::centred(params, blocks, residual))
            }
            (Weights::Heads(blocks), Plan::Heads(shape)) => {
                Product::Heads(HeadWeights::new(params, shape, blocks))
            }
            (Weights::RowSums(u), Plan::Slots(shape)) => Product::RowSums(shape, Wiped::copy(u)),
            (Weights::ScaledRows { u, v } | Weights::Elementwise { u, v }, Plan::Slots(shape)) => {
                Product::Slots(shape, [Wiped::copy(u), Wiped::copy(v)])
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
    ) -> Result<Box<dyn Multiplier>, HeError> {
        let Plan::Blocks(blocks, block) = self.plan(params, relation) else {
            unreachable!("dense products are cut into blocks")
        };
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
        self.multiplier(params, relation, Product::Dense(made))
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
        let bytes = wire::read_answer(params, &described, bytes, len)?;
        let margins = Margins::of(params)?;
        let one = |sent: usize| margins.answer_len(params.degree(), sent);
        match (relation, self.plan(params, relation)) {
            (_, Plan::Blocks(blocks, _)) => open_blocks(secret, threads, &blocks, bytes, one),
            (_, Plan::Heads(shape)) => shape.decrypt(secret, threads, bytes, one),
            (Relation::RowSums { .. }, Plan::Slots(shape)) => {
                shape.decrypt_sums(secret, threads, bytes, one(params.degree()))
            }
            (_, Plan::Slots(shape)) => shape.decrypt(secret, threads, bytes, one(params.degree())),
        }
    }
}
