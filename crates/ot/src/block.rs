//! What both roles of [`crate::cot`] have in common: they keep a position, and turn a block of
//! columns into rows.

use crate::base::Session;
use crate::check::{Check, MASKING};
use crate::engine::WIDE;
use crate::error::Result;
use crate::leaves;
use crate::streams::Streams;
use crate::transpose::{COLUMNS, transpose};
use crate::variant::Variant;
use primer_ring::wipe::SecretBytes;
use zeroize::Zeroizing;

/// The number of transfers handled at once: their columns (256 KiB) stay in a core's cache.
pub const BLOCK: usize = 1 << 14;
/// What both roles keep.
pub(crate) struct State {
    pub(crate) variant: Variant,
    pub(crate) streams: Streams,
    pub(crate) session: Session,
    /// Transfers begun so far.
    pub(crate) spent: u64,
    /// Threads that may make one-hot vectors.
    pub(crate) threads: usize,
}

impl State {
    pub(crate) fn new(variant: Variant, leaves: &leaves::Leaves, session: Session) -> Self {
        Self {
            variant,
            streams: Streams::new(variant, leaves, &session),
            session,
            spent: 0,
            threads: 1,
        }
    }

    /// Begins an extension: the position before it, and its check if it has one.
    pub(crate) fn begin(&mut self, n: usize) -> (u64, Option<Check>) {
        let position = self.spent;
        self.spent += n as u64;
        let checked = self.variant.is_checked();
        (
            position,
            checked
                .then(|| Check::new(&self.session, [position, n as u64, self.streams.counter()])),
        )
    }
}

/// Room for a block of columns, wiped when dropped.
pub(crate) struct Block {
    matrix: SecretBytes,
    rows: Zeroizing<Vec<u128>>,
    /// The message of a tree: `⌈n/8⌉` bytes, and zeros up to whole vectors.
    message: SecretBytes,
}

impl Block {
    /// Returns the number of bytes of `n` bits, in whole vectors of the engine.
    pub(crate) fn padded(n: usize) -> usize {
        n.div_ceil(8).next_multiple_of(WIDE)
    }

    /// Returns the number of bytes from one column of `n` bits to the next: one cache line more
    /// than it takes, since columns a power of two apart would all compete for the same few lines
    /// when they are read side by side.
    pub(crate) fn stride(n: usize) -> usize {
        Self::padded(n) + 64
    }

    /// Makes room for blocks of at most `n` transfers, or for those that mask a check.
    pub(crate) fn new(n: usize) -> Self {
        let n = n.clamp(MASKING, BLOCK);
        Self {
            matrix: SecretBytes::zeros(COLUMNS * Self::stride(n)),
            rows: Zeroizing::new(vec![0; n]),
            message: SecretBytes::zeros(Self::padded(n)),
        }
    }

    /// Fills the columns of each tree with `fill(tree, columns, message)`, where the message is
    /// padded, and returns the rows.
    pub(crate) fn run(
        &mut self,
        state: &mut State,
        n: usize,
        mut check: Option<(&mut Check, Option<&[u8]>)>,
        mut fill: impl FnMut(usize, &mut [u8], &mut [u8], &Streams) -> Result<()>,
    ) -> Result<&[u128]> {
        let (stride, bytes) = (Self::stride(n), n.div_ceil(8));
        let matrix = &mut self.matrix[..COLUMNS * stride];
        let message = &mut self.message[..Self::padded(n)];
        message[bytes..].fill(0);
        let per_tree = state.variant.bits() * stride;
        for (tree, columns) in matrix.chunks_exact_mut(per_tree).enumerate() {
            fill(tree, columns, message, &state.streams)?;
            if let Some((check, _)) = &mut check {
                check.absorb(&message[..bytes]);
            }
        }
        if let Some((check, choices)) = check {
            check.add(matrix, stride, bytes, choices);
        }
        state.streams.advance(bytes);
        transpose(matrix, stride, &mut self.rows[..n]);
        Ok(&self.rows[..n])
    }
}
