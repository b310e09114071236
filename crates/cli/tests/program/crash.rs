//! Either side is killed at any moment: every client ends with a right answer or a clear error, and
//! no bundle is ever used twice.

use primer_testkit::TEXTS;
use primer_testkit::command::{json, stderr};
use primer_testkit::process::{Server, client};
use primer_testkit::stores::check_stores;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

/// Kills come within this many milliseconds: an inference and its preparation are over by then, and
/// later ones would interrupt nothing.
const WITHIN: u64 = 1500;

/// A small generator: the kills come at other moments each time, and the test can say which.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = now.unwrap().as_nanos() as u64 | 1;
        println!("seed {seed}");
        Self(seed)
    }

    /// Draws a time between zero and a limit, in milliseconds.
    fn wait(&mut self, limit: u64) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(self.0 % limit)
    }
}

/// Checks that a client's end is a right answer or one clear sentence.
fn check_end(output: &Output, expected: &str) -> bool {
    let message = stderr(output);
    assert!(!message.contains("panicked"), "{message}");
    match output.status.code() {
        Some(0) => {
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["label"], expected);
            true
        }
        Some(1) => {
            assert!(message.contains("primer: "), "{message}");
            println!("{}", message.lines().last().unwrap_or_default());
            assert!(output.stdout.is_empty());
            false
        }
        _ => panic!("{:?}: {message}", output.status),
    }
}

/// Checks that the log, which tells every bundle that the server gave out, has none twice.
fn check_log(log: &str) {
    let mut seen = HashSet::new();
    for line in log.lines().filter(|l| l.contains("online phase begins")) {
        let id = line.split("bundle=").nth(1).unwrap();
        let id: String = id.chars().take(32).collect();
        assert!(seen.insert(id.clone()), "bundle {id} was given out twice");
    }
}

fn server_is_killed(times: usize) {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let mut dice = Dice::new();
    let mut server = Server::start(&state, &[]);
    let address = server.address.clone();
    let clients: Vec<_> = (0..2)
        .map(|i| dir.path().join(format!("client{i}")))
        .collect();
    for client_state in &clients {
        json(client("prepare", &server, client_state).args(["--count", "2", "--tokens", "16"]));
    }
    let (mut right, mut failed) = (0, 0);
    for round in 0..times {
        let (text, expected) = TEXTS[round % TEXTS.len()];
        let running: Vec<_> = clients
            .iter()
            .map(|state| {
                client("classify", &server, state)
                    .args(["--json", "--attempts", "6", text])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        std::thread::sleep(dice.wait(WITHIN));
        server.kill();
        server = Server::start_on(&address, &state, &[]);
        for child in running {
            match check_end(&child.wait_with_output().unwrap(), expected) {
                true => right += 1,
                false => failed += 1,
            }
        }
    }
    println!("{times} kills: {right} right answers, {failed} clear errors");
    assert!(right > 0);
    // After all of it the service is in order.
    let found = json(client("classify", &server, &clients[0]).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    check_log(&server.log());
    drop(server);
    let clients: Vec<&Path> = clients.iter().map(|c| c.as_path()).collect();
    check_stores(&state, &clients);
}

fn client_is_killed(times: usize) {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    let mut dice = Dice::new();
    json(client("prepare", &server, &state).args(["--count", "2", "--tokens", "16"]));
    for round in 0..times {
        let (text, expected) = TEXTS[round % TEXTS.len()];
        let mut child = client("classify", &server, &state)
            .args(["--json", text])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(dice.wait(WITHIN));
        // It may have finished by now; then it must be right.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_some() {
            check_end(&output, expected);
        }
    }
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    check_log(&server.log());
    assert_eq!(server.terminate().code(), Some(0));
    check_stores(&server_state, &[&state]);
}

#[test]
fn the_server_is_killed_a_few_times() {
    server_is_killed(3);
}

#[test]
fn the_client_is_killed_a_few_times() {
    client_is_killed(4);
}

/// Runs by `cargo test --release -p primer-cli --test program crash -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn the_server_is_killed_twenty_times() {
    server_is_killed(20);
}

/// Runs by `cargo test --release -p primer-cli --test program crash -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn the_client_is_killed_twenty_times() {
    client_is_killed(20);
}
