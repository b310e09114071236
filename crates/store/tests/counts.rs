//! Counts that nothing takes back: what is counted, when, and what is refused.
#![allow(missing_docs)]

mod common;

use common::{NOW, PEER, add, id, meta};
use primer_store::{Account, BundleStore, Charge, Counted, Store, StoreError};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::tempdir;

const ACCOUNT: Account = Account {
    id: [3; 32],
    lasting: true,
};

fn charge(what: Counted, number: u64, allowance: &str) -> Charge {
    Charge {
        account: ACCOUNT,
        what,
        number,
        allowance: allowance.parse().unwrap(),
    }
}

fn answers(store: &Store) -> u64 {
    store.counts(&ACCOUNT.id).unwrap().answers.in_all
}

#[test]
fn an_answer_is_counted_with_the_spending_of_its_bundle() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for n in 1..=4 {
        add(&store, meta(id(n)), 1000);
    }
    let two = charge(Counted::Answers, 1, "2");
    let spend = |n| store.spend_counted(id(n), &PEER, &two, NOW).err();
    assert!(spend(1).is_none() && answers(&store) == 1);
    // A bundle that is not given out is not counted: spent before, another's, damaged, expired.
    assert!(matches!(spend(1), Some(StoreError::Gone { .. })));
    let other = store.spend_counted(id(2), &[9; 32], &two, NOW).err();
    assert!(matches!(other, Some(StoreError::Unknown { .. })));
    std::fs::remove_file(dir.path().join(format!("bundles/{}.bundle", id(2)))).unwrap();
    assert!(matches!(spend(2), Some(StoreError::Damaged { .. })));
    let late = store.spend_counted(id(3), &PEER, &two, NOW + 1000).err();
    assert!(matches!(late, Some(StoreError::Expired { .. })));
    assert_eq!(answers(&store), 1);
    assert!(spend(3).is_none());
    // Beyond the limit the bundle stays, and serves once more are allowed.
    assert!(matches!(spend(4), Some(StoreError::Limit(limit)) if limit.had == 2));
    assert!(store.contains(id(4)).unwrap() && answers(&store) == 2);
    let more = charge(Counted::Answers, 1, "3");
    assert!(store.spend_counted(id(4), &PEER, &more, NOW).is_ok());
    // Another process finds the same counts.
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(answers(&store), 3);
    assert_eq!(store.all_counts().unwrap()[0].account, ACCOUNT);
}

#[test]
fn nothing_that_happens_to_a_bundle_gives_a_count_back() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let prepared = charge(Counted::Prepared, 3, "5/day");
    store.count(&prepared, NOW).unwrap();
    for n in 1..=3 {
        add(&store, meta(id(n)), 1000);
    }
    let before = store.counts(&ACCOUNT.id).unwrap();
    assert_eq!((before.prepared.in_all, before.prepared.today(NOW)), (3, 3));
    store.delete(id(1), NOW).unwrap();
    drop(store.draft(meta(id(4))).unwrap());
    store.delete_expired(NOW + 1_000_000_000).unwrap();
    assert_eq!(store.counts(&ACCOUNT.id).unwrap(), before);
    let refused = store.count(&prepared, NOW).err();
    assert!(matches!(refused, Some(StoreError::Limit(limit)) if limit.had == 3));
    assert_eq!(
        store.counts(&ACCOUNT.id).unwrap(),
        before,
        "nothing is counted"
    );
    assert!(store.count(&prepared, NOW + 24 * 3600).is_ok());
}

