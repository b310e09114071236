//! Masks of one inference, encoded for products of two secrets.

use super::describe::SplitAnswer;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::evaluate::Evaluator;
use crate::product::query::Wiped;
use crate::split::heads::HeadWeights;
use crate::split::slots::SlotShape;
use crate::wire;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;

/// What the client's matrices are multiplied with.
pub(super) enum Factors {
    Heads(HeadWeights),
    Sums(SlotShape, Wiped),
    /// Of scaled rows and of products of elements: what each query is multiplied with.
    Products(SlotShape, Vec<Wiped>),
}

/// The factors of a product, and what an answer made with them says about itself.
pub(in crate::product) struct SplitWeights {
    pub(super) answer: SplitAnswer,
    pub(super) factors: Factors,
}

impl SplitWeights {
    /// Multiplies with the ciphertexts of each query: returns the half that travels, and the
    /// server's share.
    pub(in crate::product) fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<u8>, Matrix<u64>, Counters), HeError> {
        let SplitAnswer {
            described,
            width,
            len,
        } = &self.answer;
        let mut message = wire::start_answer(&server.params, described, *len);
        let out = wire::answer_ciphertexts(&mut message);
        let (public, work) = (&server.public, &mut server.work.split);
        let counted = |wanted| agree("queries of the product", queries.len(), wanted);
        let (share, counters) = match &self.factors {
            Factors::Heads(weights) => {
                counted(1)?;
                weights.answer(public, work, queries[0], *width, rng, out)?
            }
            Factors::Sums(shape, u) => {
                counted(1)?;
                shape.row_sums(public, work, queries[0], u, *width, rng, out)?
            }
            Factors::Products(shape, factors) => {
                counted(factors.len())?;
                let terms = queries.iter().zip(factors);
                let terms: Vec<_> = terms.map(|(query, factor)| (*query, &**factor)).collect();
                shape.products(public, work, &terms, *width, rng, out)?
            }
        };
        Ok((message, share, counters))
    }

    /// Counts the bytes in memory.
    pub(in crate::product) fn memory(&self) -> usize {
        match &self.factors {
            Factors::Heads(weights) => weights.memory(),
            Factors::Sums(_, u) => 8 * u.data().len(),
            Factors::Products(_, factors) => {
                8 * factors.iter().map(|u| u.data().len()).sum::<usize>()
            }
        }
    }
}
