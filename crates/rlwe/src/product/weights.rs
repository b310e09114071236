//! Masks of one inference, encoded for products of two secrets.

use super::describe::AnswerLayout;
use super::keys::SetKeys;
use super::plan::Plan;
use super::relation::Weights;
use crate::ciphertext::SeededCiphertext;
use crate::error::{HeError, agree};
use crate::form::Wiped;
use crate::params::Params;
use crate::split::heads::HeadWeights;
use crate::split::slots::SlotShape;
use crate::wire;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::sync::Arc;

/// What the client's matrices are multiplied with.
pub(super) enum Factors {
    Heads(HeadWeights),
    Sums(SlotShape, Wiped),
    /// Of scaled rows and of products of elements: what each query is multiplied with.
    Products(SlotShape, Vec<Wiped>),
}

impl Factors {
    /// Encodes weights of a relation, with which they were compared.
    pub(super) fn new(params: &Arc<Params>, plan: Plan, weights: &Weights<'_>) -> Self {
        match (*weights, plan) {
            (Weights::Heads(blocks), Plan::Heads(shape)) => {
                Self::Heads(HeadWeights::new(params, shape, blocks))
            }
            (Weights::RowSums(u), Plan::Sums(shape)) => Self::Sums(shape, Wiped::copy(u)),
            (Weights::ScaledRows { u, v }, Plan::Products(shape, _)) => {
                Self::Products(shape, vec![Wiped::copy(v), Wiped::copy(u)])
            }
            (Weights::Hadamard(u), Plan::Products(shape, _)) => {
                Self::Products(shape, vec![Wiped::copy(u)])
            }
            _ => unreachable!("weights were compared with the relation"),
        }
    }

    /// Multiplies with the ciphertexts of each query: returns the half that travels, and the
    /// server's share.
    ///
    /// # Errors
    /// If there are not as many queries or ciphertexts as the product reads.
    pub(super) fn answer(
        &self,
        answer: &AnswerLayout,
        keys: &mut SetKeys,
        queries: &[&[SeededCiphertext]],
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<u8>, Matrix<u64>), HeError> {
        let (public, work, width) = (&keys.public, &mut keys.work, answer.width);
        let mut message = wire::start_answer(&public.params, &answer.described, answer.len);
        let out = wire::answer_ciphertexts(&mut message);
        let counted = |wanted| agree("queries of the product", queries.len(), wanted);
        let share = match self {
            Self::Heads(weights) => {
                counted(1)?;
                weights.answer(public, work, queries[0], width, rng, out)?
            }
            Self::Sums(shape, u) => {
                counted(1)?;
                shape.row_sums(public, work, queries[0], u, width, rng, out)?
            }
            Self::Products(shape, factors) => {
                counted(factors.len())?;
                let terms = queries.iter().zip(factors);
                let terms: Vec<_> = terms.map(|(query, factor)| (*query, &**factor)).collect();
                shape.products(public, work, &terms, width, rng, out)?
            }
        };
        Ok((message, share))
    }

    /// Counts the bytes in memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Heads(weights) => weights.memory(),
            Self::Sums(_, u) => 8 * u.data().len(),
            Self::Products(_, factors) => 8 * factors.iter().map(|u| u.data().len()).sum::<usize>(),
        }
    }
}