/// Checks that a limit holds for all threads that ask at once.
#[test]
fn threads_do_not_get_past_a_limit_together() {
    let dir = tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for n in 0..12 {
        add(&store, meta(id(n)), 10);
    }
    let (given, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let (store, given, refused) = (store.clone(), &given, &refused);
            scope.spawn(move || {
                let seven = charge(Counted::Answers, 1, "7/day");
                for n in 0..3 {
                    let number = match store.spend_counted(id(3 * t + n), &PEER, &seven, NOW) {
                        Ok(_) => given,
                        Err(StoreError::Limit(_)) => refused,
                        Err(error) => panic!("{error}"),
                    };
                    number.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((given.into_inner(), refused.into_inner()), (7, 5));
    assert_eq!((answers(&store), store.list().unwrap().len()), (7, 5));
}

/// Checks that replicas count together, in the transaction that spends.
#[cfg(feature = "fleet")]
#[test]
fn fleet_replicas_count_together() {
    use common::rig::Rig;
    use primer_store::PASSING_ACCOUNTS;

    let Some(rig) = Rig::start() else { return };
    let (one, two) = (rig.join("one"), rig.join("two"));
    for n in 0..12 {
        add(&one, meta(id(n)), 10);
    }
    let given = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (t, store) in [&one, &two, &one, &two].into_iter().enumerate() {
            let given = &given;
            scope.spawn(move || {
                let seven = charge(Counted::Answers, 1, "7/day");
                for n in 0..3 {
                    match store.spend_counted(id(3 * t as u64 + n), &PEER, &seven, NOW) {
                        Ok(_) => drop(given.fetch_add(1, Ordering::Relaxed)),
                        Err(StoreError::Limit(limit)) => assert_eq!(limit.had, 7),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(
        (given.into_inner(), answers(&one), answers(&two)),
        (7, 7, 7)
    );
    let left = one.list().unwrap();
    assert_eq!(left.len(), 5);
    // A bundle spent before or damaged is not counted; a deletion takes nothing back.
    let many = charge(Counted::Answers, 1, "100");
    let spent = (0..12).map(id).find(|id| !left.iter().any(|e| e.id == *id));
    let gone = two.spend_counted(spent.unwrap(), &PEER, &many, NOW).err();
    assert!(matches!(gone, Some(StoreError::Gone { .. })));
    let of = |entry: &primer_store::Entry| entry.id.to_string();
    for object in rig.objects() {
        if object.display().to_string().contains(&of(&left[0])) {
            std::fs::remove_file(object).unwrap();
        }
    }
    let damaged = two.spend_counted(left[0].id, &PEER, &many, NOW).err();
    assert!(matches!(damaged, Some(StoreError::Damaged { .. })));
    one.delete(left[1].id, NOW).unwrap();
    one.count(&charge(Counted::Prepared, 4, "4"), NOW).unwrap();
    let refused = two.count(&charge(Counted::Prepared, 1, "4"), NOW).err();
    assert!(matches!(refused, Some(StoreError::Limit(limit)) if limit.ends_in.is_none()));
    let counts = two.counts(&ACCOUNT.id).unwrap();
    assert_eq!((counts.answers.in_all, counts.prepared.in_all), (7, 4));
    assert_eq!((counts.answers.today(NOW), counts.changed), (7, NOW));
    assert_eq!(
        one.counts(&[9; 32]).unwrap(),
        primer_store::Counts::default()
    );
    // Pseudonyms come and go, and a token stays.
    rig.sql(&format!(
        "INSERT INTO primer_counts (account, lasting, changed) \
         SELECT decode(lpad(to_hex(n), 64, '0'), 'hex'), false, n \
         FROM generate_series(1, {}) AS n",
        PASSING_ACCOUNTS + 3
    ));
    assert_eq!(one.delete_expired(NOW).unwrap().accounts, 3);
    let least = rig.sql("SELECT min(changed) FROM primer_counts WHERE NOT lasting");
    assert_eq!((least.as_str(), answers(&two)), ("4", 7));
    assert_eq!(one.all_counts().unwrap().len(), PASSING_ACCOUNTS + 1);
}

/// Checks that an account stays that is charged while the ones that have been idle longest are
/// forgotten, even in the second in which it was charged before.
#[cfg(feature = "fleet")]
#[test]
fn fleet_an_account_that_is_being_charged_is_not_forgotten() {
    use common::rig::Rig;
    use primer_store::PASSING_ACCOUNTS;
    use primer_testkit::wait::eventually;

    let Some(rig) = Rig::start() else { return };
    let store = rig.join("one");
    rig.sql(&format!(
        "INSERT INTO primer_counts (account, lasting, changed) \
         SELECT decode(lpad(to_hex(n), 64, '0'), 'hex'), false, n \
         FROM generate_series(1, {}) AS n",
        PASSING_ACCOUNTS + 3
    ));
    let account = |n: u8| {
        let digits = format!("{n:064x}");
        format!("account = decode('{digits}', 'hex')")
    };
    // What `charged` and `keep` do, and a while between them and the end.
    let charge = format!(
        "UPDATE primer_counts SET answers = answers + 1, changed = 5000 WHERE {}; \
         UPDATE primer_counts SET prepared = prepared + 1 WHERE {}; \
         SELECT count(*) FROM pg_sleep(2)",
        account(1),
        account(2)
    );
    std::thread::scope(|scope| {
        scope.spawn(|| rig.sql(&charge));
        eventually("the charge", || {
            let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
            rig.sql(sleeping) == "1"
        });
        assert_eq!(store.delete_expired(NOW).unwrap().accounts, 1);
    });
    let left = "SELECT count(*) FROM primer_counts WHERE ";
    let left = |n: u8| rig.sql(&format!("{left}{}", account(n)));
    assert_eq!([left(1), left(2), left(3)], ["1", "1", "0"]);
}
