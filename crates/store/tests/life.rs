//! A bundle's life in a directory, and every way in which it is refused.
#![allow(missing_docs)]

mod common;

use common::{NOW, PEER, PROGRAM, add, id, material, meta, take};
use primer_store::{
    Bounds, BundleQuery, BundleStore, Fate, GRACE_SECONDS, Meta, Options, Removed, Spent, Store,
    StoreError,
};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::tempdir;

fn bulk_files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir.join("bundles")).unwrap();
    let mut names: Vec<_> = names
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn all(spent: &mut Spent) -> Vec<u8> {
    let mut out = Vec::new();
    spent.read_to_end(&mut out).unwrap();
    out
}

#[test]
fn stored_then_spent_then_gone() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path().join("a/store")).unwrap();
    add(&store, meta(id(1)), 700_000);
    assert!(store.contains(id(1)).unwrap());
    assert_eq!(store.attachment(id(1)).unwrap().unwrap(), b"plan");
    let listed = store.list().unwrap();
    assert_eq!((listed.len(), listed[0].bytes), (1, 700_000));

    let store = Store::open(dir.path().join("a/store")).unwrap();
    let mut spent = store.spend(id(1), &PEER, NOW).unwrap();
    assert_eq!(spent.attachment(), b"plan");
    assert_eq!(spent.left(), 700_000);
    assert_eq!(
        bulk_files(&dir.path().join("a/store")),
        [""; 0],
        "unlinked before it is read"
    );
    assert_eq!(all(&mut spent), material(id(1), 700_000));
    assert_eq!(spent.left(), 0);

    let again = store.spend(id(1), &PEER, NOW + 5).err().unwrap();
    assert!(matches!(
        again,
        StoreError::Gone {
            fate: Fate::Spent,
            at: NOW,
            ..
        }
    ));
    assert!(again.to_string().contains("was spent"), "{again}");
    assert!(!store.contains(id(1)).unwrap());
    assert!(store.attachment(id(1)).unwrap().is_none());
    let history = store.history().unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!((history[0].spends, history[0].fate), (1, Fate::Spent));
    assert!(matches!(
        store.draft(meta(id(1))).err().unwrap(),
        StoreError::Taken { .. }
    ));
}

#[test]
fn what_fits_best_is_chosen_from_the_list() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let with = |n, tokens, expires| Meta {
        tokens,
        expires,
        ..meta(id(n))
    };
    add(&store, with(1, 64, NOW + 10), 1);
    add(&store, with(2, 32, NOW + 90), 2);
    add(&store, with(3, 32, NOW + 80), 3);
    add(&store, with(4, 16, NOW + 10), 4);
    add(&store, with(5, 32, NOW), 5);
    let wanted = BundleQuery {
        peer: PEER,
        program: Some(PROGRAM),
        tokens: 20,
    };
    let other = BundleQuery {
        program: Some([0; 32]),
        ..wanted
    };
    assert!(take(&store, &other, NOW).is_none());
    let other = BundleQuery {
        peer: [0; 32],
        program: None,
        ..wanted
    };
    assert!(take(&store, &other, NOW).is_none());
    // The bundle that fits best lost its file: it is given up, the next is taken.
    fs::remove_file(dir.path().join(format!("bundles/{}.bundle", id(3)))).unwrap();
    let mut order = Vec::new();
    while let Some(mut spent) = take(&store, &wanted, NOW) {
        let of = spent.entry().id;
        assert_eq!(all(&mut spent), material(of, spent.entry().bytes as usize));
        order.push(of);
    }
    assert_eq!(order, [id(2), id(1)]);
    let history = store.history().unwrap();
    let damaged = history.iter().find(|past| past.id == id(3)).unwrap();
    assert_eq!((damaged.fate, damaged.spends), (Fate::Damaged, 0));
}

