//! A server that is killed behind a balancer, which takes connections all the same and drops them:
//! it is waited for as long as the command line says, and what was finished stays.

use primer_testkit::TEXTS;
use primer_testkit::balancer::{Balancer, Ending};
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::files::write;
use primer_testkit::process::{Server, primer};
use primer_testkit::stores::{check_stores, unspent};
use primer_testkit::wait::eventually;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Makes a client's command that goes through the balancer.
fn through(balancer: &Balancer, command: &str, server: &Server, state: &Path) -> Command {
    let mut client = primer();
    client.arg(command).args(["--server", &balancer.address]);
    client.args(["--trust-fingerprint", &server.fingerprint, "--state"]);
    client.arg(state).stdin(Stdio::null());
    client
}

fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Returns the JSON object of a command that was started, and what it said meanwhile.
fn end(child: Child) -> (Value, String) {
    let output = child.wait_with_output().unwrap();
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    (serde_json::from_slice(&output.stdout).unwrap(), message)
}

/// Lists the identifiers of the bundles that a client has.
fn bundles(state: &Path) -> BTreeSet<String> {
    let listed = json(primer().args(["bundles", "list", "--state"]).arg(state));
    let listed = listed["bundles"].as_array().unwrap().iter();
    listed
        .map(|bundle| bundle["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Prepares twelve bundles of 32 tokens as eight, which are 256 tokens, and four. Kills the
/// server as soon as the client has the eight, which takes less time than the four, and tells which
/// ones are finished by then.
fn killed_after_eight(server: &mut Server, balancer: &Balancer, state: &Path) -> BTreeSet<String> {
    eventually("the first bundles", || server.log().contains("bundles=8"));
    eventually("the client's half of them", || {
        unspent(state, "client") == 8
    });
    balancer.set(None, 0);
    server.kill();
    bundles(state)
}

/// Checks that the kill costs one of two attempts; that the first connection afterwards ends at a
/// request costs none.
#[test]
fn a_preparation_goes_on_after_the_server_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let mut server = Server::start(&server_state, &[]);
    let balancer = Balancer::start(Ending::Close);
    balancer.set(Some(&server.address), 0);
    let mut preparing = through(&balancer, "prepare", &server, &state);
    preparing.args(["--wait", "120", "--attempts", "2", "--json"]);
    preparing.args(["--count", "12", "--tokens", "32"]);
    let preparing = start(&mut preparing);
    let finished = killed_after_eight(&mut server, &balancer, &state);
    eventually("a dropped connection", || balancer.dropped().0 >= 1);
    let server = Server::start(&server_state, &[]);
    balancer.set(Some(&server.address), 1);
    let (made, message) = end(preparing);
    assert_eq!(made["prepared"], 12, "{message}");
    for words in ["ended the connection before it answered", "trying again in"] {
        assert!(message.contains(words), "no \"{words}\" in: {message}");
    }
    assert_eq!(
        (&made["interruptions"], &made["kept"]),
        (&1.into(), &8.into())
    );
    let all = bundles(&state);
    assert!(all.len() == 12 && all.is_superset(&finished), "{all:?}");
    let ids = made["ids"].as_array().unwrap().iter();
    let ids: BTreeSet<_> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, all);
    // Every one of them serves, those from before the kill too, and each once.
    let texts = write(dir.path(), "texts", format!("{}\n", TEXTS[0].0).repeat(12));
    let mut asking = through(&balancer, "classify", &server, &state);
    asking
        .arg("--jsonl")
        .stdin(std::fs::File::open(texts).unwrap());
    let output = asking.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), 12);
    for line in lines.lines() {
        let found: Value = serde_json::from_str(line).unwrap();
        assert_eq!(found["label"], TEXTS[0].1);
        assert_eq!(found["prepared_ahead"], true);
    }
    assert!(bundles(&state).is_empty());
    drop(server);
    check_stores(&server_state, &[&state]);
}

/// Kills the server, which does not come back within the wait.
#[test]
fn what_is_finished_is_kept_and_told_when_the_wait_runs_out() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let mut server = Server::start(&server_state, &[]);
    let balancer = Balancer::start(Ending::Reset);
    balancer.set(Some(&server.address), 0);
    let mut preparing = through(&balancer, "prepare", &server, &state);
    preparing.args(["--wait", "2", "--count", "12", "--tokens", "32"]);
    let preparing = start(&mut preparing);
    killed_after_eight(&mut server, &balancer, &state);
    let output = preparing.wait_with_output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for words in ["8 of 12 bundles are prepared and kept", "retried for 2 s"] {
        assert!(message.contains(words), "no \"{words}\" in: {message}");
    }
    assert_eq!(bundles(&state).len(), 8);
    let server = Server::start(&server_state, &[]);
    balancer.set(Some(&server.address), 0);
    let found = json(through(&balancer, "classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    assert_eq!(found["prepared_ahead"], true);
}

#[test]
fn without_a_wait_a_dropped_connection_fails_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(&dir.path().join("server"), &[]);
    server.kill();
    for ending in [Ending::Close, Ending::Reset] {
        let balancer = Balancer::start(ending);
        for wait in [&[][..], &["--wait", "0"]] {
            let state = dir.path().join("client");
            let mut asking = through(&balancer, "classify", &server, &state);
            let started = Instant::now();
            let words = [
                &*balancer.address,
                "ended the connection before it answered",
                "the server behind it is down",
                "--wait SECONDS",
            ];
            fails(asking.args(wait).arg("x"), 1, &words);
            let took = started.elapsed();
            assert!(took < Duration::from_secs(15), "{took:?}");
        }
    }
}
