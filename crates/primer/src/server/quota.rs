//! How much a client may leave with the server, counting what is still being written.

use crate::service::message::Refusal;
use primer_store::Usage;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The bounds, and what is on its way.
pub(crate) struct Quota {
    per_client: u64,
    total: u64,
    writing: Mutex<HashMap<[u8; 32], u64>>,
}

impl Quota {
    pub(crate) fn new(per_client: u64, total: u64) -> Self {
        Self {
            per_client,
            total,
            writing: Mutex::default(),
        }
    }

    /// Sets bytes aside for a client until the reservation is dropped.
    pub(crate) fn reserve(
        &self,
        client: &[u8; 32],
        needed: u64,
        usage: &Usage,
    ) -> Result<Reservation<'_>, Refusal> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = usage.of(client).bytes + writing.get(client).copied().unwrap_or(0);
        if stored.saturating_add(needed) > self.per_client {
            return Err(Refusal::Stored {
                needed,
                stored,
                limit: self.per_client,
            });
        }
        let all = usage.total.bytes + writing.values().sum::<u64>();
        if all.saturating_add(needed) > self.total {
            return Err(Refusal::Full);
        }
        *writing.entry(*client).or_default() += needed;
        Ok(Reservation {
            quota: self,
            client: *client,
            bytes: needed,
        })
    }
}

/// Bytes set aside.
pub(crate) struct Reservation<'a> {
    quota: &'a Quota,
    client: [u8; 32],
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut writing = self
            .quota
            .writing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = writing.get_mut(&self.client) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                writing.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_count_until_they_are_dropped() {
        let quota = Quota::new(100, 150);
        let usage = Usage::default();
        let first = quota.reserve(&[1; 32], 80, &usage).unwrap();
        let refused = Refusal::Stored {
            needed: 30,
            stored: 80,
            limit: 100,
        };
        assert_eq!(quota.reserve(&[1; 32], 30, &usage).err(), Some(refused));
        assert_eq!(
            quota.reserve(&[2; 32], 90, &usage).err(),
            Some(Refusal::Full)
        );
        drop(first);
        assert!(quota.reserve(&[2; 32], 90, &usage).is_ok());
        assert!(quota.writing.lock().unwrap().is_empty());
    }
}
