//! Noise of products without rotations: what decrypts, and what a client could learn of it.
//!
//! The derivation is in `docs/he-lean.md`; the functions are its formulas. Two questions are kept
//! apart:
//!
//! * *Does an answer decrypt?* Flooding noise has a hard bound, what it hides is some fifty bits
//!   smaller, and the rounding of `c1` meets the secret: a sum of some 5,500 independent uniforms,
//!   with a sub-Gaussian tail. [`Margins`] divides the room between them.
//! * *What does the noise tell?* Let `δ` be the noise of all coefficients that a client is sent,
//!   before flooding. The view differs from one that does not depend on the weights by a
//!   statistical distance of at most `√2·h·‖δ‖₂`, with `h` the Hellinger distance between the flood
//!   and the flood moved by one, and squares of lengths add up over coefficients, answers, products
//!   and inferences. So each product states the mean of its `‖δ‖₂²` ([`Hidden`]), and whoever knows
//!   all products of an inference adds them up.

use crate::error::HeError;
use crate::params::Params;
use primer_lattice::sample::Flood;
use primer_ring::modulus::P;
use primer_ring::pack;

/// Inferences of one client that the bound has to hold for together.
pub const INFERENCES: f64 = 1e5;
/// The statistical distance that they may reach, squared.
pub(crate) const SQUARED_DISTANCE: f64 = 1.0 / (1u128 << 80) as f64;

/// Variance of a fresh coefficient: the error's 21/2, and at most 1/4 for the rounding of a
/// plaintext.
const FRESH: f64 = 10.75;
/// Uniforms of a flood's sum. Three come within 3 % of what any flood of this bound could hide.
const FLOOD_TERMS: usize = 3;
/// Fisher information of the sum of three uniforms in `[-1, 1]`: `1 + ∫₀¹ x²/(3 - x²) dx`.
const FISHER: f64 = 1.1406;
/// Fewest bits of a coefficient of `c1`: rounding is not what an answer's noise consists of, even
/// where the modulus has room to spare.
const LEAST_C1: u32 = 52;
/// The mean square of an answer's noise counts as this at least, half of what it is where flooding
/// fills the room. Random noise has 1/12.
const LEAST_SQUARE: f64 = 0.01;
/// Standard deviations of a sum that is not met once in `2^64` coefficients.
const TAIL: f64 = 9.5;
/// Share of non-zero coefficients of a secret, and six standard deviations.
const FILLED: f64 = 0.7;

/// How the room of a ciphertext modulo q is divided, in units of `q/p`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Margins {
    /// Flooding noise.
    pub(crate) flood: Flood,
    /// Bits of a coefficient of `c0` on the wire.
    pub(crate) c0_bits: u32,
    /// Bits of a coefficient of `c1` on the wire.
    pub(crate) c1_bits: u32,
    /// The most noise of an answer that decrypts: below one half.
    pub(crate) limit: f64,
    /// The mean square of an answer's noise: that of the flood and of rounding.
    pub(crate) square: f64,
}

impl Margins {
    /// Of a parameter set.
    ///
    /// # Errors
    /// If its modulus is too small for any flood.
    pub(crate) fn of(params: &Params) -> Result<Self, HeError> {
        let primes = params.data_primes();
        let room = (params.modulus_bits(primes) - (P as f64).log2()).exp2();
        let bits = (0.4 * room / FLOOD_TERMS as f64).log2().floor();
        if bits < f64::from(*Flood::BITS.start()) {
            let (min, max) = (4, 6);
            return Err(HeError::Primes { primes, min, max });
        }
        let flood = Flood {
            terms: FLOOD_TERMS,
            // A larger modulus has room to spare.
            bits: (bits as u32).min(*Flood::BITS.end()),
        };
        // What is hidden is held below 2^-20 of the room by `Hidden::check`.
        let fixed = flood.bound() / room + 2f64.powi(-20) + 1e-3;
        let secret = (FILLED * params.degree() as f64 / 12.0).sqrt();
        // Fractions are short by some 2^-59: less than a hundredth of a unit of either half.
        let limit = |c1_bits: u32| {
            let unit = |bits: u32| P as f64 * (-f64::from(bits)).exp2() * 1.016;
            fixed + TAIL * secret * unit(c1_bits) + 0.5 * unit(c1_bits - 6)
        };
        let found = (LEAST_C1..=57).find(|&bits| limit(bits) < 0.5);
        let c1_bits = found.ok_or(HeError::NoiseBudget {
            noise_bits: limit(57).log2(),
            room_bits: -1.0,
        })?;
        Ok(Self {
            flood,
            c0_bits: c1_bits - 6,
            c1_bits,
            limit: limit(c1_bits),
            square: {
                let flood =
                    flood.terms as f64 / 3.0 * (f64::from(flood.bits).exp2() / room).powi(2);
                let unit = P as f64 * (-f64::from(c1_bits)).exp2();
                (1.02 * (flood + (secret * unit).powi(2))).max(LEAST_SQUARE)
            },
        })
    }

