//! The second half of the work: the lower part's unit vector goes into the block that is marked,
//! without either party knowing which that is. Both parties do the same.

use super::hash::hash;
use super::place::Batch;
use super::shape::Shape;
use zeroize::Zeroizing;

impl Batch<'_> {
    /// Takes the rows of both directions for all blocks but the first, and the party's shares.
    /// Fills in what the party sends, a block for each element, and its vectors except for what the
    /// other party's message [changes](close).
    pub(super) fn open(
        &self,
        [sent, received]: [&[u128]; 2],
        delta: u128,
        (lower, marks): (&[u128], &[u16]),
        message: &mut [u8],
        vectors: &mut [u8],
    ) {
        let (shape, n) = (self.shape, marks.len());
        let blocks = shape.blocks();
        let mut seeds = Zeroizing::new(vec![0; blocks * n]);
        let (first, others) = seeds.split_at_mut(n);
        first.fill(delta);
        let rows = sent.chunks_exact(n).zip(received.chunks_exact(n));
        for (i, (seeds, (sent, received))) in others.chunks_exact_mut(n).zip(rows).enumerate() {
            for (j, seed) in seeds.iter_mut().enumerate() {
                let marked = u128::from(marks[j] >> (i + 1) & 1).wrapping_neg();
                *seed = sent[j] ^ received[j] ^ delta & marked;
                first[j] ^= *seed;
            }
        }
        for (i, seeds) in seeds.chunks_exact_mut(n).enumerate() {
            seeds.iter_mut().for_each(|seed| *seed ^= i as u128);
        }
        hash(self.backend, &self.keys.blocks, 0, &mut seeds);

        let bytes = shape.block_bytes();
        let each = message.chunks_exact_mut(bytes);
        let each = each.zip(vectors.chunks_exact_mut(shape.vector_bytes()));
        for (j, (message, vector)) in each.enumerate() {
            let mut sum = lower[j];
            for (i, block) in vector.chunks_exact_mut(bytes).enumerate() {
                let pad = seeds[i * n + j];
                sum ^= pad;
                block.copy_from_slice(&pad.to_le_bytes()[..bytes]);
            }
            message.copy_from_slice(&sum.to_le_bytes()[..bytes]);
        }
    }
}

/// Finishes some vectors with what both parties have sent of them.
pub(super) fn close(shape: &Shape, marks: &[u16], messages: [&[u8]; 2], vectors: &mut [u8]) {
    let bytes = shape.block_bytes();
    let block = |bytes: &[u8]| {
        let mut block = [0; 16];
        block[..bytes.len()].copy_from_slice(bytes);
        u128::from_le_bytes(block)
    };
    let [ours, theirs] = messages.map(|message| message.chunks_exact(bytes));
    let each = vectors.chunks_exact_mut(shape.vector_bytes());
    for (((vector, &marks), ours), theirs) in each.zip(marks).zip(ours).zip(theirs) {
        let correction = block(ours) ^ block(theirs);
        for (i, place) in vector.chunks_exact_mut(bytes).enumerate() {
            let marked = u128::from(marks >> i & 1).wrapping_neg();
            let sum = block(place) ^ correction & marked;
            place.copy_from_slice(&sum.to_le_bytes()[..bytes]);
        }
    }
}
