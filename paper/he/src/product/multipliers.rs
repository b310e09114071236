//! Weights of slot packings at work: which product of the [`Evaluator`] each kind of weights is
//! for.

use crate::centred::PreparedCentred;
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{Ciphertexts, EncryptedAnswer};
use crate::packing::weights::PreparedWeights;
use primer_ring::matrix::Matrix;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::error::agree;
use primer_rlwe::form::Wiped;
use rand_core::CryptoRng;

/// Weights that are ready to be multiplied with ciphertexts. They are the server's secret and wiped
/// when dropped.
pub(super) trait Multiplier: Send + Sync {
    /// Returns the product with the ciphertexts of each query, masked and circuit-private, as it
    /// travels.
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError>;

    /// Counts the bytes in memory.
    fn memory(&self) -> usize;
}

/// Returns the ciphertexts of a product's only query.
fn single<'a>(queries: &[&'a [SeededCiphertext]]) -> Result<&'a [SeededCiphertext], HeError> {
    agree("queries of the product", queries.len(), 1)?;
    Ok(queries[0])
}

/// Returns an answer as it travels.
fn sent(
    server: &Evaluator,
    (answer, counters): (EncryptedAnswer, Counters),
) -> (Vec<u8>, Counters) {
    (answer.to_bytes(server.params()), counters)
}

/// Dense matrices and heads.
impl Multiplier for PreparedWeights {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let input = Ciphertexts {
            layout: &self.layout,
            chunks: self.input_chunks(),
            list: single(queries)?,
        };
        let answer = server.linear(input, self, Some(mask), &mut rng)?;
        Ok(sent(server, answer))
    }

    fn memory(&self) -> usize {
        Self::memory(self)
    }
}

impl Multiplier for PreparedCentred {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let input = Ciphertexts {
            layout: &self.centre.layout,
            chunks: self.centre.input_chunks(),
            list: single(queries)?,
        };
        let answer = server.centred(input, self, mask, &mut rng)?;
        Ok(sent(server, answer))
    }

    fn memory(&self) -> usize {
        Self::memory(self)
    }
}

/// `u` of row sums. It is encoded when it is used: it belongs to one inference.
pub(super) struct RowFactors {
    layout: Layout,
    u: Wiped,
}

impl RowFactors {
    pub(super) fn new(layout: Layout, u: &Matrix<u64>) -> Self {
        Self {
            layout,
            u: Wiped::copy(u),
        }
    }
}

impl Multiplier for RowFactors {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let input = Ciphertexts {
            layout: &self.layout,
            chunks: &Chunks::even(&self.layout, self.u.cols()),
            list: single(queries)?,
        };
        let answer = server.row_sums(input, &self.u, mask, &mut rng)?;
        Ok(sent(server, answer))
    }

    fn memory(&self) -> usize {
        8 * self.u.data().len()
    }
}

/// What products slot by slot multiply with, encoded when it is used: scaled rows, products of
/// elements, of one matrix or two.
pub(super) struct SlotFactors {
    layout: Layout,
    /// Of each query, how its columns are cut, and what it is multiplied with.
    factors: Vec<(Chunks, Wiped)>,
}

impl SlotFactors {
    pub(super) fn new<'a>(
        layout: Layout,
        factors: impl IntoIterator<Item = (Chunks, &'a Matrix<u64>)>,
    ) -> Self {
        let copied = |(chunks, factor)| (chunks, Wiped::copy(factor));
        Self {
            layout,
            factors: factors.into_iter().map(copied).collect(),
        }
    }
}

impl Multiplier for SlotFactors {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        agree("queries of the product", queries.len(), self.factors.len())?;
        let terms = self.factors.iter().zip(queries);
        let terms = terms.map(|((chunks, factor), &list)| {
            let layout = &self.layout;
            let input = Ciphertexts {
                layout,
                chunks,
                list,
            };
            (input, &**factor)
        });
        let terms: Vec<_> = terms.collect();
        let answer = server.slotwise(&self.layout, &terms, mask, &mut rng)?;
        Ok(sent(server, answer))
    }

    fn memory(&self) -> usize {
        let elements = self.factors.iter().map(|(_, factor)| factor.data().len());
        8 * elements.sum::<usize>()
    }
}
