//! The number of entries, and the parts into which a place is cut.

use super::BATCH;
use crate::error::{OtError, Result};

/// Bits of the shortest index.
pub const MIN_BITS: u32 = 4;
/// Bits of the longest index.
pub const MAX_BITS: u32 = 10;

/// Transfers of a chunk: its rows take 8 MiB.
const CHUNK_TRANSFERS: usize = 1 << 19;

/// The shape of a one-hot vector of `2^bits` entries: the lower bits of a place are its place in a
/// block, the upper ones the number of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    lower: u32,
    upper: u32,
}

impl Shape {
    /// Makes the shape of vectors of `2^bits` entries, [`MIN_BITS`] to [`MAX_BITS`].
    ///
    /// # Errors
    /// [`OtError::Index`] for another number of bits.
    pub fn new(bits: u32) -> Result<Self> {
        // What takes the fewest bytes; the table in `docs/protocol/ot.md` has the neighbours.
        let upper = match bits {
            MIN_BITS..=6 => 0,
            7 | 8 => 2,
            9..=MAX_BITS => 3,
            _ => return Err(OtError::Index { bits }),
        };
        Ok(Self {
            lower: bits - upper,
            upper,
        })
    }

    /// Returns the number of bits of a place.
    pub fn bits(&self) -> u32 {
        self.lower + self.upper
    }

    /// Returns the number of entries of a vector. Numbers below this are indices and offsets.
    pub fn entries(&self) -> usize {
        1 << self.bits()
    }

    /// Returns the number of bytes of a vector.
    pub fn vector_bytes(&self) -> usize {
        self.entries() / 8
    }

    /// Returns the number of bytes of the first corrections of an element, all from the index
    /// party.
    pub fn correction_bytes(&self) -> usize {
        self.lower as usize * self.swap_bytes() + self.tail_bytes()
    }

    /// Returns the number of bytes of the second correction of an element, one from each party;
    /// none where a vector is one block.
    pub fn block_correction_bytes(&self) -> usize {
        match self.upper {
            0 => 0,
            _ => self.block_bytes(),
        }
    }

    /// Returns the number of transfers of an element that the offset party chooses with the bits of
    /// a place.
    pub fn place_transfers(&self) -> usize {
        self.bits() as usize
    }

    /// Returns the number of transfers of an element in either direction that the parties choose
    /// with their shares of the vector of blocks: one for each block but the first.
    pub fn block_transfers(&self) -> usize {
        self.blocks() - 1
    }

    /// Returns the number of elements that are prepared together.
    pub fn chunk(&self) -> usize {
        let transfers = self.place_transfers() + 2 * self.block_transfers();
        (CHUNK_TRANSFERS / transfers) / BATCH * BATCH
    }

    /// Returns the number of elements of each chunk of `count`.
    pub(crate) fn chunks(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let chunk = self.chunk();
        (0..count)
            .step_by(chunk)
            .map(move |first| chunk.min(count - first))
    }

    /// Returns the number of bits of a place in a block.
    pub(crate) fn lower(&self) -> u32 {
        self.lower
    }

    /// Returns the number of bits of the number of a block.
    pub(crate) fn upper(&self) -> u32 {
        self.upper
    }

    /// Returns the number of blocks of a vector.
    pub(crate) fn blocks(&self) -> usize {
        1 << self.upper
    }

    /// Returns the number of bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        (1 << self.lower) / 8
    }

    /// Returns the number of bytes of the correction of one swap of the halves of a block.
    pub(crate) fn swap_bytes(&self) -> usize {
        self.block_bytes() / 2
    }

    /// Returns the number of bytes of an element's other corrections, which are packed together:
    /// those of the vector of blocks and of the place as a number, and the difference of index and
    /// place.
    pub(crate) fn tail_bytes(&self) -> usize {
        let (bits, upper) = (self.bits(), self.upper);
        let swaps = match upper {
            0 => 0,
            _ => upper << (upper - 1),
        };
        (swaps + bits * (bits - 1) / 2 + bits).div_ceil(8) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_place() {
        for bits in MIN_BITS..=MAX_BITS {
            let shape = Shape::new(bits).unwrap();
            assert_eq!(shape.entries(), 1 << bits);
            assert_eq!(shape.blocks() * shape.block_bytes(), shape.vector_bytes());
            assert_eq!(shape.chunk() % BATCH, 0);
            assert!(shape.tail_bytes() <= 16 && shape.block_bytes() <= 16);
            let n = 2 * shape.chunk() + 5;
            assert_eq!(shape.chunks(n).sum::<usize>(), n);
            assert_eq!(shape.chunks(n).count(), 3);
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for bits in [0, 1, 3, 11, u32::MAX] {
            assert!(matches!(Shape::new(bits), Err(OtError::Index { .. })));
        }
    }
}
