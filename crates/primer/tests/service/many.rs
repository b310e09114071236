//! Many clients at once, all of them answered right.

use primer_testkit::TEXTS;
use primer_testkit::server::Server;
use primer_testkit::stores::check_stores;
use std::path::{Path, PathBuf};

fn at_once(clients: usize, inferences: usize) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"));
    let own = |client: usize| dir.path().join(format!("client{client}"));
    let states: Vec<PathBuf> = (0..clients).map(own).collect();
    std::thread::scope(|scope| {
        for state in &states {
            scope.spawn(|| {
                let mut client = server.client(state);
                for (text, expected) in TEXTS.iter().cycle().take(inferences) {
                    let found = client.classify(text).unwrap();
                    assert_eq!(found.label, *expected, "{text}");
                }
                client.close();
            });
        }
    });
    let total = (clients * inferences) as f64;
    server.metrics.counts("primer_inferences_total", total);
    let served = server.state.clone();
    server.stop();
    let states: Vec<&Path> = states.iter().map(PathBuf::as_path).collect();
    check_stores(&served, &states);
}

#[test]
fn three_clients_with_two_texts_each() {
    at_once(3, 2);
}

/// Runs by `cargo test --release -p primer --test service many -- --ignored`.
#[test]
#[ignore = "takes a minute or more"]
fn eight_clients_with_five_texts_each() {
    at_once(8, 5);
}
