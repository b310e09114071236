//! Speed of the products at evaluation points on this machine.

use crate::kernel::points::{PointSums, PointTerms, PointWeights, Points, multiply};
use crate::prime::Prime;
use crate::simd::Simd;
use primer_ring::gemm::{self, Layout};
use primer_ring::measure::best_by;
use primer_ring::prg::Prg;
use rand_core::Rng;

/// The matrices of one limb: a product of rows and terms at every point.
#[derive(Debug, Clone, Copy)]
pub struct PointShape {
    /// The points.
    pub points: Points,
    /// Rows of the weights.
    pub rows: usize,
    /// Terms of a sum.
    pub terms: usize,
}

impl PointShape {
    /// Returns the scores of all heads of a BERT-base layer with 128 tokens, as products of two
    /// secrets pack them.
    pub fn heads() -> Self {
        Self {
            points: Points::new(8192, 128),
            rows: 64,
            terms: 32,
        }
    }

    /// Returns the number of multiply-adds of one limb.
    pub const fn multiply_adds(self) -> usize {
        2 * self.points.degree() * self.rows * self.terms
    }

    /// Draws random weights and terms of this shape, and makes room for the sums.
    pub fn random(self, rng: &mut Prg) -> (PointWeights, PointTerms, PointSums) {
        let Self {
            points,
            rows,
            terms,
        } = self;
        let (prime, simd) = (Prime::largest(1)[0], Simd::detect());
        let mut draw =
            |len: usize| -> Vec<u32> { (0..len).map(|_| rng.next_u32() % prime.value()).collect() };
        let mut weights = PointWeights::zeros(prime, points, rows, terms);
        for block in 0..weights.blocks() {
            let len = weights.block(block).len() * terms * points.count();
            weights.write(simd, block, &draw(len));
        }
        let n = points.degree();
        let values = draw(2 * terms * n);
        let halves: Vec<_> = values
            .chunks_exact(2 * n)
            .map(|c| [&c[..n], &c[n..]])
            .collect();
        let mut data = PointTerms::zeros(prime, points, terms);
        for (mut place, halves) in data.slots().zip(halves.chunks(8)) {
            place.put(simd, halves);
        }
        (weights, data, PointSums::zeros(points, rows))
    }

    /// Measures billions of multiply-adds per second, one thread, best of some repetitions, by a
    /// clock that counts seconds: of the wall, or of the processor on a busy machine.
    pub fn gmac_per_s(self, clock: &impl Fn() -> f64, repetitions: usize, rng: &mut Prg) -> f64 {
        let (weights, terms, mut sums) = self.random(rng);
        let simd = Simd::detect();
        let seconds = best_by(clock, repetitions, || {
            multiply(simd, &weights, &terms, &mut sums);
        });
        self.multiply_adds() as f64 / seconds / 1e9
    }

    /// Measures the same for double-precision `gemm` on matrices of the same shape, one for each
    /// point: what the sums would cost if no number had to be exact.
    pub fn double_gmac_per_s(self, clock: &impl Fn() -> f64, repetitions: usize) -> f64 {
        let Self {
            points,
            rows,
            terms,
        } = self;
        let (count, columns) = (points.count(), 2 * points.run());
        let weights = vec![1.5; count * rows * terms];
        let data = vec![2.5; count * terms * columns];
        let mut out = vec![0.0; count * rows * columns];
        let seconds = best_by(clock, repetitions, || {
            for f in 0..count {
                gemm::f64(
                    &weights[f * rows * terms..][..rows * terms],
                    Layout::rows(rows, terms),
                    &data[f * terms * columns..][..terms * columns],
                    Layout::rows(terms, columns),
                    &mut out[f * rows * columns..][..rows * columns],
                );
            }
        });
        self.multiply_adds() as f64 / seconds / 1e9
    }
}
