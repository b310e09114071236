//! Arithmetic modulo one NTT prime.
//!
//! Every limb of a ciphertext lives modulo a prime `q` with `2^29 < q < 2^30` and `q ≡ 1 (mod
//! 2^15)`, so that the negacyclic transform exists for every degree up to 16,384; larger rings,
//! which only comparators use, take primes with a higher power of two ([`Prime::falling`]). The
//! small ring of hints has room for two shorter primes only ([`Prime::falling_below`]). Values are
//! `u32`. Three forms of multiplication are used, each where it costs least:
//!
//! * *Shoup*: one factor is fixed and carries `⌊w·2^32/q⌋` with it (transforms, scalings);
//! * *Montgomery*: one factor is stored as `w·2^32 mod q`, so that a sum of products is reduced by
//!   two 32-bit multiplications (keys and weights);
//! * *Barrett*: both factors are plain (rare).

/// A power of two that divides `q - 1` for every 30-bit prime in use.
pub const TWO_ADICITY: u32 = 15;
/// A power of two that divides `q - 1` for every prime in use: degrees up to 2,048.
pub const MIN_TWO_ADICITY: u32 = 12;
/// Bits of a prime.
pub const PRIME_BITS: std::ops::RangeInclusive<u32> = 22..=30;

/// An NTT prime with what its reductions need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prime {
    q: u32,
    /// `⌊2^(2·bits) / q⌋`, below `2^(bits + 1)`.
    barrett: u32,
    /// `q^-1 mod 2^32`.
    inverse: u32,
    /// The number of its bits.
    bits: u32,
}

/// A fixed factor with its Shoup quotient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shoup {
    /// The factor, reduced.
    pub value: u32,
    /// `⌊value·2^32 / q⌋`.
    pub quotient: u32,
}

