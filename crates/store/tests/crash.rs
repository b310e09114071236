//! Real processes: killed at random points, racing for one bundle, running out of disk.
//!
//! The test executable runs itself: the test `child` does what the environment tells it to, and
//! nothing without that.
#![allow(missing_docs)]

mod common;

use common::{NOW, PEER, id, material, meta, take_by};
use primer_ring::prg::Prg;
use primer_store::{
    Account, Allowance, BundleId, BundleQuery, BundleStore, Charge, Counted, Fate, Store,
    StoreError,
};
use rand_core::Rng;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

const BYTES: usize = 300_000;

const ANSWER: Charge = Charge {
    account: Account {
        id: [7; 32],
        lasting: true,
    },
    what: Counted::Answers,
    number: 1,
    allowance: Allowance::UNLIMITED,
};

fn start(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["child", "--exact"])
        .env("STORE_ROLE", role)
        .env("STORE_DIR", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Writes one line by one call: whole even if we are killed right after.
fn note(dir: &Path, file: &str, line: &str) {
    let mut log = OpenOptions::new();
    let mut log = log.append(true).create(true).open(dir.join(file)).unwrap();
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Plays the other side of the tests below; does nothing unless one of them starts it.
#[test]
fn child() {
    let Ok(role) = env::var("STORE_ROLE") else {
        return;
    };
    let dir = env::var_os("STORE_DIR").unwrap();
    let dir = Path::new(&dir);
    match role.as_str() {
        "work" => work(dir),
        "race" => race(dir),
        "fill" => fill(dir),
        other => panic!("no role {other}"),
    }
}

/// Prepares and spends without end, logging what it was given before it looks at it.
fn work(dir: &Path) {
    let store = Store::open(dir.join("store")).unwrap();
    let mut rng = Prg::from_os();
    let wanted = BundleQuery {
        peer: PEER,
        program: None,
        tokens: 1,
    };
    loop {
        let id = BundleId::random(&mut rng);
        let mut draft = store.draft(meta(id)).unwrap();
        for part in material(id, BYTES).chunks(50_000) {
            draft.write_all(part).unwrap();
        }
        draft.commit().unwrap();
        note(dir, "stored", &id.to_string());
        if rng.next_u32().is_multiple_of(4) {
            continue;
        }
        let counting = |id| store.spend_counted(id, &PEER, &ANSWER, NOW);
        if let Some(mut spent) = take_by(&store, &wanted, NOW, counting) {
            let id = spent.entry().id;
            note(dir, "spent", &id.to_string());
            let mut got = Vec::new();
            spent.read_to_end(&mut got).unwrap();
            if got != material(id, BYTES) {
                note(dir, "wrong", &id.to_string());
            }
        }
    }
}

fn race(dir: &Path) {
    let store = Store::open(dir.join("store")).unwrap();
    for n in 0..20 {
        match store.spend(id(n), &PEER, NOW) {
            Ok(mut spent) => {
                let mut got = Vec::new();
                spent.read_to_end(&mut got).unwrap();
                assert_eq!(got, material(id(n), 1000));
                note(dir, "spent", &id(n).to_string());
            }
            Err(StoreError::Gone {
                fate: Fate::Spent, ..
            }) => {}
            Err(e) => note(dir, "wrong", &e.to_string()),
        }
    }
    note(dir, "done", "");
}

fn fill(dir: &Path) {
    let store = Store::open(dir.join("store")).unwrap();
    let mut draft = store.draft(meta(id(1))).unwrap();
    let part = [1; 100_000];
    let error = loop {
        if let Err(error) = draft.write_all(&part) {
            break error;
        }
    };
    note(dir, "error", &error.to_string());
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    // The room is given back at once, and the draft stays dead.
    let files = fs::read_dir(dir.join("store/bundles")).unwrap();
    assert_eq!(files.count(), 1, "the bundle from before");
    assert!(draft.write_all(&part).is_err());
    assert!(matches!(draft.commit(), Err(StoreError::Draft { .. })));
    // What fits still works, in the same process.
    let mut draft = store.draft(meta(id(2))).unwrap();
    draft.write_all(&part).unwrap();
    draft.commit().unwrap();
    let mut got = Vec::new();
    let mut spent = store.spend(id(2), &PEER, NOW).unwrap();
    spent.read_to_end(&mut got).unwrap();
    assert_eq!(got, part);
    note(dir, "done", "");
}

fn lines(dir: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn kill(mut child: Child) {
    assert!(
        child.try_wait().unwrap().is_none(),
        "a child failed by itself"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_at_any_moment_nothing_is_spent_twice() {
    const KILLS: usize = 60;
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let mut rng = Prg::new(&[1; 16]);
    // Two at a time, each killed at its own moment, the first ones while they make the store.
    let mut running: Option<Child> = None;
    for kill_number in 0..KILLS {
        let next = start("work", dir).spawn().unwrap();
        let window = if kill_number < 10 { 30 } else { 150 };
        thread::sleep(Duration::from_micros(u64::from(
            rng.next_u32() % (window * 1000),
        )));
        if let Some(previous) = running.replace(next) {
            kill(previous);
        }
    }
    kill(running.unwrap());

    assert_eq!(lines(dir, "wrong"), [""; 0]);
    let store = Store::open(dir.join("store")).unwrap();
    let mut times: BTreeMap<BundleId, u32> = BTreeMap::new();
    for line in lines(dir, "spent") {
        *times.entry(line.parse().unwrap()).or_default() += 1;
    }
    // Each was given out once, and every bundle given out is known to be spent.
    let history = store.history().unwrap();
    let spent: BTreeMap<_, _> = history.iter().map(|p| (p.id, (p.fate, p.spends))).collect();
    for (id, times) in &times {
        assert_eq!(*times, 1, "{id} was given out more than once");
        assert_eq!(
            spent.get(id),
            Some(&(Fate::Spent, 1)),
            "{id} is not known as spent"
        );
    }
    // As many are counted as were spent: no kill came between the two.
    let all = spent
        .values()
        .filter(|(fate, _)| *fate == Fate::Spent)
        .count();
    let counted = store.counts(&ANSWER.account.id).unwrap().answers.in_all;
    assert!(counted == all as u64 && all >= times.len() && all > 0);
    // What was stored is there whole or was spent, perhaps right before a kill.
    let stored = lines(dir, "stored");
    for id in stored.iter().map(|line| line.parse::<BundleId>().unwrap()) {
        assert!(
            spent.contains_key(&id) || store.contains(id).unwrap(),
            "{id} is lost"
        );
    }
    let left = store.list().unwrap();
    assert_eq!(
        fs::read_dir(dir.join("store/bundles")).unwrap().count(),
        left.len(),
        "one file for each, and no leftovers"
    );
    for entry in &left {
        let mut got = Vec::new();
        let mut spent = store.spend(entry.id, &PEER, NOW).unwrap();
        spent.read_to_end(&mut got).unwrap();
        assert_eq!(got, material(entry.id, BYTES));
    }
    println!(
        "{KILLS} kills: {} stored, {} spent, {} left",
        stored.len(),
        spent.len(),
        left.len()
    );
    assert!(times.len() >= 10, "the children had time to work");
}

#[test]
fn of_processes_that_race_one_wins() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let store = Store::open(dir.join("store")).unwrap();
    for n in 0..20 {
        common::add(&store, meta(id(n)), 1000);
    }
    let racers: Vec<_> = (0..4)
        .map(|_| start("race", dir).spawn().unwrap())
        .collect();
    for mut racer in racers {
        assert!(racer.wait().unwrap().success());
    }
    assert_eq!(lines(dir, "wrong"), [""; 0]);
    assert_eq!(lines(dir, "done").len(), 4, "the children did run");
    let mut spent = lines(dir, "spent");
    spent.sort();
    let all: Vec<_> = store
        .history()
        .unwrap()
        .iter()
        .map(|p| p.id.to_string())
        .collect();
    assert_eq!(spent.len(), 20);
    assert_eq!(spent, all);
}

#[test]
fn a_full_disk_costs_the_draft_only() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    let store = Store::open(dir.join("store")).unwrap();
    common::add(&store, meta(id(7)), 1000);
    // The limit on file sizes stands for the full disk; the signal that goes with it is ignored, as
    // the error is not.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8192; exec \"$@\"", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["child", "--exact"])
        .env("STORE_ROLE", "fill")
        .env("STORE_DIR", dir)
        .output()
        .unwrap();
    assert!(
        limited.status.success(),
        "{}",
        String::from_utf8_lossy(&limited.stdout)
    );
    assert_eq!(lines(dir, "done").len(), 1, "the child did run");
    assert!(
        lines(dir, "error")[0].contains("cannot write"),
        "the path and the cause"
    );
    let mut got = Vec::new();
    let mut spent = store.spend(id(7), &PEER, NOW).unwrap();
    spent.read_to_end(&mut got).unwrap();
    assert_eq!(got, material(id(7), 1000));
    assert_eq!(store.list().unwrap(), []);
}
