//! What an operator sees: the log and the metrics.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

#[test]
fn phases_refusals_and_sessions_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(
        &dir.path().join("server"),
        &[
            "--metrics",
            "127.0.0.1:0",
            "--max-stored-bytes-per-client",
            "8000000",
        ],
    );
    let state = dir.path().join("client");
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    let mut prepare = client("prepare", &server, &state);
    fails(prepare.args(["--tokens", "512"]), 1, &["a bundle takes"]);
    for (phase, count) in [("handshake", 2.0), ("offline", 1.0), ("online", 1.0)] {
        let of = |name: &str| format!("primer_phase_{name}{{phase=\"{phase}\"}}");
        server.metrics.counts(&of("duration_seconds_count"), count);
        assert!(
            server.metrics.number(&of("duration_seconds_sum")) > 0.0,
            "{phase}"
        );
    }
    // What the server received online is what the client sent, but for the request before it.
    let bytes = |phase: &str, direction: &str| {
        let labels = format!("{{phase=\"{phase}\",direction=\"{direction}\"}}");
        server
            .metrics
            .number(&format!("primer_phase_bytes_sum{labels}"))
    };
    for (phase, up, down) in [
        ("online", "online_up", "online_down"),
        ("offline", "offline_up", "offline_down"),
    ] {
        for (direction, key) in [("received", up), ("sent", down)] {
            let sent = found["bytes"][key].as_f64().unwrap();
            let seen = bytes(phase, direction);
            assert!((sent - seen).abs() < 200.0, "{key}: {sent} and {seen}");
        }
    }
    server
        .metrics
        .counts("primer_requests_refused_total{reason=\"stored\"}", 1.0);
    assert!(server.metrics.number("process_resident_memory_bytes") > 1e6);
    assert!(
        server
            .metrics
            .page("/metrics")
            .contains("primer_build_info{version=")
    );
    eventually("two ends", || {
        server.log().matches("session ends").count() == 2
    });
    let log = server.log();
    let end = log
        .lines()
        .find(|line| line.contains("session ends"))
        .unwrap();
    for word in [
        "INFO",
        "peer=\"127.0.0.1:",
        "reason=\"left\"",
        "seconds=",
        "received=",
        "sent=",
    ] {
        assert!(end.contains(word), "no {word} in {end}");
    }
    let sent = end
        .split("sent=")
        .nth(1)
        .unwrap()
        .trim()
        .parse::<u64>()
        .unwrap();
    let down = |key: &str| found["bytes"][key].as_u64().unwrap();
    assert!(sent >= down("offline_down") + down("online_down"), "{end}");
}

/// Parses every line of both streams as JSON.
fn objects(output: &Output) -> Vec<Value> {
    let streams = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(streams).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}

fn serve(state: &Path, args: &[&str]) -> Output {
    let mut serve = primer();
    serve.args(["serve", "--log", "json", "--state"]).arg(state);
    // Its standard input has ended: it stops as soon as it serves.
    serve
        .arg("--stop-with-stdin")
        .stdin(std::process::Stdio::null());
    serve.args(args).output().unwrap()
}

#[test]
fn a_json_log_is_json_from_the_first_line_to_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let calibration = dir.path().join("text");
    std::fs::write(&calibration, "a warm film\n".repeat(20)).unwrap();
    let calibration = calibration.to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--calibration", calibration];
    let output = serve(&dir.path().join("one"), &listen);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = objects(&output);
    assert!(said[0]["fingerprint"].is_string());
    let message = |text: &str| said.iter().any(|one| one["fields"]["message"] == text);
    assert!(message("calibrated") && message("stopped"), "{said:?}");
    // An end with an error as well.
    let output = serve(&dir.path().join("two"), &["--listen", "nowhere:x"]);
    assert_eq!(output.status.code(), Some(1));
    let said = objects(&output);
    assert_eq!(said.last().unwrap()["level"], "ERROR");
}

#[test]
fn the_right_option_is_advised_for_a_port_that_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut serve = primer();
    serve.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        &taken,
        "--state",
    ]);
    let message = fails(serve.arg(dir.path()), 1, &[&taken, "with --metrics"]);
    assert!(!message.contains("--listen"), "{message}");
}

#[test]
fn causes_are_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing").display().to_string();
    for args in [
        &["eval", "--task", "sst2", "--data", &missing][..],
        &["inspect", "--prepared", &missing],
        &["inspect", "--model", dir.path().to_str().unwrap()],
        &["inspect", "--calibration", &missing],
    ] {
        let message = fails(primer().args(args), 1, &[]);
        let said = message.matches("No such file or directory").count();
        assert_eq!(said, 1, "{args:?}: {message}");
    }
}

/// Checks that a text of more tokens than the model takes is not promised.
#[test]
fn prepare_says_that_it_takes_less() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &["--max-tokens", "16"]);
    let mut prepare = client("prepare", &server, &dir.path().join("client"));
    let output = prepare
        .args(["--tokens", "500", "--json"])
        .output()
        .unwrap();
    let message = stderr(&output);
    assert!(
        message.contains("at most 16 tokens") && message.contains("500"),
        "{message}"
    );
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["tokens"], 16);
}
