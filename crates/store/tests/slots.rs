//! Bundles in the slots of a page: what a crash, damage and a reload leave of them.
#![allow(missing_docs)]

mod common;

use common::slots::MemorySlots;
use common::{NOW, PEER, add, id, material, meta};
use primer_store::{BundleStore, Fate, SlotStore, StoreError};
use std::io::{Read, Write};
use std::sync::Arc;

fn open(slots: &MemorySlots) -> SlotStore {
    SlotStore::open(Arc::new(slots.clone()), 1 << 30).unwrap()
}

#[test]
fn what_was_committed_is_there_after_a_crash_and_what_was_spent_is_not() {
    let slots = MemorySlots::new(6);
    let store = open(&slots);
    add(&store, meta(id(1)), 300_000);
    add(&store, meta(id(2)), 10);
    let mut draft = store.draft(meta(id(3))).unwrap();
    draft.write_all(&[7; 600_000]).unwrap();

    let after = open(&slots.crashed());
    assert_eq!(after.list().unwrap(), store.list().unwrap());
    assert_eq!(after.attachment(id(1)).unwrap().unwrap(), b"plan");
    let mut out = Vec::new();
    let mut spent = after.spend(id(1), &PEER, NOW).unwrap();
    spent.read_to_end(&mut out).unwrap();
    assert_eq!(out, material(id(1), 300_000));

    // Not a byte of the material was read yet.
    let spent = store.spend(id(1), &PEER, NOW).unwrap();
    let after = open(&slots.crashed());
    let gone = after.spend(id(1), &PEER, NOW).err().unwrap();
    let known = matches!(
        gone,
        StoreError::Gone {
            fate: Fate::Spent,
            ..
        }
    );
    assert!(known, "{gone}");
    assert!(after.draft(meta(id(1))).is_err());
    assert!(after.contains(id(2)).unwrap());
    drop(spent);
}

/// A bundle is none by its own slot: nothing depends on a tombstone that a crash has taken.
#[test]
fn a_spent_bundle_does_not_come_back_without_its_tombstone() {
    let slots = MemorySlots::new(4);
    let store = open(&slots);
    add(&store, meta(id(1)), 100);
    let old = slots.crashed();
    drop(store.spend(id(1), &PEER, NOW).unwrap());
    let found = slots.crashed();
    for slot in 0..2 {
        old.change(slot, |bytes| {
            found.change(slot, |newer| newer.clone_from(bytes));
        });
    }
    let after = open(&found);
    assert!(after.list().unwrap().is_empty());
    let unknown = after.spend(id(1), &PEER, NOW).err().unwrap();
    assert!(matches!(unknown, StoreError::Unknown { .. }), "{unknown}");
}

#[test]
fn what_is_damaged_is_not_given_out() {
    let slots = MemorySlots::new(3);
    add(&open(&slots), meta(id(1)), 300_000);
    let bytes = {
        let mut bytes = 0;
        slots.change(2, |file| bytes = file.len());
        bytes
    };
    // The header, the length of the material, the facts: no bundle any more.
    for at in [0, 20, 50, bytes - 1] {
        let copy = slots.crashed();
        copy.change(2, |file| file[at] ^= 1);
        assert!(open(&copy).list().unwrap().is_empty(), "{at}");
    }
    // The material: told when it is read.
    for at in [100, 280_000] {
        let copy = slots.crashed();
        copy.change(2, |file| file[at] ^= 1);
        let mut spent = open(&copy).spend(id(1), &PEER, NOW).unwrap();
        let error = spent.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }
    let cut = slots.crashed();
    cut.change(2, |file| file.truncate(bytes / 2));
    assert!(open(&cut).list().unwrap().is_empty());
}

#[test]
fn places_are_given_back() {
    let store = open(&MemorySlots::new(4));
    add(&store, meta(id(1)), 10);
    let draft = store.draft(meta(id(2))).unwrap();
    let full = store.draft(meta(id(3))).err().unwrap();
    assert!(matches!(full, StoreError::Places { places: 2 }), "{full}");
    drop(draft);
    add(&store, meta(id(3)), 10);
    store.delete(id(1), NOW).unwrap();
    add(&store, meta(id(4)), 10);
    drop(store.spend(id(3), &PEER, NOW).unwrap());
    add(&store, meta(id(5)), 10);
}
