//! What the gateway adds to the online phase.
//!
//! Embedded model and a server in this process, 8 tokens, two cores with a load of 10 beside
//! (`cargo run --release -p primer-gateway --example latency`): 20 requests from stock took 93.6 ms
//! in the median where the online phase took 89.9; 24 requests of 8 callers at a stock of 8 took
//! 8.4 s, and the stock was full again 2.2 s after the last.

use primer_testkit::TEXTS;
use primer_testkit::gateway::{Gateway, stock};
use primer_testkit::http::post;
use primer_testkit::server::Server;
use primer_testkit::wait::eventually;
use serde_json::json;
use std::time::Instant;

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
        online: meta["online_s"].as_f64().expect("seconds"),
        ahead: meta["prepared_ahead"] == true,
    }
}

fn median(asked: &[Asked], of: impl Fn(&Asked) -> f64) -> f64 {
    let mut values: Vec<f64> = asked.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(&dir.path().join("server"));
    let state = dir.path().join("client");
    // Nothing fills the stock while the first twenty are measured.
    let mut client = server.client(&state);
    client.prepare(8, 22).expect("bundles");
    client.close();
    let quiet = Gateway::start(&server, &state, |options, _| {
        (options.stock, options.workers) = (0, 1);
    });
    ask(&quiet.address);
    let alone: Vec<Asked> = (0..20).map(|_| ask(&quiet.address)).collect();
    assert!(alone.iter().all(|asked| asked.ahead));
    quiet.stop();
    println!(
        "20 questions, medians: {:.1} ms, of which online {:.1} ms, ratio {:.3}",
        median(&alone, |a| a.whole) * 1e3,
        median(&alone, |a| a.online) * 1e3,
        median(&alone, |a| a.whole / a.online)
    );

    let busy = Gateway::start(&server, &state, |options, _| {
        (options.stock, options.lengths) = (8, vec![8]);
    });
    let address = busy.address.as_str();
    let filled = || eventually("a full stock", || stock(address, 8) >= 8);
    filled();
    let started = Instant::now();
    let together: Vec<Asked> = std::thread::scope(|scope| {
        let three = || (0..3).map(|_| ask(address)).collect::<Vec<_>>();
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(three)).collect();
        let answers = callers.into_iter().map(|c| c.join().expect("answers"));
        answers.flatten().collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let ahead = together.iter().filter(|asked| asked.ahead).count();
    let refilling = Instant::now();
    filled();
    println!(
        "8 callers, 24 questions in {seconds:.1} s, median {:.1} ms, {ahead} of them from stock; \
         the stock of 8 was full again {:.1} s later",
        median(&together, |a| a.whole) * 1e3,
        refilling.elapsed().as_secs_f64()
    );
}
