//! Bytes in the two stores.

use std::iter::Sum;
use std::ops::AddAssign;

/// Bytes that prepared material takes in each party's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredBytes {
    /// The client's.
    pub client: u64,
    /// The server's.
    pub server: u64,
}

impl AddAssign for StoredBytes {
    fn add_assign(&mut self, other: Self) {
        self.client += other.client;
        self.server += other.server;
    }
}

impl Sum for StoredBytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}
