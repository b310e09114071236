//! How many entries, how many bits of offset, and how these are cut into digits.

use super::BATCH;
use crate::error::{OtError, Result};

/// Bits of the shortest index.
pub const MIN_BITS: u32 = 4;
/// Bits of the longest index.
pub const MAX_BITS: u32 = 12;

/// Bits of the deepest tree.
pub(super) const MAX_DEPTH: u32 = 10;
/// Transfers whose rows are held at once: 4 MiB.
const CHUNK_TRANSFERS: usize = 1 << 18;

/// The shape of a one-hot vector and of the trees that make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a place in the vector.
    place_bits: u32,
    /// Bits of each digit, the lowest first; the rest is zero.
    digits: [u32; MAX_BITS as usize],
}

impl Shape {
    /// Vectors of `2^bits` entries, [`MIN_BITS`] to [`MAX_BITS`]; sums wrap.
    ///
    /// # Errors
    /// [`OtError::Index`] for another number of bits.
    pub fn new(bits: u32) -> Result<Self> {
        Self::cut(bits, bits)
    }

    /// Vectors of `2^(bits + 1)` entries for two numbers of `bits` bits: sums do not wrap.
    ///
    /// # Errors
    /// [`OtError::Index`] if `bits + 1` is not a number of bits of [`Self::new`].
    pub fn carrying(bits: u32) -> Result<Self> {
        Self::cut(bits.saturating_add(1), bits)
    }

    /// Vectors of `2^place_bits` entries, offsets of the bits of these digits, the lowest first.
    ///
    /// # Errors
    /// [`OtError::Index`] if a digit has no bits or more than 10, or all together more than a
    /// place.
    pub fn with_digits(place_bits: u32, digits: &[u32]) -> Result<Self> {
        let wrong = || OtError::Index { bits: place_bits };
        let each = digits.iter().all(|d| (1..=MAX_DEPTH).contains(d));
        if !(MIN_BITS..=MAX_BITS).contains(&place_bits) || digits.is_empty() || !each {
            return Err(wrong());
        }
        if digits.len() > MAX_BITS as usize || digits.iter().sum::<u32>() > place_bits {
            return Err(wrong());
        }
        let mut all = [0; MAX_BITS as usize];
        all[..digits.len()].copy_from_slice(digits);
        Ok(Self {
            place_bits,
            digits: all,
        })
    }

    /// The usual digits: single bits where a row is at most a block, else two halves.
    fn cut(place_bits: u32, bits: u32) -> Result<Self> {
        let ones = [1; MAX_BITS as usize];
        match place_bits {
            MIN_BITS..=7 => Self::with_digits(place_bits, &ones[..bits as usize]),
            _ => Self::with_digits(place_bits, &[bits / 2, bits.div_ceil(2)]),
        }
    }

    /// Entries of a vector.
    pub fn entries(&self) -> usize {
        1 << self.place_bits
    }

    /// Bytes of a vector.
    pub fn vector_bytes(&self) -> usize {
        self.entries() / 8
    }

    /// Numbers below this are indices and offsets.
    pub fn indices(&self) -> usize {
        1 << self.transfers()
    }

    /// Transfers of an element: the bits of its offset.
    pub fn transfers(&self) -> usize {
        self.digits().sum::<u32>() as usize
    }

    /// Bytes that the sender sends for an element.
    pub fn correction_bytes(&self) -> usize {
        16 * self.levels() + self.digits().count() * self.vector_bytes()
    }

    /// Elements that are prepared together: one message of each party.
    pub fn chunk(&self) -> usize {
        (CHUNK_TRANSFERS / self.transfers()) / BATCH * BATCH
    }

    /// The bits of each digit.
    pub(crate) fn digits(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        self.digits.into_iter().filter(|&d| d != 0)
    }

    /// Levels that are corrected, of all digits.
    pub(crate) fn levels(&self) -> usize {
        self.digits().map(|d| d as usize - 1).sum()
    }

    /// Blocks of 128 entries; a shorter vector lives in one.
    pub(crate) fn blocks(&self) -> usize {
        self.entries().div_ceil(128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_cover_the_offset() {
        for bits in MIN_BITS..=MAX_BITS {
            let shape = Shape::new(bits).unwrap();
            assert_eq!(shape.transfers() as u32, bits);
            assert_eq!((shape.entries(), shape.indices()), (1 << bits, 1 << bits));
            assert_eq!(shape.chunk() % BATCH, 0);
            let carrying = Shape::carrying(bits - 1).unwrap();
            assert_eq!(carrying.entries(), 2 * carrying.indices());
        }
        // The design's figure: 192 bytes with its eight transfers of four.
        let shape = Shape::new(8).unwrap();
        assert_eq!(shape.correction_bytes() + 4 * shape.transfers(), 192);
    }

    #[test]
    fn other_shapes_are_refused() {
        for bits in [0, 1, 3, 13, u32::MAX] {
            assert!(matches!(Shape::new(bits), Err(OtError::Index { .. })));
        }
        assert!(Shape::carrying(2).is_err() && Shape::carrying(12).is_err());
        assert!(Shape::carrying(u32::MAX).is_err());
        for digits in [&[][..], &[0, 8], &[11], &[4, 5], &[1; 13], &[u32::MAX, 9]] {
            assert!(Shape::with_digits(8, digits).is_err(), "{digits:?}");
        }
        assert!(Shape::with_digits(8, &[8]).is_ok());
    }
}
