//! What free truncation drops is not lost.
//!
//! Truncation ([`crate::truncate`]) makes an index `k` of a shared `x`: each party keeps the high
//! bits of its share and drops the low ones, `s` of them. Which of the two neighbouring indices
//! comes out depends on what was dropped, and it follows from there exactly how far `x` is from
//! the index that it got:
//!
//! ```text
//! x - 2^s·k  =  low(a) + low(b) - 2^s
//! ```
//!
//! but for `w·C`, a hundred thousandth of a unit of the index. The right side is a sum of a number
//! of the server's and a number of the client's, so the parties have shares of the distance
//! without a message, and may add a multiple of it to any value that they share. A look-up that
//! knows `k` only can so be told what `k` leaves out ([`Stretch`]).

use crate::modulus;
use crate::truncate::Truncation;

/// `x + (part/8)·(x - 2^s·k)`: the distance of an accumulator from its index, stretched.
///
/// The index may have been truncated from `2^finer·x`, so that it fills its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    low_bits: u32,
    part: u64,
    shift: u32,
}

impl Stretch {
    /// `part` eighths are this part.
    const UNIT_BITS: u32 = 3;
    /// The largest part: a distance is at most doubled.
    pub const MAX_PART: u32 = 1 << Self::UNIT_BITS;

    /// By `part` eighths of the distance from an index, of which `2^finer` times the accumulator
    /// was truncated. None if there is no such part, or not so many bits.
    pub const fn new(index: Truncation, part: u32, finer: u32) -> Option<Self> {
        if part > Self::MAX_PART || finer > index.shift() {
            return None;
        }
        Some(Self {
            low_bits: index.shift(),
            part: part as u64,
            shift: Self::UNIT_BITS + finer,
        })
    }

    const fn scaled(self, low: u64) -> u64 {
        (self.part * low) >> self.shift
    }

    /// What the client adds to its share, from its share of the index's accumulator.
    #[inline(always)]
    pub const fn client(self, index_share: u64) -> u64 {
        self.scaled(index_share & ((1 << self.low_bits) - 1))
    }

    /// What the server adds to its share, from its share of the index's accumulator.
    #[inline(always)]
    pub const fn server(self, index_share: u64) -> u64 {
        modulus::sub(self.client(index_share), self.scaled(1 << self.low_bits))
    }

    /// What both add together, for an index's accumulator and the client's share of it.
    #[inline(always)]
    pub const fn shared(self, index: i64, client_share: u64) -> i64 {
        let server_share = modulus::sub(modulus::from_signed(index), client_share);
        let sum = modulus::add(self.server(server_share), self.client(client_share));
        modulus::to_signed(sum)
    }

    /// The same for an index that is rounded to nearest.
    #[inline(always)]
    pub const fn exact(self, index: i64) -> i64 {
        let half = 1i64 << (self.low_bits - 1);
        let distance = ((index + half) & ((1 << self.low_bits) - 1)) - half;
        (self.part as i64 * distance) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus::{C, P};
    use proptest::prelude::*;

    #[test]
    fn parts_and_scales_that_do_not_exist_are_refused() {
        let index = Truncation::to_ring(9).unwrap();
        assert!(Stretch::new(index, 8, 32).is_some());
        assert!(Stretch::new(index, 9, 1).is_none());
        assert!(Stretch::new(index, 5, 33).is_none());
        assert!(Stretch::new(index, u32::MAX, u32::MAX).is_none());
    }

    proptest! {
        /// Whatever the shares, the parties add the announced part of the distance from the very
        /// index that these shares lead to, but for what each rounds off and for `w·C`.
        #[test]
        fn both_add_the_distance_from_the_index_they_got(
            bits in 4u32..12,
            part in 0u32..=8,
            finer in 0u32..4,
            x in -(1i64 << 36)..1i64 << 36,
            client in 0..P,
        ) {
            let by = Truncation::to_ring(bits).unwrap();
            let stretch = Stretch::new(by, part, finer).unwrap();
            let index = x << finer;
            prop_assume!(by.holds(index));
            let distance = index - (by.shared(index, client) << by.shift());
            let wanted = f64::from(part) / 8.0 * distance as f64 / f64::from(1 << finer);
            let slack = 3.0 + 2.0 * C as f64;
            let found = stretch.shared(index, client) as f64;
            prop_assert!((found - wanted).abs() <= slack, "{found} against {wanted}");
        }

        #[test]
        fn rounded_to_nearest_it_is_the_distance_from_the_nearest_index(
            bits in 4u32..12,
            part in 0u32..=8,
            x in -(1i64 << 39)..1i64 << 39,
        ) {
            let by = Truncation::to_ring(bits).unwrap();
            let stretch = Stretch::new(by, part, 1).unwrap();
            let distance = x - (by.exact(x) << by.shift());
            prop_assert_eq!(stretch.exact(x), (i64::from(part) * distance) >> 4);
        }
    }
}
