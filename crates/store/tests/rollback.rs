//! A shared store that is rolled back: once noticed, this stays noticed by all replicas until the
//! store is renewed. With a real PostgreSQL; where there is none, these tests say so and pass.
#![cfg(feature = "fleet")]
#![allow(missing_docs)]

mod common;

use common::rig::{Rig, all, gone, key};
use common::{NOW, PEER, add, id, material, meta};
use primer_store::fleet::Fleet;
use primer_store::{BundleStore, Fate, Store, StoreError};
use primer_testkit::wait::eventually;

/// Moves the epoch on; a replica gives way to another that holds the lock at that moment.
fn move_on(store: &Store, times: u64) {
    for _ in 0..times {
        let before = epoch(store);
        eventually("the epoch moves on", || {
            store.fleet().unwrap().next_epoch().unwrap();
            epoch(store) > before
        });
    }
}

fn epoch(store: &Store) -> u64 {
    store.fleet().unwrap().epoch()
}

fn renew(rig: &Rig) -> u64 {
    Fleet::renew(rig.options("renewing", &key(1))).unwrap().1
}

fn rolled_back<T>(outcome: Result<T, StoreError>) -> String {
    let said = outcome.err().expect("the store is refused").to_string();
    for words in [
        "was rolled back: replica",
        "had seen epoch",
        "primer store renew",
    ] {
        assert!(said.contains(words), "{said}");
    }
    said
}

fn is_latched(rig: &Rig, name: &str) -> bool {
    rig.dir.path().join(format!("{name}.latch")).exists()
}

/// Stores some bundles, copies the store, and spends a bundle after the copy was made.
fn spend_after_a_copy(rig: &Rig, stores: &[Store]) {
    for n in 1..4 {
        add(&stores[0], meta(id(n)), 1000);
    }
    move_on(&stores[0], 2);
    rig.save("copy");
    for store in stores {
        eventually("it is back", || store.ready().is_ok());
    }
    assert_eq!(all(&stores[0], 1), material(id(1), 1000));
    move_on(&stores[0], 3);
    for store in stores {
        eventually("all have seen it", || epoch(store) == epoch(&stores[0]));
    }
}

#[test]
fn fleet_a_rollback_stops_all_replicas_and_new_ones() {
    let Some(rig) = Rig::start() else { return };
    let three = ["one", "two", "three"].map(|name| rig.join(name));
    spend_after_a_copy(&rig, &three);
    rig.restore("copy");
    let bundles = rig.sql("SELECT count(*) FROM primer_bundles");
    assert_eq!(bundles, "3", "bundle 1 is back");
    // Not even before the keepers look; and a replica with an empty state, which has seen nothing
    // itself, learns of it too.
    rolled_back(three[1].spend(id(1), &PEER, NOW));
    rolled_back(rig.try_join("four"));
    for store in &three {
        eventually("the keeper says so", || store.is_rolled_back());
    }
    let [one, two, three] = three;
    drop(one);
    rolled_back(rig.try_join("one"));
    // Without its witness, too: the latch remembers, and it tells the database again.
    std::fs::remove_file(rig.dir.path().join("one.epoch")).unwrap();
    drop((two, rig.sql("DELETE FROM primer_rollbacks")));
    rolled_back(rig.try_join("one"));
    rolled_back(rig.try_join("four"));
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let said = three.ready().unwrap_err().to_string();
        assert!(said.contains("was rolled back"), "{said}");
        assert!(three.is_rolled_back());
        rolled_back(three.spend(id(1), &PEER, NOW));
        rolled_back(three.draft(meta(id(8))));
        rolled_back(three.fleet().unwrap().next_epoch());
    }
    assert!(
        ["one", "two", "three"]
            .iter()
            .all(|name| is_latched(&rig, name))
    );
    assert!(!is_latched(&rig, "four"));

    assert_eq!(renew(&rig), 3);
    eventually("the running replica goes on", || three.ready().is_ok());
    for name in ["one", "two", "four"] {
        let store = rig.join(name);
        assert!(gone(store.spend(id(1), &PEER, NOW).err(), Fate::Deleted));
        assert!(!is_latched(&rig, name));
    }
    add(&three, meta(id(9)), 10);
    assert_eq!(all(&three, 9), material(id(9), 10));
    assert!(!is_latched(&rig, "three"));
}

