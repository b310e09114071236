//! What the tests of the store share.
#![allow(dead_code, missing_docs)]

#[cfg(feature = "fleet")]
pub(crate) mod rig;
#[cfg(feature = "slots")]
pub(crate) mod slots;

use primer_store::{BundleId, BundleQuery, BundleStore, Meta, Spent, StoreError};
use std::io::Write;

pub(crate) const PEER: [u8; 32] = [5; 32];
pub(crate) const PROGRAM: [u8; 32] = [6; 32];
pub(crate) const NOW: u64 = 1_000_000;

pub(crate) fn id(n: u64) -> BundleId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    BundleId::from_bytes(bytes)
}

pub(crate) fn meta(id: BundleId) -> Meta {
    Meta {
        id,
        peer: PEER,
        program: PROGRAM,
        tokens: 32,
        created: NOW,
        expires: NOW + 1000,
        attachment: b"plan".to_vec(),
    }
}

/// Makes material that tells which bundle it belongs to.
pub(crate) fn material(id: BundleId, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    blake3::Hasher::new()
        .update(id.as_bytes())
        .finalize_xof()
        .fill(&mut out);
    out
}

pub(crate) fn add(store: &dyn BundleStore, meta: Meta, bytes: usize) {
    let mut draft = store.draft(meta.clone()).unwrap();
    draft.write_all(&material(meta.id, bytes)).unwrap();
    draft.commit().unwrap();
}

/// Takes a bundle that will do, as a client does: the one for the fewest tokens, and of those the
/// one that expires first. A bundle that is damaged or that another caller took is passed over.
pub(crate) fn take(store: &dyn BundleStore, wanted: &BundleQuery, now: u64) -> Option<Spent> {
    take_by(store, wanted, now, |id| store.spend(id, &wanted.peer, now))
}

/// Takes a bundle likewise, by a given way of spending.
pub(crate) fn take_by(
    store: &dyn BundleStore,
    wanted: &BundleQuery,
    now: u64,
    spend: impl Fn(BundleId) -> Result<Spent, StoreError>,
) -> Option<Spent> {
    loop {
        let mut fitting = store.list().unwrap();
        fitting.retain(|entry| wanted.fits(entry) && entry.expires > now);
        let best = fitting.into_iter();
        let best = best.min_by_key(|entry| (entry.tokens, entry.expires, entry.id))?;
        match spend(best.id) {
            Ok(spent) => return Some(spent),
            Err(StoreError::Gone { .. } | StoreError::Damaged { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
