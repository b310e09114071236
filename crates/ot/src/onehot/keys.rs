//! The keys of the trees' hash.
//!
//! They are public. All trees of a batch share two, one for nodes and one for rows; both are told
//! apart from those of other batches by the position of the batch's first transfer, which no other
//! batch of the session has.

use crate::base::Session;
use crate::engine::{Backend, Expand, Key};

/// The keys of a session's trees.
pub(crate) struct TreeKeys {
    nodes: u128,
    rows: u128,
}

/// The two keys of a batch, expanded.
pub(super) struct BatchKeys {
    pub(super) nodes: Key,
    pub(super) rows: Key,
}

impl TreeKeys {
    pub(crate) fn new(session: &Session) -> Self {
        let both = blake3::derive_key("primer ot tree hash keys v1", session);
        let (halves, _) = both.as_chunks::<16>();
        Self {
            nodes: u128::from_le_bytes(halves[0]),
            rows: u128::from_le_bytes(halves[1]),
        }
    }

    /// The keys of the batch whose first transfer is at this position.
    pub(super) fn at(&self, backend: Backend, position: u64) -> BatchKeys {
        let keys = [self.nodes, self.rows].map(|key| key ^ u128::from(position));
        let mut expanded = backend.run(Expand(&keys)).into_iter();
        let mut next = || expanded.next().expect("as many as were given");
        BatchKeys {
            nodes: next(),
            rows: next(),
        }
    }
}
