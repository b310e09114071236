//! The keys of the hash of rows.
//!
//! They are public. All vectors of a batch share two, one for pads and one for blocks; both differ
//! from those of other batches by the position of the batch's first transfer, which no other batch
//! of the session has.

use crate::base::Session;
use crate::engine::{Backend, Expand, Key};

/// The keys of a session's one-hot vectors.
pub(crate) struct VectorKeys {
    pads: u128,
    blocks: u128,
}

/// The two keys of a batch, expanded.
pub(super) struct BatchKeys {
    pub(super) pads: Key,
    pub(super) blocks: Key,
}

impl VectorKeys {
    pub(crate) fn new(session: &Session) -> Self {
        let both = blake3::derive_key("primer ot one-hot hash keys v2", session);
        let (halves, _) = both.as_chunks::<16>();
        Self {
            pads: u128::from_le_bytes(halves[0]),
            blocks: u128::from_le_bytes(halves[1]),
        }
    }

    /// Returns the keys of the batch whose first transfer is at this position.
    pub(super) fn at(&self, backend: Backend, position: u64) -> BatchKeys {
        let keys = [self.pads, self.blocks].map(|key| key ^ u128::from(position));
        let mut expanded = backend.run(Expand(&keys)).into_iter();
        let mut next = || expanded.next().expect("as many as were given");
        BatchKeys {
            pads: next(),
            blocks: next(),
        }
    }
}
