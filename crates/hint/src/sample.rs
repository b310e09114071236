//! Secrets and errors, without a branch or an address that depends on them.
//!
//! A *wide* error has a standard deviation of hundreds or thousands. It is a sum of centred
//! binomials of 42 coins (deviation 3.24) whose weights are powers of three: each smooths out the
//! steps of the next, three times as wide as they are apart, so the sum is as good as a rounded
//! Gaussian of its deviation.

use crate::params::DEGREE;
use primer_lattice::sample::fill_error;
use primer_lattice::simd::Simd;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Variance of a centred binomial of 42 coins.
const VARIANCE: f64 = 10.5;

/// A distribution of wide errors: so many binomials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide(pub u32);

impl Wide {
    /// What hides weights in a hint, beside the secret: deviation 834.
    pub const HINT_ERROR: Self = Self(6);
    /// The secret of a hint.
    pub const HINT_SECRET: Self = Self(6);

    /// Returns the standard deviation.
    pub fn deviation(self) -> f64 {
        let squares = (0..self.0).map(|i| 9f64.powi(i as i32));
        (VARIANCE * squares.sum::<f64>()).sqrt()
    }
}

/// Draws errors of a wide distribution.
pub fn wide(rng: &mut impl CryptoRng, wide: Wide) -> Zeroizing<Vec<i16>> {
    let simd = Simd::detect();
    let mut sum = Zeroizing::new(vec![0i16; DEGREE]);
    let mut part = Zeroizing::new(vec![0i8; DEGREE]);
    for _ in 0..wide.0 {
        fill_error(simd, rng, &mut part);
        for (sum, part) in sum.iter_mut().zip(part.iter()) {
            *sum = 3 * *sum + i16::from(*part);
        }
    }
    sum
}
