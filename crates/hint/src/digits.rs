//! Numbers modulo q as digits from the top.
//!
//! `x/q`, rounded to `DIGITS·DIGIT_BITS` bits, is `Σ_k D_k / 2^(DIGIT_BITS·(k+1))` with centred
//! digits. What is rounded away is worth `q / 2^40`, less than an error of the message costs.

use crate::params::{DIGIT_BITS, DIGITS, Q};

const BITS: u32 = DIGIT_BITS * DIGITS as u32;
const HALF: i64 = 1 << (DIGIT_BITS - 1);

/// Cuts a number below q into centred digits, the most significant first. Modulo q: the top digit's
/// carry is a whole q.
pub fn digits(x: u64) -> [i16; DIGITS] {
    let scaled = (u128::from(x) << BITS) + u128::from(Q / 2);
    let mut rest = (scaled / u128::from(Q)) as i64;
    let mut out = [0; DIGITS];
    for digit in out.iter_mut().rev() {
        let low = ((rest + HALF) & ((1 << DIGIT_BITS) - 1)) - HALF;
        *digit = low as i16;
        rest = (rest - low) >> DIGIT_BITS;
    }
    out
}

/// Returns what each digit is worth modulo `q'`.
pub fn weights(modulus: u64) -> [u64; DIGITS] {
    std::array::from_fn(|k| {
        let shift = DIGIT_BITS * (k as u32 + 1);
        (modulus + (1 << (shift - 1))) >> shift
    })
}

/// What digits leave out of a number, which meets the secret of masks.
pub(crate) struct LeftOut {
    /// What a unit of the last digit is worth modulo `q'`, not rounded.
    last: f64,
    /// What the weights of digits are rounded by.
    rounded: [f64; DIGITS],
}

impl LeftOut {
    pub(crate) fn new(modulus: u64) -> Self {
        let weights = weights(modulus);
        let exact = |k: usize| modulus as f64 / f64::from(DIGIT_BITS * (k as u32 + 1)).exp2();
        Self {
            last: exact(DIGITS - 1),
            rounded: std::array::from_fn(|k| weights[k] as f64 - exact(k)),
        }
    }

    /// Returns `Σ_k g_k·D_k - (q'/q)·x`, modulo `q'`, centred. Double precision leaves a part in a
    /// thousand of it open.
    pub(crate) fn of(&self, x: u64, digits: [i16; DIGITS]) -> f64 {
        let scaled = x as f64 / Q as f64 * f64::from(BITS).exp2();
        let off = scaled.round() - scaled;
        let weights = digits.iter().zip(self.rounded);
        weights.fold(off * self.last, |sum, (&digit, off)| {
            sum + f64::from(digit) * off
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_add_up(x in 0..Q) {
            let digits = digits(x);
            let mut sum = 0i128;
            for (k, digit) in digits.iter().enumerate() {
                prop_assert!((-HALF..HALF).contains(&i64::from(*digit)));
                sum += i128::from(*digit) << (BITS - DIGIT_BITS * (k as u32 + 1));
            }
            // Up to a whole, which is q.
            let whole = 1i128 << BITS;
            let scaled = i128::from(x) * whole;
            let off = (sum * i128::from(Q) - scaled).rem_euclid(whole * i128::from(Q));
            let off = off.min(whole * i128::from(Q) - off);
            prop_assert!(2 * off <= i128::from(Q) + 1);
        }
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_the_difference(x in 0..Q) {
            let modulus = (1u64 << 53) - 77;
            let digits = digits(x);
            let pairs = digits.iter().zip(weights(modulus));
            let sum: i128 = pairs.map(|(&d, w)| i128::from(d) * i128::from(w)).sum();
            let whole = i128::from(modulus) * i128::from(Q);
            let exact = sum * i128::from(Q) - i128::from(x) * i128::from(modulus);
            let exact = (exact + whole / 2).rem_euclid(whole) - whole / 2;
            let exact = exact as f64 / Q as f64;
            let found = LeftOut::new(modulus).of(x, digits);
            prop_assert!((found - exact).abs() < 20.0, "{} {}", found, exact);
        }
    }

    #[test]
    fn the_ends() {
        assert_eq!(digits(0), [0; DIGITS]);
        assert_eq!(digits(Q - 1), [0; DIGITS], "that is minus one");
        assert_eq!(weights(1 << 49)[0], 1 << 36);
    }
}
