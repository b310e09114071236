//! The shared engine with a real PostgreSQL, which `scripts/fleet` starts on a cluster of its own;
//! where there is none, these tests say so and pass.
#![cfg(feature = "fleet")]
#![allow(missing_docs)]

mod common;

use common::rig::{Rig, all, gone, key};
use common::{NOW, PEER, add, id, material, meta};
use primer_store::fleet::{Fleet, FleetOptions};
use primer_store::{Bounds, BundleStore, Fate, Store, StoreError};
use primer_testkit::wait::eventually;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Barrier;

#[test]
fn fleet_bundles_live_as_in_a_directory() {
    let Some(rig) = Rig::start() else { return };
    let (one, two) = (rig.join("one"), rig.join("two"));
    // Prepared on one, spent on the other, once; small, and larger than a part and a window.
    for (n, bytes) in [(1, 700_000), (2, 0), (3, 9 << 20)] {
        add(&one, meta(id(n)), bytes);
        assert_eq!(two.entry(id(n)).unwrap().unwrap().bytes, bytes as u64);
        assert_eq!(two.list_of(&PEER).unwrap().len(), 1);
        assert_eq!(all(&two, n), material(id(n), bytes));
        assert!(gone(one.spend(id(n), &PEER, NOW).err(), Fate::Spent));
        let taken = one.draft(meta(id(n))).err();
        assert!(matches!(taken, Some(StoreError::Taken { .. })));
    }
    eventually("objects of spent bundles go", || rig.objects().is_empty());
    let by = rig.sql("SELECT DISTINCT replica_name FROM primer_past");
    assert_eq!(by, "two");

    // Only the peer, only in time, and not what was damaged.
    for n in 10..14 {
        add(&one, meta(id(n)), 300_000);
    }
    let unknown = two.spend(id(10), &[9; 32], NOW).err();
    assert!(matches!(unknown, Some(StoreError::Unknown { .. })));
    let expired = two.spend(id(10), &PEER, NOW + 1000).err();
    assert!(matches!(expired, Some(StoreError::Expired { .. })));
    let object = |n: u64| {
        let name = id(n).to_string();
        let of = |path: &PathBuf| path.to_string_lossy().contains(&name);
        rig.objects().into_iter().find(of).unwrap()
    };
    std::fs::remove_file(object(10)).unwrap();
    let cut = std::fs::read(object(11)).unwrap();
    std::fs::write(object(11), &cut[1..]).unwrap();
    for n in [10, 11] {
        let damaged = two.spend(id(n), &PEER, NOW).err();
        assert!(matches!(damaged, Some(StoreError::Damaged { .. })));
        assert!(gone(one.spend(id(n), &PEER, NOW).err(), Fate::Damaged));
    }
    // A bit of the object, and the half of the salt that is in the table.
    let mut flipped = std::fs::read(object(12)).unwrap();
    flipped[100_000] ^= 1;
    std::fs::write(object(12), flipped).unwrap();
    rig.sql("UPDATE primer_bundles SET salt = set_byte(salt, 0, get_byte(salt, 0) # 1)");
    for n in [12, 13] {
        let mut spent = two.spend(id(n), &PEER, NOW).unwrap();
        assert!(spent.read(&mut [0; 1]).is_err());
    }

    // Deleted and expired ones leave tombstones for a while.
    add(&one, meta(id(20)), 10);
    add(&one, meta(id(21)), 10);
    two.delete(id(20), NOW).unwrap();
    assert!(gone(one.delete(id(20), NOW).err(), Fate::Deleted));
    let removed = one.delete_expired(NOW + 1000).unwrap();
    assert_eq!((removed.bundles, removed.tombstones), (1, 0));
    eventually("objects go", || rig.objects().is_empty());
    eventually("and are forgotten", || {
        rig.sql("SELECT count(*) FROM primer_past WHERE blob IS NOT NULL") == "0"
    });
    let late = NOW + 1001 + primer_store::GRACE_SECONDS;
    assert_eq!(two.delete_expired(late).unwrap().tombstones, 9);

    // Quotas hold across replicas, for what is stored and for what is being written.
    let bounds = Bounds {
        per_peer: 1_000_000,
        total: 1_500_000,
    };
    add(&one, meta(id(30)), 400_000);
    let kept = one.reserve(&PEER, 500_000, bounds).unwrap();
    let quota = two.reserve(&PEER, 200_000, bounds).err();
    assert!(matches!(quota, Some(StoreError::Quota { stored, .. }) if stored > 900_000));
    let full = two.reserve(&[8; 32], 700_000, bounds).err();
    assert!(matches!(full, Some(StoreError::Full { .. })));
    drop(kept);
    eventually("what was set aside is given back", || {
        two.reserve(&PEER, 200_000, bounds).is_ok()
    });
    assert_eq!(two.usage().unwrap().of(&PEER).bundles, 1);

    // Keys: a new one seals, the old one still opens; without it the store is refused by number.
    let both = Store::connect(rig.options("three", &format!("{},{}", key(2), key(1)))).unwrap();
    add(&both, meta(id(31)), 10);
    let refused = Store::connect(rig.options("four", &key(2))).err();
    assert!(matches!(
        refused,
        Some(StoreError::OtherKeys { bundles: 1 })
    ));
    assert!(matches!(
        one.entry(id(31)),
        Err(StoreError::OtherKeys { .. })
    ));
    assert_eq!(all(&both, 30), material(id(30), 400_000));
    assert_eq!(all(&both, 31), material(id(31), 10));

    // Drafts that died halfway are swept, living ones are not.
    eventually("objects go", || rig.objects().is_empty());
    add(&one, meta(id(40)), 10);
    add(&one, meta(id(41)), 10);
    std::fs::remove_file(object(41)).unwrap();
    let dead = format!("bundles/{}-{}-{}", id(42), id(77), id(78));
    std::fs::write(rig.blobs().join(dead), "a draft of a replica that is gone").unwrap();
    std::fs::write(rig.blobs().join("bundles/notes.txt"), "not ours").unwrap();
    let spent = one.spend(id(40), &PEER, NOW).unwrap();
    let mut draft = one.draft(meta(id(43))).unwrap();
    draft.write_all(&[1; 100]).unwrap();
    let swept = two.fleet().unwrap().count_orphans().unwrap();
    assert_eq!((swept.objects, swept.bundles, swept.in_use), (1, 1, 1));
    assert_eq!(two.fleet().unwrap().sweep().unwrap(), swept);
    assert_eq!(two.fleet().unwrap().count_orphans().unwrap().orphans(), 0);
    assert!(gone(one.spend(id(41), &PEER, NOW).err(), Fate::Damaged));
    // A replica that was taken for dead does not publish what it was writing.
    rig.sql("DELETE FROM primer_replicas WHERE name = 'one'");
    let lapsed = draft.commit().err();
    assert!(
        matches!(lapsed, Some(StoreError::Shared { .. })),
        "{lapsed:?}"
    );
    drop(spent);
    eventually("it begins anew", || {
        one.fleet().unwrap().replicas().unwrap().len() == 3
    });
    add(&one, meta(id(44)), 10);
    drop((one, two, both));
    assert_eq!(rig.sql("SELECT count(*) FROM primer_replicas"), "0");
}