impl Prime {
    /// Makes a prime from its value.
    ///
    /// # Panics
    /// If the value is not a prime of the right shape: parameters choose from [`Prime::largest`]
    /// and [`Prime::falling_below`] only.
    pub fn new(q: u32) -> Self {
        let bits = u32::BITS - q.leading_zeros();
        assert!(PRIME_BITS.contains(&bits) && q % (1 << MIN_TWO_ADICITY) == 1 && is_prime(q));
        let mut inverse = 1u32;
        for _ in 0..5 {
            // Newton's step doubles the number of correct low bits.
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(q.wrapping_mul(inverse)));
        }
        Self {
            q,
            barrett: ((1u64 << (2 * bits)) / u64::from(q)) as u32,
            inverse,
            bits,
        }
    }

    /// Returns the `count` largest usable primes, in falling order.
    ///
    /// # Panics
    /// If there are fewer (there are some 1,500).
    pub fn largest(count: usize) -> Vec<Self> {
        let found: Vec<_> = Self::falling(TWO_ADICITY).take(count).collect();
        assert_eq!(found.len(), count, "there are that many 30-bit NTT primes");
        found
    }

    /// Returns all 30-bit primes that are 1 modulo a power of two, in falling order.
    ///
    /// # Panics
    /// If the power is below the one that every prime has.
    pub fn falling(log: u32) -> impl Iterator<Item = Self> {
        assert!((TWO_ADICITY..29).contains(&log));
        Self::falling_below(1 << 30, log).take_while(|prime| prime.bits == 30)
    }

    /// Returns all primes below a bound that are 1 modulo a power of two, in falling order.
    ///
    /// # Panics
    /// If the bound is above `2^30`, or the power is below the one that every prime has.
    pub fn falling_below(bound: u32, log: u32) -> impl Iterator<Item = Self> {
        assert!(bound <= 1 << 30 && (MIN_TWO_ADICITY..29).contains(&log));
        let step = 1u32 << log;
        let first = (bound - 2) / step * step + 1;
        (0..=first / step)
            .map(move |i| first - i * step)
            .take_while(|q| q >> (PRIME_BITS.start() - 1) > 0)
            .filter(|&q| is_prime(q))
            .map(Self::new)
    }

    /// Returns the prime itself.
    #[inline(always)]
    pub const fn value(self) -> u32 {
        self.q
    }

    /// Returns `q^-1 mod 2^32`.
    #[inline(always)]
    pub const fn montgomery_inverse(self) -> u32 {
        self.inverse
    }

    /// Returns `a + b`.
    #[inline(always)]
    pub const fn add(self, a: u32, b: u32) -> u32 {
        reduce_once(a + b, self.q)
    }

    /// Returns `a - b`.
    #[inline(always)]
    pub const fn sub(self, a: u32, b: u32) -> u32 {
        reduce_once(a + self.q - b, self.q)
    }

    /// Returns `-a`.
    #[inline(always)]
    pub const fn neg(self, a: u32) -> u32 {
        reduce_once(self.q - a, self.q)
    }

    /// Reduces any value below `2^(2·bits)` modulo `q`: below `2^60` for 30-bit primes.
    #[inline(always)]
    pub const fn reduce60(self, x: u64) -> u32 {
        // The quotient is short by at most 2.
        let high = (x >> (self.bits - 1)) as u32 as u64;
        let quotient = (high * self.barrett as u64) >> (self.bits + 1);
        let r = (x as u32).wrapping_sub((quotient as u32).wrapping_mul(self.q));
        reduce_once(reduce_once(r, 2 * self.q), self.q)
    }

    /// Reduces any 64-bit value modulo a 30-bit prime.
    #[inline(always)]
    pub const fn reduce(self, x: u64) -> u32 {
        debug_assert!(self.bits == 30);
        // The top 28 bits are worth 2^36 each: a 58-bit product and a 36-bit rest.
        let unit = self.reduce60(1 << 36) as u64;
        self.reduce60((x >> 36) * unit + (x & ((1 << 36) - 1)))
    }

    /// Returns `a · b`.
    #[inline(always)]
    pub const fn mul(self, a: u32, b: u32) -> u32 {
        self.reduce60(a as u64 * b as u64)
    }

    /// Returns `a^e`; the exponent is public.
    pub const fn pow(self, a: u32, mut e: u64) -> u32 {
        let (mut base, mut acc) = (a, 1);
        while e > 0 {
            if e & 1 == 1 {
                acc = self.mul(acc, base);
            }
            base = self.mul(base, base);
            e >>= 1;
        }
        acc
    }

    /// Returns `a^-1` for a public, non-zero `a`.
    pub const fn invert(self, a: u32) -> u32 {
        self.pow(a, self.q as u64 - 2)
    }

    /// Prepares a fixed factor for [`Prime::mul_shoup`].
    pub const fn shoup(self, value: u32) -> Shoup {
        Shoup {
            value,
            quotient: (((value as u64) << 32) / self.q as u64) as u32,
        }
    }

    /// Returns `a · w` for any 32-bit `a`.
    #[inline(always)]
    pub const fn mul_shoup(self, a: u32, w: Shoup) -> u32 {
        reduce_once(self.mul_shoup_lazy(a, w), self.q)
    }

    /// Returns `a · w` up to one `q`, for any 32-bit `a`.
    #[inline(always)]
    pub const fn mul_shoup_lazy(self, a: u32, w: Shoup) -> u32 {
        let quotient = ((a as u64 * w.quotient as u64) >> 32) as u32;
        a.wrapping_mul(w.value)
            .wrapping_sub(quotient.wrapping_mul(self.q))
    }

    /// Returns `a·2^32`: the stored form of a factor that [`Prime::redc`] undoes.
    #[inline(always)]
    pub const fn to_montgomery(self, a: u32) -> u32 {
        self.mul(a, self.reduce60(1 << 32))
    }

    /// Returns `x·2^-32` for `x < 2^63`, or `x < 2^32·3q` if `q` is shorter than 30 bits.
    #[inline(always)]
    pub const fn redc(self, x: u64) -> u32 {
        let m = (x as u32).wrapping_mul(self.inverse);
        let t = ((m as u64 * self.q as u64) >> 32) as u32;
        // High part below 2^31, plus q: below 2^31 + 2^30, at most 3q and a little.
        let r = ((x >> 32) as u32) + self.q - t;
        reduce_once(reduce_once(reduce_once(r, 2 * self.q), self.q), self.q)
    }

    /// Returns the residue of a small signed number, `|x| < q`.
    #[inline(always)]
    pub const fn from_signed(self, x: i32) -> u32 {
        (x + (self.q as i32 & (x >> 31))) as u32
    }

    /// Returns the residue of any signed number below `2^(2·bits)` in absolute value.
    #[inline(always)]
    pub const fn from_signed_wide(self, x: i64) -> u32 {
        let negative = (x >> 63) as u32;
        let r = self.reduce60(x.unsigned_abs());
        reduce_once(
            (r ^ negative).wrapping_sub(negative).wrapping_add(self.q),
            self.q,
        )
    }

    /// Returns a primitive root of unity of order `2^log`.
    ///
    /// # Panics
    /// If the order does not divide `q - 1`.
    pub fn root_of_unity(self, log: u32) -> u32 {
        assert!(u64::from(self.q - 1).is_multiple_of(1 << log));
        let order = u64::from(self.q - 1);
        // A non-residue raised to (q-1)/2^log has exactly that order.
        let g = (2..)
            .find(|&g| self.pow(g, order / 2) == self.q - 1)
            .expect("half of all residues are non-residues");
        self.pow(g, order >> log)
    }
}

