//! Where arithmetic outputs live: the share field or a power of two.

use super::LANES;
use primer_ring::modulus as prime;

/// The group of a circuit's arithmetic outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modulus {
    /// The share field `Z_p`.
    Prime,
    /// `Z_2^m` for `m` from 1 to 57 bits.
    Ring(u32),
}

impl Modulus {
    /// Returns the number of bits of an element on the wire.
    pub const fn width(self) -> u32 {
        match self {
            Self::Prime => prime::K,
            Self::Ring(m) => m,
        }
    }

    /// Returns the number of elements.
    pub const fn order(self) -> u64 {
        match self {
            Self::Prime => prime::P,
            Self::Ring(m) => 1 << m,
        }
    }

    const fn mask(m: u32) -> u64 {
        (1 << m) - 1
    }

    /// Reduces any 64-bit number to an element.
    #[inline(always)]
    pub const fn reduce(self, x: u64) -> u64 {
        match self {
            Self::Prime => prime::reduce(x),
            Self::Ring(m) => x & Self::mask(m),
        }
    }

    /// Returns a signed number as an element.
    pub const fn residue(self, x: i64) -> u64 {
        match self {
            Self::Prime => prime::from_signed(x),
            Self::Ring(m) => x as u64 & Self::mask(m),
        }
    }

    /// Returns `a + b`.
    #[inline(always)]
    pub const fn add(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Prime => prime::add(a, b),
            Self::Ring(m) => a.wrapping_add(b) & Self::mask(m),
        }
    }

    /// Returns `a - b`.
    #[inline(always)]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Prime => prime::sub(a, b),
            Self::Ring(m) => a.wrapping_sub(b) & Self::mask(m),
        }
    }

    /// Returns `-a`.
    #[inline(always)]
    pub const fn neg(self, a: u64) -> u64 {
        match self {
            Self::Prime => prime::neg(a),
            Self::Ring(m) => a.wrapping_neg() & Self::mask(m),
        }
    }

    /// Applies [`Self::from_block`] to eight blocks, in one loop so that it becomes vector code.
    #[inline(always)]
    pub(crate) fn residues(self, blocks: &[u128; LANES]) -> [u64; LANES] {
        let mut out = [0; LANES];
        match self {
            Self::Prime => {
                for l in 0..LANES {
                    let block = [blocks[l] as u64, (blocks[l] >> 64) as u64];
                    out[l] = Self::Prime.from_block(block);
                }
            }
            Self::Ring(m) => {
                for l in 0..LANES {
                    out[l] = Self::Ring(m).from_block([blocks[l] as u64, 0]);
                }
            }
        }
        out
    }

    /// Computes `a + b` eight times.
    #[inline(always)]
    pub(crate) fn add_each(self, mut a: [u64; LANES], b: [u64; LANES]) -> [u64; LANES] {
        match self {
            Self::Prime => {
                for l in 0..LANES {
                    a[l] = prime::add(a[l], b[l]);
                }
            }
            Self::Ring(m) => {
                for l in 0..LANES {
                    a[l] = Self::Ring(m).add(a[l], b[l]);
                }
            }
        }
        a
    }

    /// Computes `a - b` eight times.
    #[inline(always)]
    pub(crate) fn sub_each(self, mut a: [u64; LANES], b: [u64; LANES]) -> [u64; LANES] {
        match self {
            Self::Prime => {
                for l in 0..LANES {
                    a[l] = prime::sub(a[l], b[l]);
                }
            }
            Self::Ring(m) => {
                for l in 0..LANES {
                    a[l] = Self::Ring(m).sub(a[l], b[l]);
                }
            }
        }
        a
    }

    /// Returns an element from a pseudorandom block, uniform up to a distance of `2^-71`.
    ///
    /// `Z_p` takes 112 bits of the block: cut into pieces of 41, 41 and 30 bits they are
    /// `x0 + x1·2^41 + x2·2^82 ≡ x0 + x1·c + x2·c²` with `c = 2^16 - 1`, which stays below 2^63.
    /// A uniform number of 112 bits reduced modulo a 41-bit prime is `2^-71`-close to uniform, so
    /// even 2^30 of them together are 2^-41-close.
    #[inline(always)]
    pub const fn from_block(self, block: [u64; 2]) -> u64 {
        match self {
            Self::Prime => {
                const MASK: u64 = (1 << prime::K) - 1;
                // Bits of `x1` in the first and in the second half of the block, and those of `x2`.
                const FIRST: u32 = 64 - prime::K;
                const SECOND: u32 = prime::K - FIRST;
                const LAST: u32 = 30;
                const SQUARE: u64 = prime::C * prime::C;
                const LARGEST: u128 =
                    MASK as u128 * (1 + prime::C as u128) + (SQUARE as u128) * ((1 << LAST) - 1);
                const _: () = assert!(LARGEST < 1 << 63, "the sum needs 64 bits");
                const _: () = assert!(prime::K + LAST == 71, "the distance that is stated");
                let x0 = block[0] & MASK;
                let x1 = (block[0] >> prime::K) | ((block[1] & ((1 << SECOND) - 1)) << FIRST);
                let x2 = (block[1] >> SECOND) & ((1 << LAST) - 1);
                prime::reduce(x0 + (x1 << prime::C_BITS) - x1 + x2 * SQUARE)
            }
            Self::Ring(m) => block[0] & Self::mask(m),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_become_residues(block in any::<[u64; 2]>()) {
            let wide = u128::from(block[0]) | u128::from(block[1]) << 64;
            let want = (wide & ((1 << 112) - 1)) % u128::from(prime::P);
            prop_assert_eq!(u128::from(Modulus::Prime.from_block(block)), want);
            prop_assert_eq!(Modulus::Ring(13).from_block(block), block[0] & 0x1fff);
        }

        #[test]
        fn ring_arithmetic(m in 1u32..=57, a: u64, b: u64, x: i32) {
            let ring = Modulus::Ring(m);
            let order = 1u128 << m;
            let (a, b) = (ring.reduce(a), ring.reduce(b));
            prop_assert_eq!(u128::from(ring.add(a, b)), (u128::from(a) + u128::from(b)) % order);
            prop_assert_eq!(ring.add(ring.sub(a, b), b), a);
            prop_assert_eq!(ring.add(a, ring.neg(a)), 0);
            let want = i128::from(x).rem_euclid(order as i128);
            prop_assert_eq!(i128::from(ring.residue(x.into())), want);
        }
    }
}
