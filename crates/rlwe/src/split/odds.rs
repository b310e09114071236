//! How often shares of a product are wrong, and how many bytes `c1` needs for that.
//!
//! Let `x = c0·p/q` and `y` the client's number before it is rounded; `x + y = m + η`. The shares
//! add up to `m` unless a number `k + 1/2` lies between `y` and `y - η`.
//!
//! *Claim.* For an honest client, with `η = η_r + η_w + ζ` and a bound `|ζ| ≤ z`, a coefficient is
//! wrong with probability at most `√(E η_r² + E η_w²) + 2z`, up to the advantage against ring LWE.
//!
//! *Proof.* `η_r` is the rounding of `c1` times the secret, `η_w` the client's errors times the
//! weights, and `ζ` the rest. Replace `a·u + e1` by a uniform polynomial: the event can be checked
//! without `u`, since `ζ` enters by its bound alone. Then `c1` is uniform and independent of `η_w`;
//! its rounding error is independent of `c1'` (but for a factor `1 + 2^b/q`); and `y`, a
//! coefficient of `c1'·s`, is uniform modulo `2^b` given both, as long as `s ≠ 0`. So the
//! probability that a middle between two integers lies between `y` and `y - η_r - η_w`, with `z`
//! added at both ends, is the mean length of that interval, `E|η_r + η_w| + 2z`; and `E|·| ≤ √(E
//! (·)²)`, where the two are independent with mean zero. ∎
//!
//! The weights are masks that the server draws uniformly; each coefficient of their encoding is a
//! linear function of them, so uniform or zero. With `e` the sum of squares of those that meet in
//! one coefficient (`a·F·p²/12` for heads with `a` ciphertexts of a head, `c·N·p²/12` for `c`
//! products in slots of the ring), in units of p:
//!
//! | part of `η` | size | |
//! |---|---|---|
//! | rounding of `c1`, times the secret | `√(0.7·N/12)·p/2^b` | root mean square |
//! | the client's errors, times the weights | `√(10.75·e)·p/q` | root mean square |
//! | the encryption of zero, `e·u + e1·s` | `42·N·p/q` | bound |
//! | `c1` at the client's modulus `Q` | `N·p/Q` | bound |
//! | fractions in 128 bits | `2^-80` | bound |

use super::open::LIMBS;
use crate::error::HeError;
use crate::params::Params;
use primer_ring::modulus::P;

/// The probability with which any share of an inference may be wrong.
pub const ODDS: f64 = 1.0 / (1u64 << 30) as f64;
/// What the rounding of `c1` may add to it in one product: an inference has at most hundreds.
const ROUNDING: f64 = 1.0 / (1u64 << 40) as f64;
/// Bytes of a coefficient of `c1`.
const WIDTHS: [usize; 2] = [13, 14];

/// Variance of a fresh coefficient: the error's 21/2, and at most 1/4 for the rounding of a
/// plaintext.
const FRESH: f64 = 10.75;
/// The largest error.
const ERROR: f64 = 21.0;
/// Share of non-zero coefficients of a secret, and six standard deviations.
const FILLED: f64 = 0.7;
/// What fractions in 128 bits and their rounding may be off by.
const FRACTIONS: f64 = 1.0 / (1u128 << 80) as f64;

/// What a product's odds depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Split {
    /// Coefficients that count, of all ciphertexts of the answer.
    pub(crate) coefficients: usize,
    /// Squares of weights that meet in one coefficient, on average.
    pub(crate) energy: f64,
}

impl Split {
    /// Counts the bytes of a coefficient of `c1`: the fewest with which rounding makes little of
    /// the product wrong.
    pub(crate) fn width(&self, params: &Params) -> usize {
        let odds = |width: usize| self.coefficients as f64 * rounding(params, width);
        let found = WIDTHS.into_iter().find(|&width| odds(width) <= ROUNDING);
        found.unwrap_or(WIDTHS[WIDTHS.len() - 1])
    }

    /// Returns a bound of the probability that one run of the product has a wrong share.
    pub(crate) fn odds(&self, params: &Params) -> f64 {
        self.odds_at(params, self.width(params))
    }

    /// Returns the same with another number of bytes.
    pub(super) fn odds_at(&self, params: &Params, width: usize) -> f64 {
        let n = params.degree() as f64;
        let unit = unit(params, params.data_primes());
        let weights = (FRESH * self.energy).sqrt() * unit;
        let zero = 2.0 * ERROR * n * unit;
        let lifted = n * self::unit(params, LIMBS);
        let each = rounding(params, width).hypot(weights) + 2.0 * (zero + lifted + FRACTIONS);
        self.coefficients as f64 * each
    }
}

/// Returns `p/q` for the modulus of the first `limbs` primes.
fn unit(params: &Params, limbs: usize) -> f64 {
    P as f64 / params.modulus_bits(limbs).exp2()
}

/// Returns the root mean square of what rounding `c1` moves a coefficient by.
fn rounding(params: &Params, width: usize) -> f64 {
    let secret = (FILLED * params.degree() as f64 / 12.0).sqrt();
    secret * P as f64 * (-8.0 * width as f64).exp2()
}

/// Refuses products that together have a wrong share with more than [`ODDS`].
///
/// # Errors
/// [`HeError::Odds`] with both as powers of two.
pub(crate) fn check(odds: f64) -> Result<(), HeError> {
    if odds <= ODDS {
        return Ok(());
    }
    Err(HeError::Odds {
        odds_bits: odds.log2(),
        allowed_bits: ODDS.log2(),
    })
}
