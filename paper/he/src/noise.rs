//! Noise: bounds that hold always, and what they leave room for.
//!
//! Every bound here is a worst case over weights, messages and random choices: errors are at most
//! [`ERROR_BOUND`] `B = 21` by construction, secrets at most 1, digits below `2^30`. Noise of a
//! ciphertext is the largest coefficient of `c0 + c1·s - q·m/p`. The functions are, in this order:
//!
//! 1. Fresh: `B + 1/2`. A plaintext is scaled as `round(q·m/p)`, coefficient by coefficient, so
//!    sums and products may wrap modulo p without adding noise.
//! 2. Key switching, before rounding: `κ = L·N·2^30·B/P ≈ L·N·B = 2^20` for `L` data primes.
//! 3. Rounding after a division: `ρ = (N+1)/2`.
//! 4. Product with a plaintext: the sum of its coefficients' absolute values. Slot-packed
//!    plaintexts have coefficients up to `p/2` no matter what the slots hold, so a 15-bit weight
//!    costs what a 41-bit one costs: `γ(k) = k·p/2` for `k` non-zero coefficients. Weights of a
//!    layout with cells of `F` slots have `k = 2F`; plaintexts that depend on the token have `k =
//!    N`.
//! 5. A matrix product sums `t` terms (input chunks, baby steps, giant steps), divides once, and
//!    rotates `G` sums: `t·γ(2F)·(B + 1/2 + κ) + G·(κ + ρ) + ρ`.
//!
//! Tests compare all of them with measured noise; `paper/docs/he.md` has the resulting figures.

use crate::error::HeError;
use crate::params::{ANSWER_LIMBS, Params, flood_limbs};
use primer_lattice::sample::{ERROR_BOUND, FLOOD_BITS, FLOOD_TERM_BITS};
use primer_ring::modulus::P;

/// Statistical security of flooding, in bits.
pub(crate) const STATISTICAL_BITS: u32 = 40;
/// The statistical distance that all answers of a client's life may reach, squared.
pub(crate) const SQUARED_DISTANCE: f64 = 1.0 / (1u128 << (2 * STATISTICAL_BITS)) as f64;

const ERROR: f64 = ERROR_BOUND as f64;

/// Bounds the noise of a fresh symmetric ciphertext: its error and the rounding of the scaled
/// plaintext.
pub(crate) fn fresh() -> f64 {
    ERROR + 0.5
}

/// Bounds what switching one key adds, before any rounding: digits times errors, divided by `P`.
pub(crate) fn key_switch(params: &Params) -> f64 {
    let special = f64::from(params.prime(params.data_primes()).value());
    params.data_primes() as f64 * params.degree() as f64 * 2f64.powi(30) * ERROR / special
}

/// Bounds rounding after a division: half a unit in `c0`, and half a unit times each coefficient of
/// `s`.
pub(crate) fn rounding(params: &Params) -> f64 {
    (params.degree() as f64 + 1.0) / 2.0
}

/// Returns the factor by which a plaintext of `coefficients` non-zero coefficients grows noise: the
/// sum of their absolute values, each at most `p/2`.
pub(crate) fn growth(coefficients: usize) -> f64 {
    coefficients as f64 * (P as f64 / 2.0)
}

/// Bounds noise after division from all data primes to those at which answers are flooded.
fn at_flooding(params: &Params, noise: f64) -> f64 {
    let bits = params.modulus_bits(params.data_primes()) - params.modulus_bits(flood_limbs(params));
    // Several divisions in a row: the rounding of all but the last is divided again.
    let roundings = if bits > 0.0 {
        rounding(params) * (1.0 + 2f64.powi(-28))
    } else {
        0.0
    };
    noise * (-bits).exp2() + roundings
}

/// Bounds everything that flooding has to hide: the answer's own noise (given at all data primes),
/// the noise of the fresh encryption of zero, and the rounding of the mask.
pub(crate) fn hidden(params: &Params, noise: f64) -> f64 {
    let n = params.degree() as f64;
    at_flooding(params, noise) + ERROR * (2.0 * n + 1.0) + 0.5
}

/// Bounds the noise of a finished answer, flooded and at the answer's modulus.
pub(crate) fn answer(params: &Params, noise: f64) -> f64 {
    let bits = params.modulus_bits(flood_limbs(params)) - params.modulus_bits(ANSWER_LIMBS);
    let flooded = hidden(params, noise) + f64::from(FLOOD_BITS).exp2();
    flooded * (-bits).exp2() + rounding(params) * (1.0 + 2f64.powi(-28))
}

/// Returns the largest noise that decrypts at a modulus: `q/2p` minus a unit.
pub(crate) fn capacity(params: &Params, limbs: usize) -> f64 {
    (params.modulus_bits(limbs) - 1.0).exp2() / P as f64 - 1.0
}

/// Root of the Fisher information of flooding noise (a sum of eight uniforms), in units of one
/// term: 0.6140.
const FISHER: f64 = 0.615;

/// Returns a bound of the squared statistical distance between an answer ciphertext and one that
/// carries the same message with noise independent of the weights: half the length of the hidden
/// noise times the root of the flood's Fisher information, squared.
///
/// Squares of several answers add up.
pub(crate) fn squared_distance(params: &Params, noise: f64) -> f64 {
    let square = params.degree() as f64 * hidden(params, noise).powi(2);
    square * (FISHER / 2.0).powi(2) * (-2.0 * f64::from(FLOOD_TERM_BITS)).exp2()
}

/// Returns the same as a power of two, not squared.
#[cfg(test)]
pub(crate) fn distance_bits(params: &Params, noise: f64) -> f64 {
    squared_distance(params, noise).log2() / 2.0
}

/// Refuses an operation whose answers could not be flooded and decrypted.
///
/// # Errors
/// [`HeError::NoiseBudget`] with the bound and the room.
pub(crate) fn check(params: &Params, noise: f64) -> Result<(), HeError> {
    let refuse = |noise: f64, room: f64| {
        Err(HeError::NoiseBudget {
            noise_bits: noise.log2(),
            room_bits: room.log2(),
        })
    };
    let hidden = hidden(params, noise);
    let room = f64::from(FLOOD_TERM_BITS - STATISTICAL_BITS).exp2();
    if hidden > room {
        return refuse(hidden, room);
    }
    for (noise, limbs) in [
        (noise, params.data_primes()),
        (hidden + f64::from(FLOOD_BITS).exp2(), flood_limbs(params)),
        (answer(params, noise), ANSWER_LIMBS),
    ] {
        if noise > capacity(params, limbs) {
            return refuse(noise, capacity(params, limbs));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{products, rotating};

    #[test]
    fn small_parameters_have_no_room_for_products() {
        let small = rotating(4096, 2).unwrap();
        assert!(matches!(
            check(&small, fresh()),
            Err(HeError::NoiseBudget { .. })
        ));
        let five = rotating(8192, 5).unwrap();
        assert!(matches!(
            check(&five, 2f64.powi(79)),
            Err(HeError::NoiseBudget { .. })
        ));
        let six = products();
        assert!(check(&six, 2f64.powi(93)).is_ok());
        assert!(matches!(
            check(&six, 2f64.powi(95)),
            Err(HeError::NoiseBudget { .. })
        ));
        // A product of 768 by 768, and a thousand of them.
        assert!(distance_bits(&six, 2f64.powf(79.6)) < -49.0);
        assert!(distance_bits(&six, 2f64.powf(79.6)) + 1000f64.log2() / 2.0 < -44.0);
    }
}
