//! What every store promises, whatever it keeps bundles in.
#![allow(missing_docs)]

mod common;

use common::slots::MemorySlots;
use common::{NOW, PEER, add, id, material, meta, take};
use primer_store::{
    ATTACHMENT_LIMIT, Bounds, BundleQuery, BundleStore, Fate, GRACE_SECONDS, MemoryStore, Meta,
    Removed, SlotStore, Spent, Store, StoreError,
};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls a test with an empty store of each kind.
fn each(test: impl Fn(&dyn BundleStore)) {
    let dir = tempfile::tempdir().unwrap();
    test(&Store::open(dir.path()).unwrap());
    test(&MemoryStore::new(1 << 30));
    test(&SlotStore::open(Arc::new(MemorySlots::new(66)), 1 << 30).unwrap());
}

fn all(spent: &mut Spent) -> Vec<u8> {
    let mut out = Vec::new();
    spent.read_to_end(&mut out).unwrap();
    out
}

fn gone(error: Option<StoreError>, wanted: Fate) -> bool {
    matches!(error, Some(StoreError::Gone { fate, .. }) if fate == wanted)
}

#[test]
fn what_is_stored_is_given_out_once() {
    each(|store| {
        for (n, bytes) in [(1, 0), (2, 1), (3, 256 << 10), (4, 700_000)] {
            add(store, meta(id(n)), bytes);
            assert!(store.contains(id(n)).unwrap());
            assert_eq!(store.attachment(id(n)).unwrap().unwrap(), b"plan");
            let entry = store.entry(id(n)).unwrap().unwrap();
            assert_eq!(entry.bytes, bytes as u64);
            assert_eq!(store.list().unwrap(), [entry]);
            let mut spent = store.spend(id(n), &PEER, NOW).unwrap();
            assert_eq!(spent.attachment(), b"plan");
            assert_eq!(spent.left(), bytes as u64);
            // Taken when it is spent, not when it is read.
            assert!(gone(store.spend(id(n), &PEER, NOW).err(), Fate::Spent));
            assert!(store.list().unwrap().is_empty());
            assert_eq!(store.attachment(id(n)).unwrap(), None);
            assert_eq!(all(&mut spent), material(id(n), bytes));
            assert_eq!(spent.left(), 0);
            let again = store.draft(meta(id(n))).err();
            assert!(matches!(again, Some(StoreError::Taken { .. })));
            assert!(gone(store.delete(id(n), NOW).err(), Fate::Spent));
        }
    });
}

#[test]
fn only_the_peer_spends_and_only_in_time() {
    each(|store| {
        add(store, meta(id(1)), 10);
        assert_eq!(store.list_of(&PEER).unwrap().len(), 1);
        assert!(store.list_of(&[9; 32]).unwrap().is_empty());
        let unknown = |e: StoreError| matches!(e, StoreError::Unknown { .. });
        assert!(unknown(store.spend(id(1), &[9; 32], NOW).err().unwrap()));
        assert!(unknown(store.spend(id(2), &PEER, NOW).err().unwrap()));
        assert!(matches!(
            store.spend(id(1), &PEER, NOW + 1000).err().unwrap(),
            StoreError::Expired { .. }
        ));
        assert!(store.spend(id(1), &PEER, NOW + 999).is_ok());
        assert!(unknown(store.spend(id(1), &[9; 32], NOW).err().unwrap()));
    });
}

#[test]
fn drafts_are_invisible_and_the_first_to_commit_has_the_name() {
    each(|store| {
        let mut draft = store.draft(meta(id(1))).unwrap();
        draft.write_all(&[1; 1000]).unwrap();
        assert!(!store.contains(id(1)).unwrap());
        drop(draft);
        let first = store.draft(meta(id(1))).unwrap();
        let mut second = store.draft(meta(id(1))).unwrap();
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        let late = first.commit().unwrap_err();
        assert!(matches!(late, StoreError::Taken { .. }));
        assert_eq!(all(&mut store.spend(id(1), &PEER, NOW).unwrap()), b"second");
        let large = Meta {
            attachment: vec![0; ATTACHMENT_LIMIT + 1],
            ..meta(id(2))
        };
        let large = store.draft(large).err().unwrap();
        assert!(matches!(large, StoreError::Attachment { .. }));
    });
}

#[test]
fn names_stay_taken_until_they_are_long_expired() {
    each(|store| {
        for n in 1..=2 {
            let expires = NOW + 1000 * n;
            add(
                store,
                Meta {
                    expires,
                    ..meta(id(n))
                },
                100,
            );
        }
        store.delete(id(1), NOW).unwrap();
        assert!(gone(store.delete(id(1), NOW).err(), Fate::Deleted));
        assert!(gone(store.spend(id(1), &PEER, NOW).err(), Fate::Deleted));
        let unknown = store.delete(id(9), NOW).unwrap_err();
        assert!(matches!(unknown, StoreError::Unknown { .. }));
        assert_eq!(store.delete_expired(NOW).unwrap(), Removed::default());
        let removed = store.delete_expired(NOW + 2000).unwrap();
        assert_eq!((removed.bundles, removed.tombstones), (1, 0));
        assert!(gone(store.spend(id(2), &PEER, NOW).err(), Fate::Expired));
        assert!(store.draft(meta(id(1))).is_err());
        let removed = store.delete_expired(NOW + 1000 + GRACE_SECONDS).unwrap();
        assert_eq!((removed.bundles, removed.tombstones), (0, 1));
        assert!(store.draft(meta(id(1))).is_ok());
        assert!(store.draft(meta(id(2))).is_err());
    });
}

#[test]
fn what_is_set_aside_counts_until_it_is_given_back() {
    each(|store| {
        let bounds = Bounds {
            per_peer: 5_000,
            total: 6_000,
        };
        let reserve = |peer: u8, bytes| store.reserve(&[peer; 32], bytes, bounds);
        let first = reserve(1, 4_000).unwrap();
        assert!(matches!(reserve(1, 2_000), Err(StoreError::Quota { .. })));
        assert!(matches!(reserve(2, 3_000), Err(StoreError::Full { .. })));
        drop(first);
        drop(reserve(2, 3_000).unwrap());
        // What is stored counts too.
        let peer = [1; 32];
        add(
            store,
            Meta {
                peer,
                ..meta(id(1))
            },
            4_000,
        );
        assert!(matches!(reserve(1, 2_000), Err(StoreError::Quota { .. })));
    });
}

#[test]
fn threads_share_without_spending_twice() {
    each(|store| {
        let wins = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for t in 0..8u64 {
                let wins = &wins;
                scope.spawn(move || {
                    for n in 0..4 {
                        add(store, meta(id(100 * t + n)), 5000);
                    }
                    let wanted = BundleQuery {
                        peer: PEER,
                        program: None,
                        tokens: 1,
                    };
                    while let Some(mut spent) = take(store, &wanted, NOW) {
                        assert_eq!(all(&mut spent), material(spent.entry().id, 5000));
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(wins.into_inner(), 32);
    });
}

/// Checks that memory has a limit of its own, as a disk has.
#[test]
fn memory_takes_no_more_than_its_limit() {
    let store = MemoryStore::new(1000);
    let full = store.reserve(&PEER, 1001, Bounds::NONE).err();
    assert!(matches!(full, Some(StoreError::Full { limit: 1000, .. })));
    assert!(store.reserve(&PEER, 1000, Bounds::NONE).is_ok());
}