    /// The largest mean square of so many coefficients' noise that an honest answer has once in
    /// `2^64`, by Bernstein's inequality: the square of a sum of three uniforms is at most nine
    /// times its mean, and has a variance of 1.6 times the square of it. Random noise has 1/12,
    /// which is more from a hundred coefficients on: a wrong key is seen for certain.
    pub(crate) fn largest_mean_square(&self, coefficients: usize) -> f64 {
        let (n, bits) = (coefficients as f64, 64.0 * std::f64::consts::LN_2);
        let linear = 6.0 * bits;
        let beyond = (linear + (linear * linear + 4.0 * n * 3.2 * bits).sqrt()) / (2.0 * n);
        self.square * (1.0 + beyond)
    }

    /// Bytes of an answer's ciphertext of which so many coefficients of `c0` are sent.
    pub(crate) fn answer_len(&self, degree: usize, sent: usize) -> usize {
        let second = pack::packed_len(degree, self.c1_bits).unwrap_or(usize::MAX / 4);
        self.first_len(sent) + second
    }

    /// The share of `c0`, which comes first.
    pub(crate) fn first_len(&self, sent: usize) -> usize {
        pack::packed_len(sent, self.c0_bits).unwrap_or(usize::MAX / 4)
    }

    /// What a squared length is multiplied with to bound a squared statistical distance: `2h²`,
    /// which is a quarter of the Fisher information of the flood's density.
    fn squared_per_length(&self) -> f64 {
        FISHER / 4.0 * (-2.0 * f64::from(self.flood.bits)).exp2()
    }
}

/// What flooding hides in one product: the mean squared length of the noise in all coefficients
/// that are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hidden {
    coefficients: f64,
    /// Mean square of one coefficient.
    square: f64,
}

impl Hidden {
    /// For `coefficients` coefficients whose squares are, on average, at most those of a fresh
    /// ciphertext times `weights`: the sum of the squares of all weights that meet in one.
    pub(crate) fn new(params: &Params, coefficients: usize, weights: f64) -> Self {
        // The encryption of zero: e·u and e1·s, two thirds of N products of variance 21/2 each.
        let zero = 14.0 * params.degree() as f64 + 1.0;
        Self {
            coefficients: coefficients as f64,
            square: FRESH * weights + zero,
        }
    }

    /// A bound of the squared statistical distance that one run of the product adds.
    pub(crate) fn squared_distance(&self, margins: &Margins) -> f64 {
        self.coefficients * self.square * margins.squared_per_length()
    }

    /// Refuses a product whose answers would not decrypt, or that would reach the distance of a
    /// client's life alone.
    ///
    /// # Errors
    /// [`HeError::NoiseBudget`] with the noise and what would fit.
    pub(crate) fn check(&self, params: &Params) -> Result<(), HeError> {
        let margins = Margins::of(params)?;
        check_lifetime(self.squared_distance(&margins)).map_err(|_| {
            let most = SQUARED_DISTANCE / INFERENCES / margins.squared_per_length();
            HeError::NoiseBudget {
                noise_bits: self.square.log2() / 2.0,
                room_bits: (most / self.coefficients).log2() / 2.0,
            }
        })?;
        let room = params.modulus_bits(params.data_primes()) - (P as f64).log2();
        let noise_bits = (12.0 * self.square.sqrt()).log2();
        let room_bits = room - 20.0;
        if noise_bits > room_bits {
            return Err(HeError::NoiseBudget {
                noise_bits,
                room_bits,
            });
        }
        Ok(())
    }
}

