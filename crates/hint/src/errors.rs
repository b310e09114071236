//! How far the two shares are from the product, in units of Z_p: `docs/rlwe.md`, section 2.

use crate::params::{DEGREE, DIGIT_BITS, HINT_BITS, PACKING_BITS, TERMS};
use crate::ring::Packing;
use crate::sample::{BINOMIAL, Wide};
use primer_ring::modulus::P;

/// Returns the standard deviation of what does not depend on the weights: errors of the message, of
/// its key, of the hint, and the noise on the client's shares.
pub fn fixed() -> f64 {
    let n = DEGREE as f64;
    let digit = f64::from(1u32 << DIGIT_BITS).powi(2) / 12.0;
    let messages = TERMS as f64 * n * digit * BINOMIAL;
    let key = n * Wide::HINT_SECRET.deviation().powi(2) * BINOMIAL;
    let dropped = (f64::from(PACKING_BITS - HINT_BITS)).exp2().powi(2) / 12.0;
    let hint = n * BINOMIAL * (Wide::HINT_ERROR.deviation().powi(2) + dropped);
    // Modulo q', in which a unit of Z_p is worth this.
    let unit = Packing::get().modulus() as f64 / P as f64;
    ((messages + key + hint) / unit.powi(2) + Wide::SHARE.deviation().powi(2)).sqrt()
}

/// Returns the standard deviation of the error of an output whose column of weights has a length:
/// what masks are rounded by meets them.
pub fn deviation(column: f64) -> f64 {
    (column.powi(2) / 6.0 + fixed().powi(2)).sqrt()
}
