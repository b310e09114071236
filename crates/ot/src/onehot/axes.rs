//! Vectors of up to 128 bits as cubes: one axis for each bit of a place.
//!
//! Along axis `k` the places whose bit `k` is zero form one half and the others the other half,
//! which lies `2^k` places above it. Nothing here branches on a bit of a vector.

use std::ops::{BitAnd, BitOr, BitXor, Shl, Shr};

/// A vector in a register: as many bits as its blocks have at most.
pub(super) trait Word:
    Copy
    + From<u64>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Returns the places whose bit `axis` is zero.
    fn half(axis: u32) -> Self;
    /// Returns the unit vector of a place, without a branch or an address that depends on it.
    fn unit(place: u16) -> Self;
    /// Returns the lower bits of a block.
    fn of(block: u128) -> Self;
    /// Returns the vector as a block.
    fn block(self) -> u128;
}

/// Bits of a half of 128 places, by axis.
const HALVES: [u128; 7] = {
    let mut halves = [0; 7];
    let mut axis = 0;
    while axis < 7 {
        halves[axis] = u128::MAX / ((1 << (1 << axis)) + 1);
        axis += 1;
    }
    halves
};

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            #[inline(always)]
            fn unit(place: u16) -> Self {
                let bit = 1u64 << (place & 63);
                let above = u64::from(place >> 6 & 1).wrapping_neg();
                (u128::from(bit & !above) | u128::from(bit & above) << 64) as Self
            }

            #[inline(always)]
            fn half(axis: u32) -> Self {
                HALVES[axis as usize] as Self
            }

            #[inline(always)]
            fn of(block: u128) -> Self {
                block as Self
            }

            #[inline(always)]
            fn block(self) -> u128 {
                self.into()
            }
        }
    };
}

word!(u64);
word!(u128);

/// Returns the sum of both halves along an axis, in the lower half's places; zero elsewhere.
#[inline(always)]
pub(super) fn sum<W: Word>(vector: W, axis: u32) -> W {
    (vector ^ vector >> (1 << axis)) & W::half(axis)
}

/// Adds the same to both halves along an axis; it stands in the lower half's places.
#[inline(always)]
pub(super) fn add_to_both<W: Word>(vector: W, half: W, axis: u32) -> W {
    vector ^ half ^ half << (1 << axis)
}

/// Moves the lower half along an axis of `2^bits` places together, into the lowest ones.
#[inline(always)]
pub(super) fn gather<W: Word>(mut half: W, axis: u32, bits: u32) -> u64 {
    for step in axis..bits - 1 {
        half = (half | half >> (1 << step)) & W::half(step + 1);
    }
    half.block() as u64
}

/// Undoes [`gather`]. Bits beyond half of `2^bits` must be zero.
#[inline(always)]
pub(super) fn spread<W: Word>(half: u64, axis: u32, bits: u32) -> W {
    let mut half = W::from(half);
    for step in (axis..bits - 1).rev() {
        half = (half | half << (1 << step)) & W::half(step);
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    /// Checks every axis of vectors of every length, place by place.
    fn check<W: Word>(lengths: std::ops::RangeInclusive<u32>) {
        let mut prg = Prg::new(&[5; 16]);
        for bits in lengths {
            let places = 1u32 << bits;
            let within = u128::MAX >> (128 - places);
            for place in 0..places {
                assert_eq!(W::unit(place as u16).block(), 1 << place);
            }
            for axis in 0..bits {
                let vector = u128::from_le_bytes(prg.seed()) & within;
                let at = |vector: u128, place: u32| vector >> place & 1;
                let added = sum(W::of(vector), axis);
                let packed = gather(added, axis, bits);
                let back: W = spread(packed, axis, bits);
                assert_eq!(back.block(), added.block(), "{bits} {axis}");
                let mut next = 0;
                for place in (0..places).filter(|place| place >> axis & 1 == 0) {
                    let other = place + (1 << axis);
                    let expected = at(vector, place) ^ at(vector, other);
                    assert_eq!(at(added.block(), place), expected);
                    assert_eq!(at(packed.into(), next), expected);
                    next += 1;
                }
                assert_eq!(u128::from(packed) >> next, 0);
                // Swapping the halves is adding their sum to both.
                let swapped = add_to_both(W::of(vector), added, axis).block();
                for place in 0..places {
                    assert_eq!(at(swapped, place), at(vector, place ^ (1 << axis)));
                }
            }
        }
    }

    #[test]
    fn halves_are_added_moved_and_swapped() {
        check::<u64>(1..=6);
        check::<u128>(1..=7);
    }
}