/// Refuses a squared distance of one inference with which [`INFERENCES`] would exceed `2^-40`.
///
/// # Errors
/// [`HeError::Distance`] with both as powers of two.
pub(crate) fn check_lifetime(squared: f64) -> Result<(), HeError> {
    let life = squared * INFERENCES;
    if life <= SQUARED_DISTANCE {
        return Ok(());
    }
    Err(HeError::Distance {
        distance_bits: life.log2() / 2.0,
        allowed_bits: SQUARED_DISTANCE.log2() / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Hellinger distance between a sum of three uniforms and itself moved by one, from the
    /// definition.
    #[test]
    fn the_flood_moves_as_little_as_its_fisher_information_says() {
        for half in [50usize, 200] {
            let len = 2 * half;
            let mut density = vec![1.0];
            for _ in 0..FLOOD_TERMS {
                let mut next = vec![0.0; density.len() + len - 1];
                for (i, p) in density.iter().enumerate() {
                    next[i..i + len]
                        .iter_mut()
                        .for_each(|q| *q += p / len as f64);
                }
                density = next;
            }
            let at = |i: usize| density.get(i).copied().unwrap_or(0.0);
            let steps = (1..=density.len()).map(|i| (at(i).sqrt() - at(i - 1).sqrt()).powi(2));
            let squared = (steps.sum::<f64>() + at(0)) / 2.0;
            let claimed = FISHER / 8.0 / (half as f64).powi(2);
            assert!(
                (squared / claimed - 1.0).abs() < 2.0 / half as f64,
                "{squared} {claimed}"
            );
            // The distance itself, for one coefficient moved by five.
            let moved = (0..density.len() + 5).map(|i| {
                let from = i.checked_sub(5).map_or(0.0, at);
                (at(i) - from).abs()
            });
            assert!(moved.sum::<f64>() / 2.0 < (2.0 * claimed).sqrt() * 5.0 * 1.05);
        }
    }

    #[test]
    fn rooms_of_four_to_six_primes() {
        for (primes, bits, c1_bits) in [(4, 76, 52), (5, 106, 52), (6, 115, 52)] {
            let params = Params::without_rotations(8192, primes).unwrap();
            let margins = Margins::of(&params).unwrap();
            assert_eq!((margins.flood.bits, margins.c1_bits), (bits, c1_bits));
            assert!(margins.limit < 0.5);
        }
        for primes in [2, 3] {
            let params = Params::without_rotations(8192, primes).unwrap();
            assert!(matches!(
                Margins::of(&params),
                Err(HeError::Primes { min: 4, max: 6, .. })
            ));
        }
    }

    #[test]
    fn a_life_of_bert_base_fits_columns_of_length_two_to_the_fourteen() {
        let params = Params::without_rotations(8192, 4).unwrap();
        let margins = Margins::of(&params).unwrap();
        // 12 layers of 30 tokens, 16 columns of length 2^14 in a block.
        let coefficients = 12 * 30 * (2304 + 768 + 3072 + 768);
        let hidden = |column: f64| Hidden::new(&params, coefficients, 16.0 * column * column);
        let fits = hidden(2f64.powi(14));
        assert!(fits.check(&params).is_ok());
        assert!(check_lifetime(fits.squared_distance(&margins)).is_ok());
        let beyond = hidden(2f64.powi(15));
        assert!(matches!(
            beyond.check(&params),
            Err(HeError::NoiseBudget { .. })
        ));
        let twice = 2.0 * fits.squared_distance(&margins);
        assert!(matches!(
            check_lifetime(twice),
            Err(HeError::Distance { .. })
        ));
    }
}
