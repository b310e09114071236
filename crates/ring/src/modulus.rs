//! The share modulus `p = 2^41 - 2^16 + 1` and arithmetic modulo it.
//!
//! Three properties meet in this prime:
//!
//! * `p ≡ 1 (mod 2N)` for every ring degree `N` up to 32,768, so BFV plaintexts have `N` slots;
//! * it lies just below a power of two (`p = 2^K - C` with `C = 65,535`), so both parties can drop
//!   low bits of their shares locally with an error of at most two units ([`crate::truncate`]);
//! * it has the shape `2^41 - 2^16 + 1`, so reduction is two shifts and two additions.
//!
//! Residues are `u64` values below [`P`]. Functions take reduced residues and return reduced
//! residues. They are straight-line code on secret values: no branch and no table depends on them.

/// Bits of the share modulus: `2^(K-1) < P < 2^K`.
pub const K: u32 = 41;
/// Distance of the modulus from `2^K`.
pub const C: u64 = (1 << C_BITS) - 1;
/// Bits of [`C`], all of them ones: a product with it is a shift and a subtraction.
pub const C_BITS: u32 = 16;
/// The share modulus, a prime.
pub const P: u64 = (1 << K) - C;
/// A generator of the multiplicative group modulo [`P`].
pub const GENERATOR: u64 = 3;

// What the functions below rely on. Another modulus has to pass here first.
const _: () = {
    assert!(1 << (K - 1) < P && P < 1 << K);
    // Lucas' criterion with the prime factors of p - 1: an element of this order proves that p is
    // prime, and generates the whole group.
    const FACTORS: [u64; 4] = [2, 31, 601, 1801];
    assert!(P - 1 == (1 << C_BITS) * FACTORS[1] * FACTORS[2] * FACTORS[3]);
    assert!(pow(GENERATOR, P - 1) == 1);
    let mut i = 0;
    while i < FACTORS.len() {
        assert!(pow(GENERATOR, (P - 1) / FACTORS[i]) != 1);
        i += 1;
    }
    // `reduce` ends below 2·p, and three folds of `reduce_wide` end in 64 bits.
    const LOW: u128 = (1 << K) - 1;
    assert!(LOW + (((u64::MAX >> K) * C) as u128) < 2 * P as u128);
    let fold = LOW + (u128::MAX >> K) * C as u128;
    let fold = LOW + (fold >> K) * C as u128;
    let fold = LOW + (fold >> K) * C as u128;
    assert!(fold <= u64::MAX as u128);
};

/// Subtracts [`P`] once if the value is not below it; the value must be below `2·P`.
#[inline(always)]
const fn reduce_once(x: u64) -> u64 {
    // The mask is all ones exactly when x < P, computed without a branch.
    let t = x.wrapping_sub(P);
    let borrow = ((t as i64) >> 63) as u64;
    t.wrapping_add(P & borrow)
}

/// Returns `a + b mod p`.
#[inline(always)]
pub const fn add(a: u64, b: u64) -> u64 {
    reduce_once(a + b)
}

/// Returns `a - b mod p`.
#[inline(always)]
pub const fn sub(a: u64, b: u64) -> u64 {
    reduce_once(a + P - b)
}

/// Returns `-a mod p`.
#[inline(always)]
pub const fn neg(a: u64) -> u64 {
    reduce_once(P - a)
}

/// Reduces any 64-bit value modulo p.
#[inline(always)]
pub const fn reduce(x: u64) -> u64 {
    // x = h·2^41 + l and 2^41 ≡ 2^16 - 1, with h < 2^23: the sum is below 2^41 + 2^39 < 2p.
    let h = x >> K;
    let l = x & ((1 << K) - 1);
    reduce_once(l + (h << C_BITS) - h)
}

/// Reduces any 128-bit value modulo p.
#[inline(always)]
pub const fn reduce_wide(x: u128) -> u64 {
    // Each fold replaces the part above bit 41 by itself times 2^16 - 1 and so removes 25 bits:
    // 128 -> 103 -> 78 -> 53 bits and a carry, which fits the 64-bit reduction.
    const MASK: u128 = (1 << K) - 1;
    let x = (x & MASK) + (x >> K) * C as u128;
    let x = (x & MASK) + (x >> K) * C as u128;
    let x = (x & MASK) + (x >> K) * C as u128;
    reduce(x as u64)
}

/// Returns `a · b mod p`.
#[inline(always)]
pub const fn mul(a: u64, b: u64) -> u64 {
    reduce_wide(a as u128 * b as u128)
}

/// Returns `a^e mod p`. The exponent is public.
pub const fn pow(a: u64, mut e: u64) -> u64 {
    let mut base = a;
    let mut acc = 1;
    while e > 0 {
        if e & 1 == 1 {
            acc = mul(acc, base);
        }
        base = mul(base, base);
        e >>= 1;
    }
    acc
}

/// Returns the residue of a signed integer.
#[inline(always)]
pub const fn from_signed(x: i64) -> u64 {
    // Two's complement: a negative x is x + 2^64, so 2^64 mod p has to come off again.
    const WRAP: u64 = reduce_wide(1u128 << 64);
    let negative = ((x >> 63) as u64) & WRAP;
    sub(reduce(x as u64), negative)
}

/// Returns the representative of least absolute value, in `[-(p-1)/2, (p-1)/2]`.
#[inline(always)]
pub const fn to_signed(x: u64) -> i64 {
    let above = (((P / 2).wrapping_sub(x) as i64) >> 63) as u64;
    (x as i64) - ((P & above) as i64)
}

/// Draws a uniform residue from a generator, by rejection of the `C` values in `[p, 2^K)`.
pub fn random(rng: &mut impl rand_core::CryptoRng) -> u64 {
    loop {
        let x = rng.next_u64() >> (64 - K);
        if x < P {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_wide_arithmetic(
            a in 0..P,
            b in 0..P,
            x in any::<u64>(),
            w in any::<u128>(),
        ) {
            prop_assert_eq!(add(a, b), (a + b) % P);
            prop_assert_eq!(sub(a, b), (a + P - b) % P);
            prop_assert_eq!(neg(a), (P - a) % P);
            prop_assert_eq!(mul(a, b), (a as u128 * b as u128 % P as u128) as u64);
            prop_assert_eq!(reduce(x), x % P);
            prop_assert_eq!(reduce_wide(w), (w % P as u128) as u64);
        }

        #[test]
        fn signed_round_trip(x in any::<i64>(), a in 0..P) {
            prop_assert_eq!(from_signed(x), (x as i128).rem_euclid(P as i128) as u64);
            prop_assert_eq!(from_signed(to_signed(a)), a);
            prop_assert!(to_signed(a).unsigned_abs() <= P / 2);
        }
    }

    #[test]
    fn edges() {
        for x in [0, 1, P / 2, P / 2 + 1, P - 1] {
            assert_eq!(from_signed(to_signed(x)), x);
            assert_eq!(add(x, neg(x)), 0);
        }
        assert_eq!(reduce_wide(u128::MAX), (u128::MAX % P as u128) as u64);
        assert_eq!(
            from_signed(i64::MIN),
            (i64::MIN as i128).rem_euclid(P as i128) as u64
        );
    }
}
