//! What the gateway adds to the online phase.

use super::{gateway, post, stock};
use crate::process::{Server, TEXTS, eventually};
use serde_json::json;
use std::time::{Duration, Instant};

/// `cargo test --release -p primer-cli --test program latency -- --ignored --nocapture`
#[test]
#[ignore = "measures; needs a quiet machine"]
fn latency_of_a_stock_against_the_online_phase() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let gateway = gateway(&server, &state, &["--stock", "32", "--lengths", "16"]);
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 16) == 32);
    let body = json!({"inputs": TEXTS[0].0});
    post(address, &body);
    let asked = || {
        let started = Instant::now();
        let reply = post(address, &body);
        let (whole, meta) = (started.elapsed().as_secs_f64(), reply.meta());
        (
            whole,
            meta["online_s"].as_f64().unwrap(),
            meta["prepared_ahead"] == true,
        )
    };
    let mut alone: Vec<_> = (0..12).map(|_| asked()).collect();
    let median = |values: &mut Vec<(f64, f64, bool)>, of: fn(&(f64, f64, bool)) -> f64| {
        values.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&values[values.len() / 2])
    };
    assert!(alone.iter().all(|(_, _, ahead)| *ahead));
    let (whole, online) = (median(&mut alone, |a| a.0), median(&mut alone, |a| a.1));
    println!(
        "median of 12: {:.1} ms of which online {:.1} ms",
        whole * 1e3,
        online * 1e3
    );
    assert!(whole <= 1.2 * online, "{whole} against {online}");
    let started = Instant::now();
    let mut together: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..8).map(|_| asked()).collect::<Vec<_>>()))
            .collect();
        callers
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let ahead = together.iter().filter(|(_, _, ahead)| *ahead).count();
    let whole = median(&mut together, |a| a.0);
    println!(
        "8 callers, 64 questions in {seconds:.1} s, median {:.1} ms, {ahead} from stock",
        whole * 1e3
    );
    let started = Instant::now();
    while stock(address, 16) < 32 {
        std::thread::sleep(Duration::from_millis(200));
        assert!(started.elapsed() < Duration::from_secs(120));
    }
    println!(
        "the stock of 32 was full again after {:.1} s",
        started.elapsed().as_secs_f64()
    );
}
