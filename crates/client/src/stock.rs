//! A client's bundles: preparing them, finding one that fits, and bringing both stores in line.

use super::Client;
use super::link::{Prepared, read_attachment, store_error};
use primer_service::message::Refusal;
use primer_service::{BundleId, ServiceError};
use primer_store::{BundleQuery, Entry, StoreError, unix_now};
use primer_wire::PhaseBytes;
use std::collections::BTreeMap;

impl Client {
    /// Prepares `count` bundles ahead, for inputs of up to `tokens` tokens, and stores them;
    /// several together where that can be done, which takes fewer bytes and less time.
    ///
    /// What is finished is in both stores and stays, even if the call fails. If the server goes
    /// away in the middle and comes back ([`ClientOptions::wait`](super::ClientOptions::wait)),
    /// only the batch that was cut is begun again, with nothing of what was made of it.
    ///
    /// # Errors
    /// [`ServiceError`]; [`ServiceError::Incomplete`] if some are finished, with their number.
    pub fn prepare(&mut self, tokens: usize, count: usize) -> Result<Vec<BundleId>, ServiceError> {
        Ok(self.prepare_many(tokens, count)?.ids)
    }

    pub(super) fn prepare_many(
        &mut self,
        tokens: usize,
        count: usize,
    ) -> Result<Prepared, ServiceError> {
        let bucket = self.bucket(tokens)?;
        let (mut most, mut account) = (count, self.peer());
        let mut made = Prepared {
            ids: Vec::with_capacity(count),
            seconds: 0.0,
            bytes: PhaseBytes::default(),
        };
        while made.ids.len() < count {
            let wanted = most.min(count - made.ids.len());
            let bundles = self.card.batch(bucket, wanted);
            let prepared = self.with_retry(|client| client.prepare_some(bucket, bundles));
            if self.peer() != account {
                // It came back with another model, to which those are of no use.
                (account, made.ids) = (self.peer(), Vec::new());
            }
            match prepared {
                // There may be room for some of them.
                Err(ServiceError::Refused(Refusal::Stored { .. } | Refusal::Limit(_)))
                    if bundles > 1 =>
                {
                    most = bundles / 2;
                }
                Err(error) => return Err(error.having_kept(made.ids.len(), count)),
                Ok(prepared) => {
                    made.ids.extend(prepared.ids);
                    made.seconds += prepared.seconds;
                    made.bytes += prepared.bytes;
                }
            }
        }
        Ok(made)
    }

    /// Counts unspent bundles for this server as it is now, by padded length.
    ///
    /// # Errors
    /// [`ServiceError`] if the store cannot be read.
    pub fn prepared(&self) -> Result<BTreeMap<usize, usize>, ServiceError> {
        let (peer, now) = (self.peer(), unix_now());
        let mut lengths = BTreeMap::new();
        for entry in self.parts.bundles.list().map_err(store_error)? {
            if entry.peer == peer && entry.expires > now {
                *lengths.entry(entry.tokens as usize).or_insert(0) += 1;
            }
        }
        Ok(lengths)
    }

    /// Brings both stores in line: bundles that only one side has are deleted. Tells how many on
    /// each side.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn reconcile(&mut self) -> Result<(usize, usize), ServiceError> {
        /// Younger ones may be in the making by another process.
        const SETTLED: u32 = 3600;
        /// More orphans than a client leaves behind; the rest have to wait for another time.
        const MOST: usize = 1024;
        let peer = self.peer();
        let own = self.parts.bundles.list().map_err(store_error)?;
        let held = self.link()?.list()?;
        let (mut here, mut there) = (0, 0);
        for entry in own.iter().filter(|e| e.peer == peer) {
            if !held.iter().any(|h| h.id == entry.id) {
                self.discard(entry.id)?;
                here += 1;
            }
        }
        for orphan in held.iter().filter(|h| h.age >= SETTLED).take(MOST) {
            if !own.iter().any(|e| e.id == orphan.id) {
                self.link()?.forget(orphan.id)?;
                there += 1;
            }
        }
        Ok((here, there))
    }

    pub(super) fn prepare_some(
        &mut self,
        tokens: usize,
        bundles: usize,
    ) -> Result<Prepared, ServiceError> {
        match self.try_prepare(tokens, bundles) {
            // Orphans of broken attempts may fill the account.
            Err(ServiceError::Refused(Refusal::Stored { .. })) if self.reconcile()?.1 > 0 => {
                self.try_prepare(tokens, bundles)
            }
            result => result,
        }
    }

    /// Finds the stored bundle that fits best.
    pub(super) fn find(&self, tokens: usize) -> Result<Option<Entry>, ServiceError> {
        let fitting = self.fitting(tokens)?.into_iter();
        Ok(fitting.min_by_key(|entry| (entry.tokens, entry.expires, entry.id)))
    }

    /// Finds the stored bundles that fit.
    pub(super) fn fitting(&self, tokens: usize) -> Result<Vec<Entry>, ServiceError> {
        let wanted = BundleQuery {
            peer: self.peer(),
            program: None,
            tokens: tokens as u32,
        };
        let now = unix_now();
        let mut entries = self.parts.bundles.list().map_err(store_error)?;
        entries.retain(|entry| wanted.fits(entry) && entry.expires > now);
        Ok(entries)
    }

    pub(super) fn discard(&self, id: BundleId) -> Result<(), ServiceError> {
        match self.parts.bundles.delete(id, unix_now()) {
            Ok(()) | Err(StoreError::Gone { .. } | StoreError::Unknown { .. }) => Ok(()),
            Err(error) => Err(store_error(error)),
        }
    }
}

/// Returns the server's address that was stored beside a bundle.
pub fn bundle_address(attachment: &[u8]) -> Option<&str> {
    read_attachment(attachment).map(|(address, _)| address)
}