/// Lets a replica without a witness go on with the restored store, while all others are down.
#[test]
fn fleet_a_restored_history_does_not_overtake() {
    let Some(rig) = Rig::start() else { return };
    let three = ["one", "two", "three"].map(|name| rig.join(name));
    spend_after_a_copy(&rig, &three);
    let seen = epoch(&three[0]);
    drop(three);
    rig.restore("copy");
    let four = rig.join("four");
    move_on(&four, 10);
    assert!(epoch(&four) > seen);
    add(&four, meta(id(7)), 10);

    // The first replica that comes back stops it, at once.
    rolled_back(rig.try_join("two"));
    rolled_back(four.spend(id(1), &PEER, NOW));
    rolled_back(four.delete(id(1), NOW));
    eventually("the keeper says so", || four.is_rolled_back());
    rolled_back(four.draft(meta(id(8))));
    drop(four);
    for name in ["four", "one", "two", "three", "five"] {
        rolled_back(rig.try_join(name));
    }

    assert_eq!(renew(&rig), 4);
    let stores = ["four", "one", "two", "three"].map(|name| rig.join(name));
    for store in &stores {
        assert!(gone(store.spend(id(1), &PEER, NOW).err(), Fate::Deleted));
        assert!(gone(store.spend(id(7), &PEER, NOW).err(), Fate::Deleted));
    }
    assert_eq!(rig.sql("SELECT count(*) FROM primer_rollbacks"), "0");
}

#[test]
fn fleet_only_a_later_renewal_answers_a_rollback() {
    let Some(rig) = Rig::start() else { return };
    let store = rig.join("one");
    renew(&rig);
    eventually("it goes on", || epoch(&store) > 1_000_000_000);
    let stores = [store];
    spend_after_a_copy(&rig, &stores);
    rig.save("true");
    let [store] = stores;
    eventually("it is back", || store.ready().is_ok());
    // The copy has a renewal, but an earlier one.
    rig.restore("copy");
    eventually("it is noticed", || store.is_rolled_back());
    drop(store);
    // Restoring the store as it was does not mend it: the copy may have been used meanwhile.
    rig.restore("true");
    rolled_back(rig.try_join("one"));
    rolled_back(rig.try_join("two"));
    // A record that comes late, after the renewal that answers it, has no effect.
    let late = rig.sql("SELECT seen || ',' || found || ',' || at FROM primer_rollbacks");
    renew(&rig);
    rig.sql(&format!(
        "INSERT INTO primer_rollbacks VALUES ('late', {late})"
    ));
    let (one, two) = (rig.join("one"), rig.join("two"));
    add(&one, meta(id(5)), 10);
    assert_eq!(all(&two, 5), material(id(5), 10));
    // A clock that is ahead: the renewal takes a number above it.
    rig.sql("INSERT INTO primer_rollbacks VALUES ('ahead', 1, 1, 4000000000)");
    eventually("it counts", || one.is_rolled_back() && two.is_rolled_back());
    renew(&rig);
    eventually("they go on", || one.ready().is_ok() && two.ready().is_ok());
    assert!(epoch(&one) > 4_000_000_000);
}

