//! What it costs that replicas share a store, in one run against a store of one's own:
//! `scripts/fleet figures`.
#![allow(missing_docs)]

#[path = "../tests/program/fleet/rig.rs"]
#[allow(dead_code)]
mod rig;

use primer_testkit::TEXTS;
use primer_testkit::command::stderr;
use primer_testkit::process::Server;
use rig::{Rig, client};
use std::path::Path;

fn run(command: &mut std::process::Command) -> serde_json::Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn prepare(address: &str, trust: &str, state: &Path, count: usize) {
    let count = count.to_string();
    let mut preparing = client("prepare", address, trust, state);
    run(preparing.args(["--tokens", "8", "--count", &count, "--wait", "60"]));
}

/// Returns the seconds online of one inference with a bundle from ahead.
fn online(address: &str, trust: &str, state: &Path) -> f64 {
    let (text, label) = TEXTS[1];
    let found = run(client("classify", address, trust, state).arg(text));
    assert_eq!(found["label"], label);
    assert_eq!(found["prepared_ahead"], true);
    found["online_s"].as_f64().unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the online phase with either store, one after the other.
fn latency_of_a_shared_store() {
    let Some(rig) = Rig::start(true) else { return };
    let alone = rig.serving("alone", "127.0.0.1:0", "127.0.0.1:0");
    let servers = [
        Server::spawn(alone, &rig.path("alone")),
        rig.replica("one", None, &[]),
    ];
    let count = 24;
    let states = ["client0", "client1"].map(|name| rig.path(name));
    for (server, state) in servers.iter().zip(&states) {
        prepare(&server.address, &server.fingerprint, state, count);
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..count {
        for at in 0..2 {
            let Server {
                address,
                fingerprint,
                ..
            } = &servers[at];
            seconds[at].push(online(address, fingerprint, &states[at]));
        }
    }
    let least = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    println!(
        "online, {count} each in turns: own store least {:.1} ms, median {:.1} ms; shared least \
         {:.1} ms, median {:.1} ms",
        least(&seconds[0]) * 1e3,
        median(seconds[0].clone()) * 1e3,
        least(&seconds[1]) * 1e3,
        median(seconds[1].clone()) * 1e3
    );
}

/// Returns the processor seconds of the servers for some inferences of four clients, nothing
/// prepared ahead.
fn work(rig: &Rig, replicas: &[Server], round: usize) -> f64 {
    const EACH: usize = 6;
    let all: Vec<&Server> = replicas.iter().collect();
    let address = match all.as_slice() {
        [one] => one.address.clone(),
        several => rig.balancer(several).unwrap(),
    };
    let cpu = || -> f64 {
        all.iter()
            .map(|r| r.metrics.number("process_cpu_seconds_total"))
            .sum()
    };
    let trust = &all[0].fingerprint;
    let ask = |count: usize, number: usize| {
        let state = rig.path(&format!("load{round}-{number}"));
        for _ in 0..count {
            let (text, label) = TEXTS[1];
            let mut asking = client("classify", &address, trust, &state);
            let found = run(asking.args([text, "--wait", "60"]));
            assert_eq!(found["label"], label);
        }
    };
    // Weights are encoded first, on every replica.
    for number in 0..2 * all.len() {
        ask(1, 100 + number);
    }
    let before = cpu();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let ask = &ask;
            scope.spawn(move || ask(EACH, number));
        }
    });
    (cpu() - before) / (4 * EACH) as f64
}

/// Measures processor time of an inference, on one replica and on three.
fn processor_time_on_one_and_on_three() {
    let Some(rig) = Rig::start(true) else { return };
    let one = [rig.replica("alone", None, &[])];
    let three = ["one", "two", "three"].map(|name| rig.replica(name, None, &[]));
    let (mut single, mut triple) = (Vec::new(), Vec::new());
    for round in 0..2 {
        single.push(work(&rig, &one, 2 * round));
        triple.push(work(&rig, &three, 2 * round + 1));
    }
    let (single, triple) = (median(single), median(triple));
    println!(
        "an inference takes {single:.3} s of a core of the server on one replica ({:.0} an hour), \
         {triple:.3} s on three ({:.0} an hour and core): {:.2} times",
        3600.0 / single,
        3600.0 / triple,
        triple / single
    );
}

fn main() {
    latency_of_a_shared_store();
    processor_time_on_one_and_on_three();
}
