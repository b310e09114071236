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
//! the floor by at most one, and the result is always within two units of `x / 2^s`: there is no
//! rare wrap-around, thanks to a modulus next to a power of two. For a uniform share the carry is 1
//! with probability `1 - frac(x / 2^s)`, so the expectation of the result is `x / 2^s` up to
//! `2·C / 2^s` units: truncation is stochastic rounding, and errors do not accumulate into a bias.
//!
//! To use the whole ring, a product is first scaled by a power of two so that its range fills
//! `Z_p`; that is a local multiplication too.
//!
//! **Small numbers** that are never negative lose nothing at all ([`Truncation::of_small`]). For
//! `0 <= x < p` there is `w = 0` if the client's share is at most `x`, and otherwise `w = 1`: for
//! uniform shares `w = 1` except with probability `x/p`. So one party adds `C`, and with all low
//! bits kept
//!
//! ```text
//! a + C + b  =  x + (1 - w)·C       modulo 2^m
//! ```
//!
//! is `x` itself, or `x + C` with probability `x/p`: a relative error of `C/p < 2^-24` on average,
//! for every `x`. A sum whose size is not known beforehand needs exactly that.

use crate::modulus::{self, C, K};

/// The smallest shift whose error bound holds: `2·C <= 2^MIN_SHIFT`.
pub const MIN_SHIFT: u32 = (2 * C).next_power_of_two().trailing_zeros();

/// Truncation of a residue to its top `m` bits, or, of a small number, to its low ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    ring_bits: u32,
    kept: KeptBits,
}

/// Which bits of a residue are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptBits {
    Top,
    Low,
}

impl Truncation {
    /// Bits of the shortest ring: a sign and a bit.
    pub const MIN_RING_BITS: u32 = 2;
    /// Bits of the widest ring.
    pub const MAX_RING_BITS: u32 = K - MIN_SHIFT;
    /// Bits of the longest small number: at most a quarter of p.
    pub const MAX_SMALL_BITS: u32 = K - 2;

    /// Returns the truncation to `Z_2^m`, for `m` from [`Self::MIN_RING_BITS`] to
    /// [`Self::MAX_RING_BITS`].
    pub const fn to_ring(ring_bits: u32) -> Option<Self> {
        if ring_bits >= Self::MIN_RING_BITS && ring_bits <= Self::MAX_RING_BITS {
            let kept = KeptBits::Top;
            Some(Self { ring_bits, kept })
        } else {
            None
        }
    }

    /// Returns how a number from 0 to `2^m - 1` becomes shares modulo `2^m`, for `m` from
    /// [`Self::MIN_RING_BITS`] to [`Self::MAX_SMALL_BITS`].
    pub const fn of_small(ring_bits: u32) -> Option<Self> {
        if ring_bits >= Self::MIN_RING_BITS && ring_bits <= Self::MAX_SMALL_BITS {
            let kept = KeptBits::Low;
            Some(Self { ring_bits, kept })
        } else {
            None
        }
    }

    /// Returns the bit width of the short ring, `m`.
    pub const fn ring_bits(self) -> u32 {
        self.ring_bits
    }

    /// Returns the number of low bits dropped, `s`.
    pub const fn shift(self) -> u32 {
        match self.kept {
            KeptBits::Top => K - self.ring_bits,
            KeptBits::Low => 0,
        }
    }

    const fn mask(self) -> u64 {
        (1 << self.ring_bits) - 1
    }

    /// Returns the client's share after truncation.
    #[inline(always)]
    pub const fn client(self, share: u64) -> u64 {
        (share >> self.shift()) & self.mask()
    }

    /// Returns the server's share after truncation.
    #[inline(always)]
    pub const fn server(self, share: u64) -> u64 {
        let more = match self.kept {
            KeptBits::Top => 1,
            KeptBits::Low => C,
        };
        ((share >> self.shift()) + more) & self.mask()
    }

    /// Returns the signed value of a ring element; a small number has no sign.
    #[inline(always)]
    pub const fn to_signed(self, x: u64) -> i64 {
        let unused = 64 - self.ring_bits;
        match self.kept {
            KeptBits::Top => ((x << unused) as i64) >> unused,
            KeptBits::Low => (x & self.mask()) as i64,
        }
    }

    /// Returns the value that the two parties hold after truncation, when the client's share is
    /// known.
    #[inline(always)]
    pub const fn shared(self, x: i64, client_share: u64) -> i64 {
        let server_share = modulus::sub(modulus::from_signed(x), client_share);
        self.to_signed(self.server(server_share) + self.client(client_share))
    }

    /// Divides by `2^s`, rounded to nearest, halves upwards: the truncation without shares.
    #[inline(always)]
    pub const fn exact(self, x: i64) -> i64 {
        match self.kept {
            KeptBits::Top => (x + (1 << (self.shift() - 1))) >> self.shift(),
            KeptBits::Low => x,
        }
    }

    /// Tells whether both forms of truncation keep a value's sign bit: its range minus two units on
    /// each side. A small number must not be negative, and must have room for `C`.
    #[inline(always)]
    pub const fn holds(self, x: i64) -> bool {
        if matches!(self.kept, KeptBits::Low) {
            return 0 <= x && (x + C as i64) >> self.ring_bits == 0;
        }
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

    /// Checks that small numbers come back whole, or with `C` on top where the client's share is
    /// not above them.
    #[test]
    fn small_numbers_are_exact() {
        assert!(Truncation::of_small(1).is_none());
        assert!(Truncation::of_small(Truncation::MAX_SMALL_BITS + 1).is_none());
        let by = Truncation::of_small(37).unwrap();
        assert_eq!((by.shift(), by.exact(12345)), (0, 12345));
        let most = (1 << 37) - 1 - C as i64;
        assert!(by.holds(most) && !by.holds(most + 1) && !by.holds(-1));
        for x in [0, 1, 127, 1 << 20, (1 << 37) - 1 - C as i64] {
            for share in [x as u64 + 1, P / 2, P - 1] {
                assert_eq!(by.shared(x, share), x, "{x} and {share}");
            }
            for share in [0, x as u64] {
                assert_eq!(by.shared(x, share), x + C as i64, "{x} and {share}");
            }
        }
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