fn race(bundles: u64) {
    let Some(rig) = Rig::start() else { return };
    let (one, two) = (rig.join("one"), rig.join("two"));
    let mut wins = [0u64; 2];
    // In rounds, so that bundles are there when both reach for them.
    for first in (0..bundles).step_by(500) {
        let round = first..bundles.min(first + 500);
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (one, round) = (&one, round.clone());
                scope.spawn(move || {
                    for n in round.filter(|n| n % 4 == part) {
                        add(one, meta(id(n)), 100);
                    }
                });
            }
        });
        let together = Barrier::new(2);
        let won = std::thread::scope(|scope| {
            let racers = [&one, &two].map(|store| {
                let (together, round) = (&together, round.clone());
                scope.spawn(move || {
                    let mut won = Vec::new();
                    for n in round {
                        together.wait();
                        match store.spend(id(n), &PEER, NOW) {
                            Ok(_) => won.push(n),
                            Err(StoreError::Gone {
                                fate: Fate::Spent, ..
                            }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    won
                })
            });
            racers.map(|racer| racer.join().unwrap())
        });
        let mut all = [won[0].clone(), won[1].clone()].concat();
        all.sort_unstable();
        assert_eq!(all, round.collect::<Vec<_>>(), "one winner each");
        wins[0] += won[0].len() as u64;
        wins[1] += won[1].len() as u64;
    }
    println!(
        "{bundles} bundles: one won {}, two won {}",
        wins[0], wins[1]
    );
    let spent = rig.sql("SELECT count(*), sum(spends) FROM primer_past WHERE fate = 0");
    assert_eq!(spent, format!("{bundles}|{bundles}"));
}

#[test]
fn fleet_replicas_race_for_bundles() {
    race(100);
}

/// Runs with `scripts/fleet test`.
#[test]
#[ignore = "takes minutes"]
fn fleet_replicas_race_for_ten_thousand_bundles() {
    race(10_000);
}

#[test]
fn fleet_survives_a_crash_and_notices_a_backup() {
    let Some(rig) = Rig::start() else { return };
    let store = rig.join("one");
    for n in 1..6 {
        add(&store, meta(id(n)), 1000);
    }
    // When it is down, callers learn so at once, as does the keeper; when it is up again, it
    // recovers by itself.
    rig.postgres("crash", "");
    let error = store.spend(id(1), &PEER, NOW).err().unwrap();
    assert!(error.is_temporary(), "{error}");
    assert!(store.draft(meta(id(9))).err().unwrap().is_temporary());
    eventually("the keeper notices", || store.ready().is_err());
    rig.postgres("start", "");
    eventually("it is back", || store.ready().is_ok());
    assert_eq!(all(&store, 1), material(id(1), 1000));

    // Blobs that can be read and not written: even root cannot replace a directory by a file.
    let probe = rig.blobs().join("probe");
    eventually("the blobs cannot be written", || {
        let _ = std::fs::create_dir(&probe);
        store.ready().is_err()
    });
    let error = store.ready().unwrap_err().to_string();
    assert!(error.contains("blobs failed"), "{error}");
    std::fs::remove_dir(&probe).unwrap();
    eventually("they can again", || store.ready().is_ok());
    let beyond = store.free().unwrap().expect("a directory");
    let error = store.reserve(&PEER, beyond, Bounds::NONE).err();
    assert!(matches!(error, Some(StoreError::Space { .. })));

    // Tables of an earlier version: without keys, and with bundles.
    drop(store);
    rig.sql(
        "ALTER TABLE primer_bundles DROP COLUMN key; ALTER TABLE primer_past DROP COLUMN replica, \
         DROP COLUMN replica_name; DROP TRIGGER primer_append_epoch ON primer_about; \
         DROP TABLE primer_epochs, primer_rollbacks, primer_counts; ALTER TABLE primer_about \
         DROP COLUMN renewed, DROP COLUMN chained; DELETE FROM primer_schema WHERE version > 1",
    );
    let store = rig.join("one");
    assert_eq!(rig.sql("SELECT max(version) FROM primer_schema"), "4");
    assert_eq!(all(&store, 2), material(id(2), 1000));
    assert!(gone(store.spend(id(1), &PEER, NOW).err(), Fate::Spent));
    rig.sql("INSERT INTO primer_schema (version) VALUES (99)");
    let newer = Store::connect(rig.options("two", &key(1))).err().unwrap();
    assert!(newer.to_string().contains("version 99"), "{newer}");
    rig.sql("DELETE FROM primer_schema WHERE version = 99");

    // A backup of the database is restored under a running replica, and before a start.
    rig.postgres("stop", "");
    rig.postgres("save", "");
    rig.postgres("start", "");
    eventually("it is back", || store.ready().is_ok());
    assert_eq!(all(&store, 3), material(id(3), 1000));
    let before = store.fleet().unwrap().epoch();
    store.fleet().unwrap().next_epoch().unwrap();
    assert_eq!(store.fleet().unwrap().epoch(), before + 1);
    rig.postgres("stop", "");
    rig.postgres("restore", "");
    rig.postgres("start", "");
    assert_eq!(
        rig.sql("SELECT count(*) FROM primer_bundles"),
        "3",
        "bundle 3 is back"
    );
    let error = store.spend(id(3), &PEER, NOW).err().unwrap();
    assert!(matches!(error, StoreError::RolledBack { .. }), "{error}");
    let other = || FleetOptions {
        witness: None,
        ..rig.options("two", &key(1))
    };
    eventually("the keeper says so", || store.is_rolled_back());
    let error = Store::connect(other()).err().unwrap();
    assert!(matches!(error, StoreError::RolledBack { .. }), "{error}");
    // Even without a replica that has seen more, the blobs give it away.
    store.leave();
    rig.sql("DELETE FROM primer_rollbacks");
    let error = Store::connect(other()).err().unwrap();
    assert!(matches!(error, StoreError::Epoch { .. }), "{error}");
    drop(store);

    // Nothing in it can be used until it is renewed; then nothing of it is left.
    let (renewed, bundles) = Fleet::renew(rig.options("two", &key(1))).unwrap();
    assert_eq!(bundles, 3);
    assert!(renewed.epoch() > 1_000_000_000);
    let store = rig.join("one");
    assert!(gone(store.spend(id(4), &PEER, NOW).err(), Fate::Deleted));
    assert!(rig.objects().is_empty());
    add(&store, meta(id(50)), 10);
    assert_eq!(all(&store, 50), material(id(50), 10));

    // Both parts are restored together: a replica's own state remembers.
    let epoch = std::fs::read_to_string(rig.dir.path().join("one.epoch")).unwrap();
    drop((store, renewed));
    let (head, tail) = epoch.trim().split_once('-').unwrap();
    let number: u64 = tail.split('-').next().unwrap().parse().unwrap();
    let nonce = tail.split('-').nth(1).unwrap();
    let ahead = format!("{head}-{:012}-{nonce}\n", number + 1);
    std::fs::write(rig.dir.path().join("one.epoch"), ahead).unwrap();
    let error = Store::connect(rig.options("one", &key(1))).err().unwrap();
    assert!(error.to_string().contains("had seen"), "{error}");
    drop(Fleet::renew(rig.options("two", &key(1))).unwrap());

    // Blobs of another store; a new database with blobs of an earlier one.
    let elsewhere = FleetOptions {
        blobs: format!("file://{}", rig.dir.path().join("other").display()),
        ..rig.options("two", &key(1))
    };
    let error = Store::connect(elsewhere).err().unwrap();
    assert!(error.to_string().contains("have none"), "{error}");
    let store = rig.join("two");
    add(&store, meta(id(61)), 10);
    drop(store);
    rig.sql(
        "DROP TABLE primer_about, primer_bundles, primer_past, primer_reservations, \
         primer_replicas, primer_schema, primer_epochs, primer_rollbacks, primer_counts",
    );
    let error = Store::connect(rig.options("three", &key(1))).err().unwrap();
    assert!(error.to_string().contains("the database is new"), "{error}");
}
