//! How accumulators lose their low bits.

use primer_plan::graph::ValueId;
use primer_ring::coarse::CoarseIndex;
use primer_ring::truncate::Truncation;

/// How accumulators lose their low bits.
pub enum Truncate<'a> {
    /// Rounded to nearest.
    Exact,
    /// As two shares; the function gives the client's share of an element. It is called once for
    /// each element of a value.
    Shares(&'a mut dyn FnMut(ValueId, usize) -> u64),
}

impl Truncate<'_> {
    pub(super) fn apply(&mut self, by: Truncation, id: ValueId, index: usize, x: i64) -> i64 {
        match self {
            // Wrapped as the ring would.
            Truncate::Exact => by.to_signed(by.exact(x) as u64),
            Truncate::Shares(client) => by.shared(x, client(id, index)),
        }
    }

    /// Returns the index of an element, and the part of what it leaves out that is added to the
    /// result.
    pub(super) fn place(
        &mut self,
        by: CoarseIndex,
        id: ValueId,
        index: usize,
        x: i64,
    ) -> (i64, i64) {
        match self {
            Truncate::Exact => by.exact(x),
            Truncate::Shares(client) => by.shared(x, client(id, index)),
        }
    }
}
