//! The packing of products of two secrets: no rotations, and answers that each party has a half of.
//!
//! Heads go by slots of the subring, row sums, scaled rows and products of elements by slots of the
//! ring. Answers are split: the server ends with a share instead of choosing a mask. How, and why
//! that tells the client nothing, is in [`crate::split`]; here it takes the face that all packings
//! have. The weights are masks of one inference, uniform modulo p; that is what the odds of a wrong
//! share are computed for. Products with a model's weights are not computed by this packing.

mod describe;
mod weights;

pub(super) use weights::SplitWeights;

use super::packer::{Packer, Prepared};
use super::query::{Form, Wiped};
use super::relation::{Relation, Weights};
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::SecretKey;
use crate::params::Params;
use crate::split::heads::{HeadShape, HeadWeights};
use crate::split::slots::SlotShape;
use crate::split::{self, Split};
use crate::wire;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::sync::Arc;
use weights::Factors;

/// The packing.
pub(super) struct SplitPacker;

/// How a relation is laid out.
enum Plan {
    Heads(HeadShape),
    Sums(SlotShape),
    /// The number of products in each element of the answer.
    Products(SlotShape, usize),
}

impl Plan {
    fn of(params: &Params, relation: &Relation) -> Result<Self, HeError> {
        Ok(match *relation {
            Relation::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => Self::Heads(HeadShape::choose(params, rows, (heads, inputs, outputs))),
            Relation::RowSums { rows, cols } => Self::Sums(SlotShape::new(params, rows, cols)),
            Relation::Hadamard { rows, cols } => {
                Self::Products(SlotShape::new(params, rows, cols), 1)
            }
            Relation::ScaledRows { rows, cols } => {
                Self::Products(SlotShape::new(params, rows, cols), 2)
            }
            Relation::Dense { .. } | Relation::Centred { .. } => {
                return Err(unsupported(relation));
            }
        })
    }

    /// Returns what the odds of its shares depend on.
    fn split(&self, params: &Params) -> Split {
        match self {
            Self::Heads(shape) => shape.split(),
            Self::Sums(shape) => shape.split_sums(params),
            Self::Products(shape, products) => shape.split_products(params, *products),
        }
    }
}

fn unsupported(what: impl ToString) -> HeError {
    HeError::Unsupported {
        relation: what.to_string(),
    }
}

impl Packer for SplitPacker {
    fn check(&self, params: &Arc<Params>, relation: &Relation) -> Result<(), HeError> {
        split::check(self.odds(params, relation)?)
    }

    /// `c1` is pseudorandom, so nothing adds up.
    fn squared_distance(&self, _: &Arc<Params>, _: &Relation) -> f64 {
        0.0
    }

    fn odds(&self, params: &Params, relation: &Relation) -> Result<f64, HeError> {
        Ok(Plan::of(params, relation)?.split(params).odds(params))
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
    ) -> Result<Prepared, HeError> {
        let plan = Plan::of(params, relation)?;
        let answer = self.describe_answer(params, relation)?;
        let factors = match (*weights, plan) {
            (Weights::Heads(blocks), Plan::Heads(shape)) => {
                Factors::Heads(HeadWeights::new(params, shape, blocks))
            }
            (Weights::RowSums(u), Plan::Sums(shape)) => Factors::Sums(shape, Wiped::copy(u)),
            (Weights::ScaledRows { u, v }, Plan::Products(shape, _)) => {
                Factors::Products(shape, vec![Wiped::copy(v), Wiped::copy(u)])
            }
            (Weights::Hadamard(u), Plan::Products(shape, _)) => {
                Factors::Products(shape, vec![Wiped::copy(u)])
            }
            _ => unreachable!("weights were compared with the relation"),
        };
        Ok(Prepared::Split(Box::new(SplitWeights { answer, factors })))
    }

    fn prepare_within(
        &self,
        _: &Arc<Params>,
        relation: &Relation,
        _: &Matrix<i16>,
        _: &mut usize,
    ) -> Result<Prepared, HeError> {
        Err(unsupported(relation))
    }

    fn answer_len(&self, params: &Params, relation: &Relation) -> Result<usize, HeError> {
        Ok(self.describe_answer(params, relation)?.len)
    }

    fn decrypt(
        &self,
        secret: &SecretKey,
        threads: usize,
        relation: &Relation,
        bytes: &[u8],
    ) -> Result<Matrix<u64>, HeError> {
        let params = secret.params();
        let answer = self.describe_answer(params, relation)?;
        let bytes = wire::read_answer(params, &answer.described, bytes, answer.len)?;
        match Plan::of(params, relation)? {
            Plan::Heads(shape) => shape.open(secret, threads, bytes, answer.width),
            Plan::Sums(shape) => shape.open_sums(secret, threads, bytes, answer.width),
            Plan::Products(shape, _) => shape.open(secret, threads, bytes, answer.width),
        }
    }
}
