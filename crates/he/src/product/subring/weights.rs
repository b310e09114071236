//! Weights of the packing without rotations at work, and their sizes.

use super::super::packer::Multiplier;
use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::subring::dense::DenseWeights;
use crate::wire::{self, Described, Told};
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

/// Weights, and what an answer made with them says about itself.
pub(super) struct SubringWeights {
    pub(super) described: Described,
    pub(super) len: usize,
    pub(super) weights: DenseWeights,
}

impl Multiplier for SubringWeights {
    fn answer(
        &self,
        server: &mut Evaluator,
        queries: &[&[SeededCiphertext]],
        mask: &Matrix<u64>,
        mut rng: &mut dyn CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let (params, described) = (&server.params, &self.described);
        let mut message = wire::start_answer(params, Told::Both, described, self.len);
        let out = wire::answer_ciphertexts(&mut message);
        let (public, work) = (&server.public, &mut server.work.subring);
        let counters = (self.weights).answer(public, work, queries, mask, &mut rng, out)?;
        Ok((message, counters))
    }

    fn memory(&self) -> usize {
        self.weights.memory()
    }
}
