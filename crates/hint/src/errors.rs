//! How far the two shares are from the product.
//!
//! In units of Z_p, one of which is `ρ = q'/p` modulo `q'`; `‖w‖` is the length of a column of W.
//! All parts are independent and have mean zero:
//!
//! | part | variance |
//! |---|---|
//! | rounding of masks: dither and rest, `1/12` each | `‖w‖²/6` |
//! | errors of the message: `Σ D_fk·e_fk` | `24·N·(2^26/12)·10.5 / ρ²` |
//! | error of the key's element: `u·e` | `N·835²·10.5 / ρ²` |
//! | the hint: `(e1 + what is rounded away)·t` | `N·10.5·(835² + 2^28/12) / ρ²` |
//! | `δ` | `10,331²` |
//!
//! For columns of length `2^13` that is a root mean square of 10,870; without `δ` it would be
//! 3,370, of which rounding is 3,344. `tests/relation.rs` measures all of it within 5 %, for
//! columns where rounding dominates and for columns where it does not.

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