#[test]
fn deleted_and_expired_bundles_leave_tombstones_for_a_while() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for n in 1..=3 {
        let late = Meta {
            expires: NOW + 1000 * n,
            peer: [n as u8; 32],
            ..meta(id(n))
        };
        add(&store, late, 1000);
    }
    let usage = store.usage().unwrap();
    assert_eq!(usage.total.bundles, 3);
    assert_eq!(usage.of(&[2; 32]).bundles, 1);
    let on_disk = fs::metadata(dir.path().join(format!("bundles/{}.bundle", id(2))));
    assert_eq!(usage.of(&[2; 32]).bytes, on_disk.unwrap().len());
    assert_eq!(usage.of(&[8; 32]).bundles, 0);

    store.delete(id(1), NOW).unwrap();
    let again = store.delete(id(1), NOW).unwrap_err();
    assert!(matches!(
        again,
        StoreError::Gone {
            fate: Fate::Deleted,
            ..
        }
    ));
    assert!(matches!(
        store.delete(id(9), NOW).unwrap_err(),
        StoreError::Unknown { .. }
    ));
    assert_eq!(store.delete_expired(NOW).unwrap(), Removed::default());
    let removed = store.delete_expired(NOW + 2000).unwrap();
    assert_eq!((removed.bundles, removed.tombstones), (1, 0));
    assert_eq!(bulk_files(dir.path()), [format!("{}.bundle", id(3))]);
    assert_eq!(store.usage().unwrap().tombstones, 2);
    let removed = store.delete_expired(NOW + 2000 + GRACE_SECONDS).unwrap();
    assert_eq!((removed.bundles, removed.tombstones), (1, 2));
    assert_eq!(store.usage().unwrap().tombstones, 1);
}

#[test]
fn drafts_are_invisible_and_leave_nothing() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut draft = store.draft(meta(id(1))).unwrap();
    draft.write_all(&[1; 1000]).unwrap();
    assert!(!store.contains(id(1)).unwrap());
    // Another process that opens the store leaves a living draft alone.
    Store::open(dir.path()).unwrap();
    assert_eq!(bulk_files(dir.path()).len(), 1);
    drop(draft);
    assert_eq!(bulk_files(dir.path()), [""; 0]);
}

#[test]
fn leftovers_are_swept() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    add(&store, meta(id(1)), 10);
    let bundles = dir.path().join("bundles");
    fs::write(bundles.join(format!("{}.bundle", id(2))), [1; 100]).unwrap();
    fs::write(bundles.join(format!("{}-0000.draft", id(3))), [1; 5]).unwrap();
    fs::write(bundles.join("notes.txt"), "not ours").unwrap();
    Store::open(dir.path()).unwrap();
    assert_eq!(
        bulk_files(dir.path()),
        [format!("{}.bundle", id(1)), "notes.txt".into()]
    );
}

#[test]
fn damaged_files_are_refused_and_not_to_be_had_again() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let path = |n| dir.path().join(format!("bundles/{}.bundle", id(n)));
    for n in 1..=7 {
        add(&store, meta(id(n)), 300_000);
    }
    let edit = |n, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(path(n)).unwrap();
        change(&mut bytes);
        fs::write(path(n), bytes).unwrap();
    };
    edit(1, &|bytes| bytes.truncate(200_000));
    edit(2, &|bytes| bytes.push(0));
    edit(3, &|bytes| bytes[0] ^= 1);
    fs::remove_file(path(4)).unwrap();
    for n in 1..=4 {
        let error = store.spend(id(n), &PEER, NOW).err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        let again = store.spend(id(n), &PEER, NOW).err().unwrap();
        assert!(matches!(
            again,
            StoreError::Gone {
                fate: Fate::Damaged,
                ..
            }
        ));
    }
    // Damage that only reading can find: a salt, a chunk, two files exchanged.
    edit(5, &|bytes| bytes[20] ^= 1);
    edit(6, &|bytes| bytes[280_000] ^= 1);
    let mut spent = store.spend(id(5), &PEER, NOW).unwrap();
    assert!(spent.read(&mut [0; 1]).is_err());
    let mut spent = store.spend(id(6), &PEER, NOW).unwrap();
    let error = spent.read_to_end(&mut Vec::new()).unwrap_err().to_string();
    assert!(
        error.contains(&format!("bundle {}: chunk 1 ", id(6))),
        "{error}"
    );
    add(&store, meta(id(8)), 300_000);
    let (a, b) = (fs::read(path(7)).unwrap(), fs::read(path(8)).unwrap());
    fs::write(path(7), b).unwrap();
    fs::write(path(8), a).unwrap();
    for n in 7..=8 {
        let mut spent = store.spend(id(n), &PEER, NOW).unwrap();
        assert!(spent.read(&mut [0; 1]).is_err());
    }
    assert_eq!(
        bulk_files(dir.path()),
        [""; 0],
        "nothing is left of damaged ones"
    );
}

