//! Weights of the packing without rotations at work, and their sizes.

use super::super::packer::Multiplier;
use super::super::query::Wiped;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::{HeError, agree};
use crate::evaluate::Evaluator;
use crate::subring::dense::DenseWeights;
use crate::subring::heads::HeadWeights;
use crate::subring::slots::SlotShape;
use crate::wire::{self, Described};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// Squares of all entries of a matrix with a diagonal and a term of rank one.
pub(super) fn centred_squares(gain: &[u64], mean: &[u64]) -> f64 {
    let signed = |x: u64| modulus::to_signed(x) as f64;
    let means: f64 = mean.iter().map(|&h| signed(h).powi(2)).sum();
    let diagonal = gain.iter().zip(mean).map(|(&g, &h)| {
        let (g, h) = (signed(g), signed(h));
        (g - h).powi(2) - h.powi(2)
    });
    gain.len() as f64 * means + diagonal.sum::<f64>()
}

pub(super) fn squares<T: Copy + Default + Into<i64>>(matrix: &Matrix<T>) -> f64 {
    let square = |&x: &T| (x.into() as f64).powi(2);
    matrix.data().iter().map(square).sum()
}

/// Signed weights, wiped when dropped.
pub(super) struct Signed(pub(super) Matrix<i64>);

impl Drop for Signed {
    fn drop(&mut self) {
        self.0.data_mut().zeroize();
    }
}

/// Weights of one relation.
pub(super) enum Product {
    Dense(DenseWeights),
    Heads(HeadWeights),
    RowSums(SlotShape, Wiped),
    /// Of scaled rows and of products of elements.
    Slots(SlotShape, [Wiped; 2]),
}

/// Weights, and what an answer made with them says about itself.
pub(super) struct SubringWeights {
    pub(super) described: Described,
    pub(super) len: usize,
    pub(super) weights: Product,
}

impl Multiplier for SubringWeights {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let mut message = wire::start_answer(&server.params, &self.described, self.len);
        let out = wire::answer_ciphertexts(&mut message);
        let (public, work) = (&server.public, &mut server.work.subring);
        let rng = &mut rng;
        let counted = |wanted| agree("queries of the product", queries.len(), wanted);
        let counters = match &self.weights {
            Product::Dense(weights) => weights.answer(public, work, queries, mask, rng, out)?,
            Product::Heads(weights) => {
                counted(1)?;
                weights.answer(public, work, queries[0], mask, rng, out)?
            }
            Product::RowSums(shape, u) => {
                counted(1)?;
                shape.row_sums(public, work, queries[0], u, mask, rng, out)?
            }
            Product::Slots(shape, [u, v]) => {
                counted(2)?;
                let queries = [queries[0], queries[1]];
                shape.products(public, work, queries, [u, v], mask, rng, out)?
            }
        };
        Ok((message, counters))
    }

    fn memory(&self) -> usize {
        match &self.weights {
            Product::Dense(weights) => weights.memory(),
            Product::Heads(weights) => weights.memory(),
            Product::RowSums(_, u) => 8 * u.data().len(),
            Product::Slots(_, [u, v]) => 8 * (u.data().len() + v.data().len()),
        }
    }
}
