//! Three replicas, eight clients; replicas, the database and the object store are killed at random.

use super::rig::{Rig, client};
use primer_testkit::TEXTS;
use primer_testkit::command::stderr;
use primer_testkit::process::Server;
use primer_testkit::stores::spends;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: usize = 8;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// A small generator: the kills come at other moments each time, and the test can say which.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Asks until it has asked so often; right answers, clear errors.
fn live(address: &str, trust: &str, state: &std::path::Path, mut asks: usize) -> (usize, usize) {
    let short = [TEXTS[0], TEXTS[1], TEXTS[4]];
    let (mut right, mut failed) = (0, 0);
    while asks > 0 {
        // Some are prepared ahead, so that replicas spend what others prepared.
        let mut preparing = client("prepare", address, trust, state);
        preparing.args([
            "--count",
            "4",
            "--tokens",
            "8",
            "--wait",
            "300",
            "--attempts",
            "10",
        ]);
        let output = preparing.output().unwrap();
        let message = stderr(&output);
        assert!(!message.contains("panicked"), "{message}");
        for (text, label) in short.iter().cycle().take(asks.min(5)) {
            asks -= 1;
            let mut asking = client("classify", address, trust, state);
            asking.args(["--wait", "300", "--attempts", "10", text]);
            let output = asking.output().unwrap();
            let message = stderr(&output);
            assert!(!message.contains("panicked"), "{message}");
            if output.status.success() {
                let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(found["label"], *label);
                right += 1;
            } else {
                assert!(message.contains("primer: "), "{message}");
                println!("{}", message.lines().last().unwrap_or_default());
                failed += 1;
            }
        }
    }
    (right, failed)
}

/// Lists the bundles that the logs of the replicas say were given out.
fn given_out(logs: &str) -> Vec<String> {
    let lines = logs.lines().filter(|l| l.contains("online phase begins"));
    let ids = lines.filter_map(|l| l.split("bundle=").nth(1));
    ids.map(|id| id.chars().take(32).collect()).collect()
}

/// Runs by `PRIMER_FLEET_ASKS=200 scripts/fleet test chaos`.
#[test]
#[ignore = "takes a quarter of an hour"]
fn replicas_database_and_blobs_are_killed_at_random() {
    let Some(rig) = Rig::start(true) else { return };
    let asks = std::env::var("PRIMER_FLEET_ASKS").map_or(200, |asks| asks.parse().unwrap());
    let seed = std::env::var("PRIMER_FLEET_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed);
    let mut replicas: Vec<Server> = NAMES
        .iter()
        .map(|name| rig.replica(name, None, &[]))
        .collect();
    let trust = replicas[0].fingerprint.clone();
    let all: Vec<&Server> = replicas.iter().collect();
    let Some(address) = rig.balancer(&all) else {
        return;
    };
    let states: Vec<_> = (0..CLIENTS)
        .map(|n| rig.path(&format!("client{n}")))
        .collect();
    let done = AtomicBool::new(false);
    let running = AtomicUsize::new(CLIENTS);
    let started = Instant::now();
    let mut kills = [0; 3];
    let ends: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let clients: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(number, state)| {
                let (address, trust, running, done) = (&address, &trust, &running, &done);
                let mine = asks / CLIENTS + usize::from(number < asks % CLIENTS);
                scope.spawn(move || {
                    let ended = live(address, trust, state, mine);
                    if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                        done.store(true, Ordering::Relaxed);
                    }
                    ended
                })
            })
            .collect();
        while !done.load(Ordering::Relaxed) && clients.iter().any(|c| !c.is_finished()) {
            std::thread::sleep(Duration::from_millis(3000 + dice.below(9000)));
            match dice.below(4) {
                0 => {
                    rig.act("postgres", "crash");
                    std::thread::sleep(Duration::from_millis(dice.below(3000)));
                    rig.act("postgres", "start");
                    kills[1] += 1;
                }
                1 => {
                    rig.act("s3", "crash");
                    std::thread::sleep(Duration::from_millis(dice.below(3000)));
                    rig.act("s3", "start");
                    kills[2] += 1;
                }
                _ => {
                    let at = dice.below(3) as usize;
                    let before = (replicas[at].address.clone(), replicas[at].metrics.clone());
                    replicas[at].kill();
                    let before = Some((before.0.as_str(), before.1.address.as_str()));
                    replicas[at] = rig.replica(NAMES[at], before, &[]);
                    kills[0] += 1;
                }
            }
        }
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let right: usize = ends.iter().map(|(right, _)| right).sum();
    let failed: usize = ends.iter().map(|(_, failed)| failed).sum();
    println!(
        "{asks} inferences in {:.0} s: {right} right, {failed} clear errors; killed: replicas {}, \
         database {}, object store {}",
        started.elapsed().as_secs_f64(),
        kills[0],
        kills[1],
        kills[2]
    );
    assert_eq!(right + failed, asks);
    assert!(right > 0);

    // Half a minute after the last death nothing is left without its other half.
    for replica in replicas.drain(..) {
        assert_eq!(replica.terminate().code(), Some(0));
    }
    std::thread::sleep(Duration::from_secs(31));
    let swept = rig.store("sweep");
    let checked = rig.store("check");
    println!("swept {swept}\nthen {checked}");
    assert_eq!(checked["orphan_objects"], 0);
    assert_eq!(checked["orphan_bundles"], 0);

    // The journals: the replicas' logs, the database, the clients' own stores.
    let logs = NAMES.map(|name| std::fs::read_to_string(rig.path(name).with_extension("log")));
    let given = given_out(&logs.map(Result::unwrap).concat());
    let once: HashSet<&String> = given.iter().collect();
    assert_eq!(once.len(), given.len(), "a bundle was given out twice");
    let journal = rig.sql("SELECT encode(id, 'hex'), spends FROM primer_past WHERE fate = 0");
    let mut spent = HashSet::new();
    for line in journal.lines() {
        let (id, times) = line.split_once('|').unwrap();
        assert_eq!(times, "1");
        assert!(spent.insert(id.to_owned()));
    }
    let mut asked = HashSet::new();
    for state in &states {
        for (id, times) in spends(state, "client") {
            assert_eq!(times, 1);
            assert!(asked.insert(id), "two clients share a bundle");
        }
    }
    assert!(
        given.iter().all(|id| spent.contains(id)),
        "given out and not spent"
    );
    assert!(
        spent.is_subset(&asked),
        "spent on the server, and by no client"
    );
    println!(
        "{} bundles spent by clients, {} by the database, {} given out: 0 twice",
        asked.len(),
        spent.len(),
        given.len()
    );
}
