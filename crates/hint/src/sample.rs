//! Secrets and errors, without a branch or an address that depends on them.
//!
//! A *wide* error has a standard deviation of hundreds or thousands. It is a sum of centred
//! binomials of 42 coins (deviation 3.24) weighted by powers of three: each smooths out the steps
//! of the next, which are three apart where it has a deviation of 3.24, up to a ripple of `2^-32`.
//! The sum is as good as a rounded Gaussian except for its tails, which end.

use primer_lattice::sample::{ERROR_BOUND, fill_error};
use primer_lattice::simd::Simd;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Variance of a centred binomial of 42 coins.
pub const BINOMIAL: f64 = 10.5;

/// A distribution of wide errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide {
    /// Powers of three from 1 that weight a binomial each.
    powers: u32,
    /// How many more binomials have the largest weight.
    more: u32,
}

impl Wide {
    /// The secret of a hint: deviation 835.
    pub const HINT_SECRET: Self = Self { powers: 6, more: 0 };
    /// What hides weights in a hint beside it.
    pub const HINT_ERROR: Self = Self::HINT_SECRET;
    /// What is added to the client's shares: deviation 10,331.
    pub const SHARE: Self = Self { powers: 8, more: 1 };

    /// Returns the standard deviation.
    pub fn deviation(self) -> f64 {
        let power = |i: u32| 9f64.powi(i as i32);
        let squares: f64 = (0..self.powers).map(power).sum();
        (BINOMIAL * (squares + f64::from(self.more) * power(self.powers - 1))).sqrt()
    }

    /// Returns a bound that no error exceeds.
    pub const fn bound(self) -> i32 {
        let largest = 3i32.pow(self.powers - 1);
        ERROR_BOUND as i32 * ((3 * largest - 1) / 2 + self.more as i32 * largest)
    }

    /// Stands for the distribution in hashes.
    pub(crate) const fn numbers(self) -> [u64; 2] {
        [self.powers as u64, self.more as u64]
    }
}

const _: () = assert!(
    Wide::HINT_SECRET.bound() <= i16::MAX as i32,
    "secrets are short"
);

/// Draws some errors of a wide distribution.
pub fn wide(rng: &mut impl CryptoRng, wide: Wide, count: usize) -> Zeroizing<Vec<i32>> {
    let simd = Simd::detect();
    let mut sum = Zeroizing::new(vec![0i32; count]);
    let mut part = Zeroizing::new(vec![0i8; count]);
    for index in 0..=wide.more + wide.powers - 1 {
        // The largest weights come first.
        let factor = if index <= wide.more { 1 } else { 3 };
        fill_error(simd, rng, &mut part);
        for (sum, part) in sum.iter_mut().zip(part.iter()) {
            *sum = factor * *sum + i32::from(*part);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DEGREE;
    use primer_ring::prg::Prg;

    #[test]
    fn deviations_are_as_said() {
        let rng = &mut Prg::new(&[1; 16]);
        assert_eq!(Wide::HINT_SECRET.deviation().round(), 835.0);
        assert_eq!(Wide::SHARE.deviation().round(), 10_331.0);
        for kind in [Wide::HINT_SECRET, Wide::SHARE] {
            let mut sums = [0.0; 3];
            let rounds = 20;
            for _ in 0..rounds {
                for &x in wide(rng, kind, DEGREE).iter() {
                    assert!(x.abs() <= kind.bound());
                    let x = f64::from(x) / kind.deviation();
                    sums[0] += x;
                    sums[1] += x * x;
                    sums[2] += x.powi(4);
                }
            }
            let [mean, square, fourth] = sums.map(|sum| sum / f64::from(rounds * DEGREE as i32));
            // 40,960 of them: standard errors 0.005, 0.007 and 0.05.
            assert!(mean.abs() < 0.025, "{mean}");
            assert!((square - 1.0).abs() < 0.035, "{square}");
            assert!((fourth - 3.0).abs() < 0.25, "{fourth}");
        }
    }
}