/// Returns `x - q` if `x >= q` and `x` otherwise, without a branch; `x` below `2^32`.
#[inline(always)]
pub const fn reduce_once(x: u32, q: u32) -> u32 {
    let t = x.wrapping_sub(q);
    // Unsigned minimum: an underflow wraps to a larger number.
    if t < x { t } else { x }
}

fn is_prime(q: u32) -> bool {
    q > 2
        && q % 2 == 1
        && (3..)
            .step_by(2)
            .take_while(|d| d * d <= u64::from(q))
            .all(|d| u64::from(q) % d != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_primes_are_distinct_and_shaped() {
        let primes = Prime::largest(16);
        assert!(primes.windows(2).all(|w| w[0].value() > w[1].value()));
        for p in primes {
            let root = p.root_of_unity(15);
            assert_eq!(p.pow(root, 1 << 14), p.value() - 1);
            assert_eq!(p.value().wrapping_mul(p.montgomery_inverse()), 1);
        }
    }

    #[test]
    fn shorter_primes_fall_from_their_bound() {
        let found: Vec<Prime> = Prime::falling_below(94_906_265, 12).take(2).collect();
        assert!(found[0].value() > found[1].value());
        for prime in found {
            assert_eq!(prime.value() % 4096, 1);
            assert!(prime.value() < 94_906_265 && prime.value() > 94_000_000);
        }
        assert_eq!(
            Prime::falling(15).next(),
            Prime::falling_below(1 << 30, 15).next()
        );
    }

    proptest! {
        #[test]
        fn shorter_primes_agree_with_wide_arithmetic(
            bits in 22u32..=29,
            a in any::<u32>(),
            b in any::<u32>(),
            x in any::<u64>(),
        ) {
            let p = Prime::falling_below(1 << bits, 12).next().unwrap();
            let q = u64::from(p.value());
            let (ra, rb) = (a % p.value(), b % p.value());
            prop_assert_eq!(u64::from(p.mul(ra, rb)), u64::from(ra) * u64::from(rb) % q);
            let x = x >> (64 - 2 * bits);
            prop_assert_eq!(u64::from(p.reduce60(x)), x % q);
            prop_assert_eq!(p.redc(u64::from(ra) * u64::from(p.to_montgomery(rb))), p.mul(ra, rb));
            let product = u64::from(a) * u64::from(rb) % q;
            prop_assert_eq!(u64::from(p.mul_shoup(a, p.shoup(rb))), product);
        }

        #[test]
        fn agrees_with_wide_arithmetic(
            i in 0usize..16,
            a in any::<u32>(),
            b in any::<u32>(),
            x in any::<u64>(),
        ) {
            let p = Prime::largest(16)[i];
            let q = u64::from(p.value());
            let (ra, rb) = (a % p.value(), b % p.value());
            prop_assert_eq!(u64::from(p.add(ra, rb)), (u64::from(ra) + u64::from(rb)) % q);
            prop_assert_eq!(p.add(p.sub(ra, rb), rb), ra);
            prop_assert_eq!(p.add(ra, p.neg(ra)), 0);
            prop_assert_eq!(u64::from(p.mul(ra, rb)), u64::from(ra) * u64::from(rb) % q);
            prop_assert_eq!(u64::from(p.reduce60(x >> 4)), (x >> 4) % q);
            prop_assert_eq!(u64::from(p.reduce(x)), x % q);
            let product = u64::from(a) * u64::from(rb) % q;
            prop_assert_eq!(u64::from(p.mul_shoup(a, p.shoup(rb))), product);
            prop_assert_eq!(p.redc(u64::from(ra) * u64::from(p.to_montgomery(rb))), p.mul(ra, rb));
            let r = u64::from(p.redc(x >> 1));
            prop_assert_eq!(((u128::from(r) << 32) % u128::from(q)) as u64, (x >> 1) % q);
            let signed = (x as i64) >> 4;
            let residue = i128::from(signed).rem_euclid(i128::from(q));
            prop_assert_eq!(i128::from(p.from_signed_wide(signed)), residue);
        }
    }
}
