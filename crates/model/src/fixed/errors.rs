//! The errors of products with weights.
//!
//! Where linear steps are silent, the parties' shares of a mask's product are slightly off: the
//! mask is a rounded number, so its rounding error is multiplied by the weights, and both parties'
//! shares have noise of their own. The reference draws errors of the same kind, or is given those
//! of a real run.
//!
//! There the client also embeds its tokens with random signs
//! ([`Graph::signed`](primer_plan::graph::Graph::signed)). That is no error, but truncation does
//! not treat a number and its negative alike: the reference draws signs too, or is given them.

use primer_plan::graph::ValueId;
use primer_ring::matrix::{Matrix, Scratch, product};
use primer_ring::prg::Prg;
use rand_core::Rng;

/// The errors of products with weights.
pub enum Errors<'a> {
    /// None.
    None,
    /// As in silent steps.
    Drawn {
        /// The source of randomness.
        rng: &'a mut Prg,
        /// The standard deviation of what does not depend on the weights, in units of the product.
        deviation: f64,
    },
    /// As in a run that was observed.
    Seen {
        /// Takes the embedding without signs, and returns those of its rows.
        signs: &'a dyn Fn(ValueId, &Matrix<i64>) -> Vec<Sign>,
        /// Takes every linear step's exact result, and makes it what it was.
        sums: &'a mut dyn FnMut(ValueId, &mut Matrix<i64>),
    },
}

/// The sign of an embedded row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The row is unchanged.
    Plus,
    /// The row is negated.
    Minus,
}

impl Errors<'_> {
    /// Adds the error of the product with a matrix, shifted left by `shift`, to `sum`.
    pub(super) fn of_term(
        &mut self,
        weights: &Matrix<i16>,
        shift: u32,
        scratch: &mut Scratch,
        sum: &mut Matrix<i64>,
    ) {
        let Self::Drawn { rng, deviation } = self else {
            return;
        };
        let rounded = rounding(rng, sum.rows(), weights.rows());
        let met = product(&rounded, weights, scratch);
        for (s, met) in sum.data_mut().iter_mut().zip(met.data()) {
            *s += (noise(rng, *deviation) - (met >> ROUNDED_BITS)) << shift;
        }
    }

    /// Adds the error of the product with gains and means, shifted left by `shift`, to `sum`.
    pub(super) fn of_diagonal(
        &mut self,
        (gain, mean): (&[i16], &[i16]),
        shift: u32,
        sum: &mut Matrix<i64>,
    ) {
        let Self::Drawn { rng, deviation } = self else {
            return;
        };
        let rounded = rounding(rng, sum.rows(), gain.len());
        for r in 0..sum.rows() {
            let row = rounded.row(r);
            let pairs = row.iter().zip(mean);
            let shared: i64 = pairs.map(|(e, h)| e * i64::from(*h)).sum();
            for ((s, e), g) in sum.row_mut(r).iter_mut().zip(row).zip(gain) {
                let met = e * i64::from(*g) - shared;
                *s += (noise(rng, *deviation) - (met >> ROUNDED_BITS)) << shift;
            }
        }
    }

    /// Makes the exact result of a linear step what it was in the observed run, if there is one.
    pub(super) fn of_step(&mut self, output: ValueId, sum: &mut Matrix<i64>) {
        if let Self::Seen { sums, .. } = self {
            sums(output, sum);
        }
    }

    /// Returns the signs of embedded rows.
    pub(super) fn signs(&mut self, output: ValueId, embedded: &Matrix<i64>) -> Vec<Sign> {
        let rows = 0..embedded.rows();
        match self {
            Self::None => rows.map(|_| Sign::Plus).collect(),
            Self::Drawn { rng, .. } => {
                let draw = |_| match rng.next_u32() & 1 {
                    0 => Sign::Plus,
                    _ => Sign::Minus,
                };
                rows.map(draw).collect()
            }
            Self::Seen { signs, .. } => signs(output, embedded),
        }
    }
}

/// Fractional bits of a mask's rounding error.
pub(super) const ROUNDED_BITS: u32 = 8;

/// Draws the rounding errors of a matrix of masks, in units of `2^-8`: a dither below one is added,
/// and a uniform rest is dropped.
pub(super) fn rounding(rng: &mut Prg, rows: usize, cols: usize) -> Matrix<i64> {
    let mut bytes = vec![0; 2 * rows * cols];
    rng.fill(&mut bytes);
    let pairs = bytes.as_chunks::<2>().0.iter();
    let all = pairs.map(|[dither, rest]| i64::from(*dither) - i64::from(*rest));
    Matrix::from_vec(rows, cols, all.collect())
}

/// Draws an almost normal number with a standard deviation of `deviation`: the sum of twelve
/// uniform ones.
pub(super) fn noise(rng: &mut Prg, deviation: f64) -> i64 {
    let uniform = |_| f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5;
    ((0..12).map(uniform).sum::<f64>() * deviation).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the mean is zero, and the variances those that `primer_hint::errors` adds up.
    #[test]
    fn errors_have_their_variances() {
        let rng = &mut Prg::new(&[1; 16]);
        let rounded = rounding(rng, 200, 200);
        let unit = f64::from(1 << ROUNDED_BITS);
        let squares = rounded.data().iter().map(|x| (*x as f64 / unit).powi(2));
        let variance = squares.sum::<f64>() / 40_000.0;
        assert!((variance - 1.0 / 6.0).abs() < 0.005, "{variance}");
        let mean = rounded.data().iter().sum::<i64>() as f64 / 40_000.0 / unit;
        assert!(mean.abs() < 0.01, "{mean}");
        let all: Vec<f64> = (0..40_000).map(|_| noise(rng, 1000.0) as f64).collect();
        let variance = all.iter().map(|x| x * x).sum::<f64>() / 40_000.0;
        assert!((variance / 1e6 - 1.0).abs() < 0.03, "{variance}");
    }
}