/// Covers moves, moves that were cut short, replicas that were away or looked in the middle of a
/// move.
#[test]
fn fleet_honest_moves_are_never_taken_for_a_rollback() {
    let Some(rig) = Rig::start() else { return };
    let one = rig.join("one");
    drop(rig.join("two"));
    move_on(&one, 40);
    let (two, three) = (rig.join("two"), rig.join("three"));
    assert_eq!(epoch(&one), 41);
    let epochs = rig.blobs().join("epochs");
    let current = || {
        let mut names = std::fs::read_dir(&epochs).unwrap();
        names
            .next()
            .unwrap()
            .unwrap()
            .file_name()
            .into_string()
            .unwrap()
    };
    for store in [&one, &two, &three, &two] {
        // Killed after the object: another one of that number becomes current.
        let before = current();
        let (head, _) = before.rsplit_once('-').unwrap();
        let next = epoch(store) + 1;
        let (head, _) = head.rsplit_once('-').unwrap();
        let orphan = format!("{head}-{next:012}-{}", "ab".repeat(16));
        std::fs::write(epochs.join(&orphan), "").unwrap();
        for store in [&one, &two, &three] {
            assert!(store.ready().is_ok());
        }
        move_on(store, 1);
        // Killed before the objects of earlier epochs were deleted.
        assert!(!epochs.join(&orphan).exists());
        std::fs::write(epochs.join(&before), "").unwrap();
        drop(rig.join("four"));
        move_on(store, 1);
        assert!(!epochs.join(&before).exists());
        for store in [&one, &two, &three] {
            eventually("all follow", || epoch(store) == next + 1);
        }
    }
    // All at once, faster than any replica looks.
    std::thread::scope(|scope| {
        for store in [&one, &two, &three] {
            scope.spawn(move || {
                for _ in 0..30 {
                    match store.fleet().unwrap().next_epoch() {
                        Ok(()) | Err(StoreError::Epoch { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    for store in [&one, &two, &three] {
        eventually("all are well", || store.ready().is_ok());
    }
    let last: u64 = rig.sql("SELECT number FROM primer_about").parse().unwrap();
    assert!(last > 60, "{last}");
    assert_eq!(
        rig.sql("SELECT count(*) FROM primer_epochs"),
        last.to_string()
    );
    assert_eq!(rig.sql("SELECT count(*) FROM primer_rollbacks"), "0");
    let names = ["one", "two", "three", "four"];
    assert!(!names.iter().any(|name| is_latched(&rig, name)));
}

#[test]
fn fleet_stores_of_before_there_was_a_chain_are_taken_on() {
    let Some(rig) = Rig::start() else { return };
    let store = rig.join("one");
    add(&store, meta(id(1)), 10);
    move_on(&store, 3);
    drop((store, rig.join("two")));
    let first = std::fs::read(rig.dir.path().join("one.epoch")).unwrap();
    // Tables of version 2, in which the epoch moves on.
    rig.sql(
        "DROP TRIGGER primer_append_epoch ON primer_about; DROP FUNCTION primer_append_epoch; \
         DROP TABLE primer_epochs, primer_rollbacks, primer_counts; ALTER TABLE primer_about \
         DROP COLUMN renewed, DROP COLUMN chained; DELETE FROM primer_schema WHERE version > 2",
    );
    let old_move = |number: u64| {
        let nonce = format!("{number:032x}");
        rig.sql(&format!(
            "UPDATE primer_about SET number = {number}, nonce = '\\x{nonce}', next_number = NULL, \
             next_nonce = NULL, moved = now()"
        ));
        let store = rig.sql("SELECT encode(store, 'hex') FROM primer_about");
        let epochs = rig.blobs().join("epochs");
        std::fs::remove_dir_all(&epochs).unwrap();
        std::fs::create_dir(&epochs).unwrap();
        std::fs::write(epochs.join(format!("{store}-{number:012}-{nonce}")), "").unwrap();
    };
    old_move(5);
    old_move(6);
    let one = rig.join("one");
    assert_eq!(rig.sql("SELECT number, chained FROM primer_about"), "6|6");
    assert_eq!(rig.sql("SELECT number FROM primer_epochs"), "6");
    // Replicas of the previous version go on moving it, and leave no gap.
    old_move(7);
    eventually("it follows", || epoch(&one) == 7);
    move_on(&one, 1);
    let two = rig.join("two");
    assert_eq!(rig.sql("SELECT count(*) FROM primer_epochs"), "3");
    assert_eq!(all(&two, 1), material(id(1), 10));
    drop((one, two));

    // A history that begins after what was seen, long after the upgrade.
    rig.sql("DELETE FROM primer_epochs WHERE number = 6");
    std::fs::write(rig.dir.path().join("one.epoch"), first).unwrap();
    let said = rig.try_join("one").err().unwrap().to_string();
    assert!(said.contains("was last at epoch 4"), "{said}");
    assert!(said.contains("history begins at 7"), "{said}");
    assert!(said.contains("one.epoch and start again"), "{said}");
    assert!(!is_latched(&rig, "one"));
    drop(rig.join("two"));
    std::fs::remove_file(rig.dir.path().join("one.epoch")).unwrap();
    drop(rig.join("one"));
    // What is remembered must be legible.
    std::fs::write(rig.dir.path().join("one.epoch"), "").unwrap();
    let said = rig.try_join("one").err().unwrap().to_string();
    assert!(
        said.contains("does not hold what a replica remembers"),
        "{said}"
    );
}
