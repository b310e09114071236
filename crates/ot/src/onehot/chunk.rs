//! What a party holds of a chunk from one message to the next; batches are divided among threads.

use super::blocks;
use super::keys::VectorKeys;
use super::place::{Batch, Shares};
use super::shape::Shape;
use super::{BATCH, planes};
use crate::bits::Bits;
use crate::engine::Backend;
use crate::error::Result;
use primer_ring::threads;
use primer_ring::wipe::SecretBytes;
use zeroize::Zeroizing;

/// Shares of the two parts of every place of a chunk.
pub(super) struct Chunk {
    shape: Shape,
    keys: VectorKeys,
    /// The position of the first transfer for the places.
    position: u64,
    threads: usize,
    lower: Zeroizing<Vec<u128>>,
    marks: Zeroizing<Vec<u16>>,
}

/// The vectors of a chunk except for what the other party's message changes, and this party's
/// message.
pub(super) struct Opened {
    pub(super) message: Vec<u8>,
    vectors: SecretBytes,
}

impl Chunk {
    /// Makes room for shares of `elements` places.
    pub(super) fn new(
        shape: Shape,
        keys: VectorKeys,
        (position, threads): (u64, usize),
        elements: usize,
    ) -> Self {
        Self {
            shape,
            keys,
            position,
            threads,
            lower: Zeroizing::new(vec![0; elements]),
            marks: Zeroizing::new(vec![0; elements]),
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Returns the number of transfers for blocks in either direction.
    pub(super) fn block_transfers(&self) -> usize {
        self.len() * self.shape.block_transfers()
    }

    /// Returns the choices of the transfers for blocks.
    pub(super) fn marks(&self) -> Result<Bits> {
        planes::choices(&self.marks, 1, self.shape.block_transfers())
    }

    /// Finds the shares of the index party. Returns the corrections.
    pub(super) fn correct(
        &mut self,
        (indices, parts): (&[u16], &[u16]),
        (rows, delta): (&[u128], u128),
    ) -> Vec<u8> {
        let Self {
            shape,
            keys,
            position,
            threads,
            lower,
            marks,
        } = self;
        let (transfers, bytes) = (shape.place_transfers(), shape.correction_bytes());
        let mut message = vec![0; parts.len() * bytes];
        let given = indices.chunks(BATCH).zip(parts.chunks(BATCH));
        let given = given.zip(rows.chunks(BATCH * transfers));
        let made = lower.chunks_mut(BATCH).zip(marks.chunks_mut(BATCH));
        let made = made.zip(message.chunks_mut(BATCH * bytes));
        let jobs = given.zip(made).enumerate().collect();
        divide(
            *threads,
            jobs,
            |(at, ((places, rows), (shares, message)))| {
                let batch = Batch::new(shape, keys, *position, at);
                batch.correct(places, (rows, delta), Shares::of(shares), message);
            },
        );
        message
    }

    /// Finds the shares of the offset party by the corrections. Returns the offsets.
    pub(super) fn follow(
        &mut self,
        parts: &[u16],
        rows: &[u128],
        message: &[u8],
    ) -> Zeroizing<Vec<u16>> {
        let Self {
            shape,
            keys,
            position,
            threads,
            lower,
            marks,
        } = self;
        let (transfers, bytes) = (shape.place_transfers(), shape.correction_bytes());
        let mut offsets = Zeroizing::new(vec![0; parts.len()]);
        let given = parts.chunks(BATCH).zip(rows.chunks(BATCH * transfers));
        let given = given.zip(message.chunks(BATCH * bytes));
        let made = lower.chunks_mut(BATCH).zip(marks.chunks_mut(BATCH));
        let made = made.zip(offsets.chunks_mut(BATCH));
        let jobs = given.zip(made).enumerate().collect();
        divide(
            *threads,
            jobs,
            |(at, (((parts, rows), message), (shares, offsets)))| {
                let batch = Batch::new(shape, keys, *position, at);
                batch.follow(parts, rows, message, Shares::of(shares), offsets);
            },
        );
        offsets
    }

    /// Moves the lower parts into blocks, by rows of both directions.
    pub(super) fn open(&self, [sent, received]: [&[u128]; 2], delta: u128) -> Opened {
        let (shape, n) = (&self.shape, self.len());
        let (transfers, bytes) = (shape.block_transfers(), shape.block_correction_bytes());
        let mut message = vec![0; n * bytes];
        let mut vectors = SecretBytes::zeros(n * shape.vector_bytes());
        let rows = sent.chunks(BATCH * transfers);
        let rows = rows.zip(received.chunks(BATCH * transfers));
        let shares = self.lower.chunks(BATCH).zip(self.marks.chunks(BATCH));
        let made = message.chunks_mut(BATCH * bytes);
        let made = made.zip(vectors.chunks_mut(BATCH * shape.vector_bytes()));
        let jobs = rows.zip(shares).zip(made).enumerate().collect();
        divide(
            self.threads,
            jobs,
            |(at, (((sent, received), shares), (message, vectors)))| {
                let batch = Batch::new(shape, &self.keys, self.position, at);
                batch.open([sent, received], delta, shares, message, vectors);
            },
        );
        Opened { message, vectors }
    }

    /// Returns the vectors that are one block.
    pub(super) fn whole(&self) -> SecretBytes {
        let bytes = self.shape.vector_bytes();
        let mut vectors = SecretBytes::zeros(self.len() * bytes);
        for (vector, block) in vectors.chunks_exact_mut(bytes).zip(self.lower.iter()) {
            vector.copy_from_slice(&block.to_le_bytes()[..bytes]);
        }
        vectors
    }

    /// Returns the vectors by what the other party has sent.
    pub(super) fn close(&self, opened: Opened, theirs: &[u8]) -> SecretBytes {
        let Opened {
            message,
            mut vectors,
        } = opened;
        blocks::close(&self.shape, &self.marks, [&message, theirs], &mut vectors);
        vectors
    }
}

#[cfg(test)]
impl Chunk {
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns a chunk with the same marks, whose shares of the lower parts are zero.
    pub(super) fn with_nothing_below(&self) -> Self {
        let at = (self.position, self.threads);
        let mut other = Self::new(self.shape, VectorKeys::new(&[7; 32]), at, self.len());
        other.marks.copy_from_slice(&self.marks);
        other
    }

    /// Returns the shares of lower parts of at most 64 places.
    pub(super) fn shares_below(&self) -> Vec<u64> {
        self.lower.iter().map(|&share| share as u64).collect()
    }
}

impl<'a> Batch<'a> {
    /// Begins batch number `at` of a chunk whose first transfer has this position.
    fn new(shape: &'a Shape, keys: &VectorKeys, position: u64, at: usize) -> Self {
        let backend = Backend::detect();
        let position = position + (at * BATCH * shape.place_transfers()) as u64;
        Self {
            shape,
            backend,
            keys: keys.at(backend, position),
        }
    }
}

impl<'a> Shares<'a> {
    fn of((lower, marks): (&'a mut [u128], &'a mut [u16])) -> Self {
        Self { lower, marks }
    }
}

/// Does all jobs, as many after one another in each thread.
fn divide<J: Send>(threads: usize, jobs: Vec<J>, run: impl Fn(J) + Sync) {
    let each = jobs.len().div_ceil(threads.max(1));
    let mut jobs = jobs.into_iter();
    let groups = std::iter::from_fn(|| {
        let group: Vec<J> = jobs.by_ref().take(each).collect();
        (!group.is_empty()).then_some(group)
    });
    threads::each(groups.collect(), |group| group.into_iter().for_each(&run));
}
