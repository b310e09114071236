//! A coarse index of a shared number, and what it leaves out.
//!
//! Truncation ([`crate::truncate`]) makes an index `k` of a shared `x`: each party keeps the high
//! bits of its share and drops the low ones, `s` of them. Which of the two neighbouring indices
//! comes out depends on what was dropped, which also tells exactly how far `x` is from the index
//! that it got:
//!
//! ```text
//! x - 2^s·k  =  low(a) + low(b) - 2^s
//! ```
//!
//! except for `w·C`, a hundred-thousandth of a unit of the index. The right side is a sum of a
//! number known to the server and a number known to the client, so the parties have shares of the
//! distance without a message. A function that is looked up at `k` can thus be continued from there
//! along a line: each party adds its part of `slope·(x - 2^s·k)` to its share of the result
//! ([`CoarseIndex`]).

use crate::modulus::{self, P};
use crate::truncate::Truncation;

/// How an accumulator is truncated to an index, and which part of the remainder joins the result.
///
/// The accumulator is multiplied by `2^finer` first, so that its range fills the ring of the index.
/// A unit of the result is `2^coarser` units of what was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoarseIndex {
    by: Truncation,
    finer: u64,
    slope: u64,
    shift: u32,
}

/// What one party has of an index and of what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoarseShare {
    /// Its share of the index, an element of the ring.
    pub index: u64,
    /// Its share of the part that joins the result, modulo p.
    pub part: u64,
}

impl CoarseIndex {
    /// Slopes are given in eighths.
    const UNIT_BITS: u32 = 3;
    /// The steepest slope, one.
    pub const MAX_SLOPE: u32 = 1 << Self::UNIT_BITS;

    /// Returns the index that a truncation makes of `2^finer` times an accumulator; `slope` eighths
    /// of what is left out join a result that is `2^coarser` times as coarse. Returns `None` if
    /// there is no such slope, or if there are not as many bits.
    pub const fn new(by: Truncation, finer: u32, slope: u32, coarser: u32) -> Option<Self> {
        if slope > Self::MAX_SLOPE || finer > by.shift() || coarser > by.shift() {
            return None;
        }
        Some(Self {
            by,
            finer: (1 << finer) % P,
            slope: slope as u64,
            shift: Self::UNIT_BITS + coarser,
        })
    }

    /// Returns the truncation that makes the index.
    pub const fn truncation(self) -> Truncation {
        self.by
    }

    /// Returns the part of what was dropped that joins the result, rounded.
    const fn scaled(self, dropped: u64) -> u64 {
        (self.slope * dropped + (1 << (self.shift - 1))) >> self.shift
    }

    /// Returns the client's part, from its share of the accumulator.
    #[inline(always)]
    pub const fn client(self, share: u64) -> CoarseShare {
        let share = modulus::mul(share, self.finer);
        CoarseShare {
            index: self.by.client(share),
            part: self.scaled(share & ((1 << self.by.shift()) - 1)),
        }
    }

    /// Returns the server's part, from its share of the accumulator.
    #[inline(always)]
    pub const fn server(self, share: u64) -> CoarseShare {
        let CoarseShare { part, .. } = self.client(share);
        CoarseShare {
            index: self.by.server(modulus::mul(share, self.finer)),
            part: modulus::sub(part, self.scaled(1 << self.by.shift())),
        }
    }

    /// Returns the index and the part that both parties hold together, for an accumulator and the
    /// client's share of it.
    #[inline(always)]
    pub const fn shared(self, x: i64, client_share: u64) -> (i64, i64) {
        let client = self.client(client_share);
        let server = self.server(modulus::sub(modulus::from_signed(x), client_share));
        let index = self.by.to_signed(client.index + server.index);
        let part = modulus::add(client.part, server.part);
        (index, modulus::to_signed(part))
    }

    /// Returns the same as [`Self::shared`] for an index that is rounded to nearest.
    #[inline(always)]
    pub const fn exact(self, x: i64) -> (i64, i64) {
        let x = modulus::to_signed(modulus::mul(modulus::from_signed(x), self.finer));
        let half = 1i64 << (self.by.shift() - 1);
        let distance = ((x + half) & ((1 << self.by.shift()) - 1)) - half;
        let part = (self.slope as i64 * distance + (1 << (self.shift - 1))) >> self.shift;
        (self.by.to_signed(self.by.exact(x) as u64), part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus::C;
    use proptest::prelude::*;

    #[test]
    fn slopes_and_scales_that_do_not_exist_are_refused() {
        let by = Truncation::to_ring(9).unwrap();
        assert!(CoarseIndex::new(by, 32, 8, 32).is_some());
        assert!(CoarseIndex::new(by, 1, 9, 1).is_none());
        assert!(CoarseIndex::new(by, 1, 5, 33).is_none());
        assert!(CoarseIndex::new(by, 33, 5, 1).is_none());
        assert!(CoarseIndex::new(by, u32::MAX, u32::MAX, u32::MAX).is_none());
    }

    proptest! {
        /// Checks that, for all shares, the parties have the index that truncation makes of the
        /// shifted accumulator and the announced part of its distance from it, up to what each
        /// party rounds off and up to `w·C`.
        #[test]
        fn both_have_an_index_and_the_distance_from_it(
            bits in 4u32..12,
            slope in 0u32..=8,
            finer in 0u32..4,
            coarser in 0u32..20,
            x in -(1i64 << 36)..1i64 << 36,
            client in 0..P,
        ) {
            let by = Truncation::to_ring(bits).unwrap();
            let coarse = CoarseIndex::new(by, finer, slope, coarser).unwrap();
            let shifted = x << finer;
            prop_assume!(by.holds(shifted));
            let (index, part) = coarse.shared(x, client);
            let lifted = modulus::mul(client, 1 << finer);
            prop_assert_eq!(index, by.shared(shifted, lifted));
            let distance = shifted - (index << by.shift());
            let unit = f64::from(coarser).exp2();
            let wanted = f64::from(slope) / 8.0 * distance as f64 / unit;
            let slack = 1.5 + 2.0 * C as f64 / unit;
            prop_assert!((part as f64 - wanted).abs() <= slack, "{part} against {wanted}");
        }

        #[test]
        fn rounded_to_nearest_it_is_the_distance_from_the_nearest_index(
            bits in 4u32..12,
            slope in 0u32..=8,
            x in -(1i64 << 38)..1i64 << 38,
        ) {
            let by = Truncation::to_ring(bits).unwrap();
            let coarse = CoarseIndex::new(by, 1, slope, 1).unwrap();
            let (index, part) = coarse.exact(x);
            prop_assert_eq!(index, by.to_signed(by.exact(2 * x) as u64));
            let distance = 2 * x - (by.exact(2 * x) << by.shift());
            prop_assert_eq!(part, (i64::from(slope) * distance + 8) >> 4);
        }
    }
}
