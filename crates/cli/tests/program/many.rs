//! Many clients at once, all of them answered right.

use crate::process::{Server, TEXTS, check_stores, client};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn at_once(clients: usize, inferences: usize) {
    let dir = tempfile::tempdir().unwrap();
    let server_state = dir.path().join("server");
    let server = Server::start(&server_state, &["--metrics", "127.0.0.1:0"]);
    let states: Vec<_> = (0..clients)
        .map(|i| dir.path().join(format!("client{i}")))
        .collect();
    let texts: Vec<_> = TEXTS.iter().cycle().take(inferences).collect();
    let lines: String = texts.iter().map(|(text, _)| format!("{text}\n")).collect();
    let running: Vec<_> = states
        .iter()
        .map(|state| {
            let mut child = client("classify", &server, state)
                .arg("--json")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(lines.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            crate::process::stderr(&output)
        );
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let results = found["results"].as_array().unwrap();
        assert_eq!(results.len(), inferences);
        for (result, (text, expected)) in results.iter().zip(&texts) {
            assert_eq!(result["label"], *expected, "{text}");
        }
    }
    let total = (clients * inferences) as f64;
    server.counts("primer_inferences_total", total);
    println!(
        "peak memory of the server: {} MB",
        server.peak_memory() / 1_000_000
    );
    assert_eq!(server.terminate().code(), Some(0));
    let states: Vec<&Path> = states.iter().map(|s| s.as_path()).collect();
    check_stores(&server_state, &states);
}

#[test]
fn three_clients_with_two_texts_each() {
    at_once(3, 2);
}

/// `cargo test --release -p primer-cli --test program many -- --ignored --nocapture`
#[test]
#[ignore = "takes a minute or more"]
fn eight_clients_with_five_texts_each() {
    at_once(8, 5);
}
