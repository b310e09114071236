//! Between element after element, as callers and messages have it, and eight side by side.

use super::shape::Shape;
use crate::engine::{LANES, Wide};

/// Sets block `l` of each lane to block `l` of the vector `e_index`. Lanes without an index are
/// zero. The index is secret: every place is looked at.
pub(super) fn place(indices: &[u16], share: &mut [Wide]) {
    for (l, block) in share.iter_mut().enumerate() {
        *block = Wide::ZERO;
        for (lane, &index) in block.0.iter_mut().zip(indices) {
            let index = u64::from(index);
            let word = |w: u64| {
                let apart = (index >> 6) ^ w;
                let here = (apart.wrapping_sub(1) >> 63).wrapping_neg();
                u128::from((1 << (index & 63)) & here)
            };
            *lane = word(2 * l as u64) | word(2 * l as u64 + 1) << 64;
        }
    }
}

/// Appends the vectors of the first `count` lanes, folded to the ring's entries.
pub(super) fn unload(shape: &Shape, blocks: &[Wide], count: usize, out: &mut Vec<u8>) {
    let bytes = shape.vector_bytes();
    for lane in 0..count {
        for block in blocks {
            let folded = fold(block.0[lane], shape.entries());
            out.extend_from_slice(&folded.to_le_bytes()[..bytes.min(16)]);
        }
    }
}

/// Takes the vectors of the first `count` lanes, as [`unload`] writes them. The others are zero.
pub(super) fn load(shape: &Shape, bytes: &[u8], count: usize, blocks: &mut [Wide]) {
    let each = shape.vector_bytes().min(16);
    blocks.fill(Wide::ZERO);
    let mut pieces = bytes.chunks_exact(each);
    for lane in 0..count {
        for (block, piece) in blocks.iter_mut().zip(&mut pieces) {
            let mut whole = [0; 16];
            whole[..each].copy_from_slice(piece);
            block.0[lane] = u128::from_le_bytes(whole);
        }
    }
}

/// Appends a block of each of the first `count` lanes.
pub(super) fn unload_blocks(blocks: &[Wide], count: usize, out: &mut Vec<u8>) {
    for block in blocks {
        out.extend_from_slice(&block.bytes()[..16 * count]);
    }
}

/// Takes a block of each of the first `count` lanes.
pub(super) fn load_blocks(bytes: &[u8], count: usize, blocks: &mut [Wide]) {
    for (block, piece) in blocks.iter_mut().zip(bytes.chunks_exact(16 * count)) {
        *block = Wide::ZERO;
        block.bytes_mut()[..16 * count].copy_from_slice(piece);
    }
}

/// The rows of eight elements, of a batch in which the rows for one bit lie side by side.
pub(super) fn gather(batch: &[u128], elements: usize, first: usize, transfers: &mut [Wide]) {
    for (wide, rows) in transfers.iter_mut().zip(batch.chunks_exact(elements)) {
        *wide = Wide::ZERO;
        let rows = &rows[first..];
        let count = rows.len().min(LANES);
        wide.0[..count].copy_from_slice(&rows[..count]);
    }
}

/// Adds up the parts of a block that fall on one another in a shorter ring.
fn fold(mut block: u128, entries: usize) -> u128 {
    let mut width = 64;
    while width >= entries {
        block ^= block >> width;
        width /= 2;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_placed_and_vectors_folded() {
        for bits in super::super::MIN_BITS..=super::super::MAX_BITS {
            let shape = Shape::new(bits).unwrap();
            let mut blocks = vec![Wide::ZERO; shape.blocks()];
            for first in (0..shape.entries()).step_by(5) {
                let indices = [first as u16];
                place(&indices, &mut blocks);
                let mut bytes = Vec::new();
                unload(&shape, &blocks, 2, &mut bytes);
                assert_eq!(bytes.len(), 2 * shape.vector_bytes());
                for (place, byte) in bytes.iter().enumerate() {
                    let here = place == first / 8;
                    assert_eq!(*byte, u8::from(here) << (first % 8), "{bits} {first}");
                }
                let mut again = vec![Wide::ZERO; shape.blocks()];
                load(&shape, &bytes, 2, &mut again);
                assert!(again.iter().zip(&blocks).all(|(a, b)| a.0 == b.0));
            }
        }
        // 16 entries: eight parts of a block fall on one another.
        assert_eq!(fold(1 << 127 | 1 << 15 | 1 << 3, 16) & 0xffff, 1 << 3);
        assert_eq!(fold(u128::MAX, 128), u128::MAX);
    }
}