#[test]
fn modes_and_keys() {
    let dir = tempdir().unwrap();
    let at = dir.path().join("store");
    let store = Store::open(&at).unwrap();
    add(&store, meta(id(1)), 10);
    let mode = |path: &str| {
        let about = fs::metadata(at.join(path)).unwrap();
        about.permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("bundles")), (0o700, 0o700));
    let bundle = format!("bundles/{}.bundle", id(1));
    for file in ["key", "lock", "index.redb", &bundle] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    fs::set_permissions(at.join("key"), fs::Permissions::from_mode(0o640)).unwrap();
    let error = Store::open(&at).err().unwrap();
    assert!(error.to_string().contains("mode 0640"), "{error}");
    fs::remove_file(at.join("key")).unwrap();
    let error = Store::open(&at).err().unwrap();
    assert!(error.to_string().contains("is missing"), "{error}");

    let (at, key) = (dir.path().join("other"), dir.path().join("keys/mine"));
    let open = |key: &Path| {
        let options = Options {
            key_file: Some(key.to_owned()),
            ..Options::default()
        };
        Store::open_with(&at, &options)
    };
    add(&open(&key).unwrap(), meta(id(1)), 10);
    assert!(!at.join("key").exists());
    open(&key).unwrap();
    fs::copy(&key, dir.path().join("twin")).unwrap();
    fs::write(&key, [0; 32]).unwrap();
    let error = open(&key).err().unwrap();
    assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
    fs::write(&key, [0; 31]).unwrap();
    let error = open(&key).err().unwrap();
    assert!(error.to_string().contains("31 bytes"), "{error}");
    let store = open(&dir.path().join("twin")).unwrap();
    assert_eq!(
        all(&mut store.spend(id(1), &PEER, NOW).unwrap()),
        material(id(1), 10)
    );
}

/// Checks that readiness is tried: it is refused if a file cannot be written, even if the index is
/// in order.
#[test]
fn a_store_that_cannot_be_written_is_not_ready() {
    let dir = tempdir().unwrap();
    let at = dir.path().join("store");
    let store = Store::open(&at).unwrap();
    store.ready().unwrap();
    assert!(!at.join("probe").exists(), "nothing is left");
    // Even root cannot write to a directory.
    fs::create_dir(at.join("probe")).unwrap();
    let error = store.ready().unwrap_err().to_string();
    assert!(
        error.contains("cannot write") && error.contains("probe"),
        "{error}"
    );
    fs::remove_dir(at.join("probe")).unwrap();
    store.ready().unwrap();
}

/// Checks that a bundle is not begun if it does not fit on the disk.
#[test]
fn bundles_beyond_the_disk_are_refused_with_numbers() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let free = store.free().unwrap().expect("a file system that says");
    let error = store.reserve(&PEER, free, Bounds::NONE).err().unwrap();
    assert!(matches!(error, StoreError::Space { .. }), "{error}");
    assert!(error.to_string().contains("bytes free"), "{error}");
    assert!(store.reserve(&PEER, 1000, Bounds::NONE).is_ok());
    store.check_mark().unwrap();
}

#[test]
fn the_plaintext_and_the_salt_are_not_on_the_disk() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    add(&store, meta(id(1)), 1000);
    let path = dir.path().join(format!("bundles/{}.bundle", id(1)));
    let held = fs::File::open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let needle = &material(id(1), 1000)[..16];
    assert!(!before.windows(16).any(|w| w == needle));
    let _spent = store.spend(id(1), &PEER, NOW).unwrap();
    // A handle from before still sees the chunks, but no salt.
    let mut after = Vec::new();
    (&held).read_to_end(&mut after).unwrap();
    assert_eq!(after[..48], [0; 48]);
    assert_eq!(after[48..], before[48..]);
}

#[test]
fn a_held_lock_is_waited_for_but_not_forever() {
    let dir = tempdir().unwrap();
    let options = Options {
        patience: Duration::from_millis(50),
        ..Options::default()
    };
    let store = Store::open_with(dir.path(), &options).unwrap();
    let holder = fs::File::open(dir.path().join("lock")).unwrap();
    holder.lock().unwrap();
    assert!(matches!(store.list().unwrap_err(), StoreError::Busy { .. }));
    let late = Store::open_with(dir.path(), &options);
    assert!(matches!(late.err().unwrap(), StoreError::Busy { .. }));
    drop(holder);
    assert_eq!(store.list().unwrap(), []);
}
