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

/// What a digit is worth modulo `q'`.
pub fn weights(modulus: u64) -> [u64; DIGITS] {
    std::array::from_fn(|k| {
        let shift = DIGIT_BITS * (k as u32 + 1);
        (modulus + (1 << (shift - 1))) >> shift
    })
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

    #[test]
    fn the_ends() {
        assert_eq!(digits(0), [0; DIGITS]);
        assert_eq!(digits(Q - 1), [0; DIGITS], "that is minus one");
        assert_eq!(weights(1 << 49)[0], 1 << 36);
    }
}
