//! What the gateway adds to the online phase.
//!
//! Embedded model, 8 tokens, two cores with a load of 10 beside (`cargo test --release -p
//! primer-cli --test program latency -- --ignored --nocapture`): 20 requests from stock took 93.6
//! ms in the median where the online phase took 89.9; 24 requests of 8 callers at a stock of 8 took
//! 8.4 s, and the stock was full again 2.2 s after the last.

use super::{gateway, post, stock};
use crate::process::{Server, TEXTS, client, json};
use serde_json::json;
use std::time::{Duration, Instant};

/// One question: seconds from the request to its answer, those of the online phase, and whether the
/// bundle was there.
struct Asked {
    whole: f64,
    online: f64,
    ahead: bool,
}

fn ask(address: &str) -> Asked {
    let body = json!({"inputs": TEXTS[0].0});
    let started = Instant::now();
    let reply = post(address, &body);
    let (whole, meta) = (started.elapsed().as_secs_f64(), reply.meta());
    Asked {
        whole,
        online: meta["online_s"].as_f64().unwrap(),
        ahead: meta["prepared_ahead"] == true,
    }
}

fn median(asked: &[Asked], of: impl Fn(&Asked) -> f64) -> f64 {
    let mut values: Vec<f64> = asked.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `cargo test -p primer-cli --test program latency -- --ignored --nocapture`
#[test]
#[ignore = "measures seconds"]
fn latency_of_a_stock_against_the_online_phase() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    // Nobody fills the stock while the first twenty are measured.
    json(client("prepare", &server, &state).args(["--tokens", "8", "--count", "22"]));
    let quiet = gateway(&server, &state, &["--stock", "0", "--workers", "1"]);
    ask(&quiet.address);
    let alone: Vec<Asked> = (0..20).map(|_| ask(&quiet.address)).collect();
    assert!(alone.iter().all(|asked| asked.ahead));
    let (whole, online) = (median(&alone, |a| a.whole), median(&alone, |a| a.online));
    let ratio = median(&alone, |a| a.whole / a.online);
    println!(
        "20 questions, medians: {:.1} ms, of which online {:.1} ms, ratio {ratio:.3}",
        whole * 1e3,
        online * 1e3
    );
    assert!(quiet.terminate().success());

    let busy = gateway(&server, &state, &["--stock", "8", "--lengths", "8"]);
    let address = busy.address.as_str();
    let filled = || {
        let started = Instant::now();
        while stock(address, 8) < 8 {
            std::thread::sleep(Duration::from_millis(100));
            assert!(started.elapsed() < Duration::from_secs(600));
        }
        started.elapsed().as_secs_f64()
    };
    filled();
    let started = Instant::now();
    let together: Vec<Asked> = std::thread::scope(|scope| {
        let three = || (0..3).map(|_| ask(address)).collect::<Vec<_>>();
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(three)).collect();
        let answers = callers.into_iter().map(|c| c.join().unwrap());
        answers.flatten().collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let ahead = together.iter().filter(|asked| asked.ahead).count();
    println!(
        "8 callers, 24 questions in {seconds:.1} s, median {:.1} ms, {ahead} of them from stock; \
         the stock of 8 was full again {:.1} s later",
        median(&together, |a| a.whole) * 1e3,
        filled()
    );
    assert!(ratio <= 1.2, "{ratio}");
}
