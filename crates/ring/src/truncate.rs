//! Free truncation: from shares modulo p to shares in a short ring, without a message.
//!
//! A value `x` with `|x| < p/2` is shared as `a + b ≡ x (mod p)`. To keep its top `m` bits, each
//! party shifts its own share right by `s = K - m` and reads the result modulo `2^m`; one of them
//! adds 1. As integers `a + b = x + w·p` with `w` in {0, 1, 2} and `p = 2^K - C`, so modulo `2^m`
//!
//! ```text
//! (a >> s) + (b >> s) + 1  =  floor((x - w·C) / 2^s) + 1 - carry,      carry in {0, 1}
//! ```
//!
//! because `w·2^K >> s` is a multiple of `2^m`. As long as `2·C <= 2^s` the correction `w·C` moves
//! the floor by at most one, and the result is within two units of `x / 2^s`, always: there is no
//! rare wrap-around, which is what a modulus next to a power of two buys. For a uniform share the
//! carry is 1 with probability `1 - frac(x / 2^s)`, so the expectation of the result is `x / 2^s`
//! up to `2·C / 2^s` units: truncation is stochastic rounding, and errors do not add up to a bias.
//!
//! To use the whole ring, a product is first scaled by a power of two so that its range fills
//! `Z_p`; that is a local multiplication too.

use crate::modulus::{self, C, K};

/// The smallest shift whose error bound holds: `2·C <= 2^MIN_SHIFT`.
pub const MIN_SHIFT: u32 = (2 * C).next_power_of_two().trailing_zeros();

/// Truncation of a residue to its top `m` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    ring_bits: u32,
}

impl Truncation {
    /// Bits of the shortest ring: a sign and a bit.
    pub const MIN_RING_BITS: u32 = 2;
    /// Bits of the widest ring.
    pub const MAX_RING_BITS: u32 = K - MIN_SHIFT;

    /// Truncation to `Z_2^m`, for `m` from [`Self::MIN_RING_BITS`] to [`Self::MAX_RING_BITS`].
    pub const fn to_ring(ring_bits: u32) -> Option<Self> {
        if ring_bits >= Self::MIN_RING_BITS && ring_bits <= Self::MAX_RING_BITS {
            Some(Self { ring_bits })
        } else {
            None
        }
    }

    /// Bits of the short ring, `m`.
    pub const fn ring_bits(self) -> u32 {
        self.ring_bits
    }

    /// Bits dropped, `s`.
    pub const fn shift(self) -> u32 {
        K - self.ring_bits
    }

    const fn mask(self) -> u64 {
        (1 << self.ring_bits) - 1
    }

    /// What the client does to its share.
    #[inline(always)]
    pub const fn client(self, share: u64) -> u64 {
        share >> self.shift()
    }

    /// What the server does to its share.
    #[inline(always)]
    pub const fn server(self, share: u64) -> u64 {
        ((share >> self.shift()) + 1) & self.mask()
    }

    /// The signed value of a ring element.
    #[inline(always)]
    pub const fn to_signed(self, x: u64) -> i64 {
        let unused = 64 - self.ring_bits;
        ((x << unused) as i64) >> unused
    }

    /// The value that the two parties hold after truncation, when the client's share is known.
    #[inline(always)]
    pub const fn shared(self, x: i64, client_share: u64) -> i64 {
        let server_share = modulus::sub(modulus::from_signed(x), client_share);
        self.to_signed(self.server(server_share) + self.client(client_share))
    }

    /// Division by `2^s` rounded to nearest, halves upwards: the truncation without shares.
    #[inline(always)]
    pub const fn exact(self, x: i64) -> i64 {
        (x + (1 << (self.shift() - 1))) >> self.shift()
    }

    /// Whether both forms of truncation keep a value's sign bit: its range minus two units on each
    /// side.
    #[inline(always)]
    pub const fn holds(self, x: i64) -> bool {
        let limit = ((1i64 << (self.ring_bits - 1)) - 2) << self.shift();
        -limit <= x && x <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus::P;
    use proptest::prelude::*;

    #[test]
    fn limits() {
        assert_eq!(MIN_SHIFT, 17);
        assert!(Truncation::to_ring(24).is_some());
        assert!(Truncation::to_ring(25).is_none());
        assert!(Truncation::to_ring(1).is_none());
        assert!(Truncation::to_ring(u32::MAX).is_none());
    }

    fn any_case() -> impl Strategy<Value = (Truncation, i64)> {
        (2u32..=24).prop_flat_map(|m| {
            let t = Truncation::to_ring(m).unwrap();
            let limit = ((1i64 << (m - 1)) - 2) << t.shift();
            (Just(t), -limit..=limit)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn error_is_at_most_two_units((t, x) in any_case(), r in 0..P) {
            prop_assert!(t.holds(x));
            let unit = 1i64 << t.shift();
            let got = t.shared(x, r);
            let floor = x >> t.shift();
            prop_assert!((floor - 1..=floor + 1).contains(&got), "{got} for floor {floor}");
            prop_assert!((got * unit - x).abs() < 2 * unit);
            prop_assert!((t.exact(x) * unit - x).abs() <= unit / 2);
        }

        #[test]
        fn worst_shares_keep_the_bound(
            (t, x) in any_case(),
            edge in 0u64..4,
            side in any::<bool>(),
        ) {
            // Shares next to 0 and to p, where the wrap count changes.
            let r = if side { edge } else { P - 1 - edge };
            let floor = x >> t.shift();
            prop_assert!((floor - 1..=floor + 1).contains(&t.shared(x, r)));
        }
    }

    #[test]
    fn is_unbiased() {
        use crate::prg::Prg;
        let t = Truncation::to_ring(16).unwrap();
        let mut rng = Prg::new(&[3; 16]);
        for x in [12_345_678_901i64, -9_876_543_210, 40_000_000, -1, 0] {
            let n = 40_000;
            let sum: i64 = (0..n).map(|_| t.shared(x, modulus::random(&mut rng))).sum();
            let mean = sum as f64 / n as f64;
            let want = x as f64 / (1u64 << t.shift()) as f64;
            // Standard error of a coin is at most 0.5 / 200; the bias 2C/2^s is 0.004 at most.
            assert!((mean - want).abs() < 0.015, "{x}: {mean} against {want}");
        }
    }
}
