//! The gateway as services and people meet it: Hugging Face's JSON, a stock, bad input, a server
//! that goes away.

mod answers;
mod input;
mod latency;
mod trouble;

use primer_testkit::http::get;
use primer_testkit::process::{Server, client};
use std::path::Path;

/// Starts a gateway and waits until it listens.
fn gateway(server: &Server, state: &Path, args: &[&str]) -> Server {
    let mut command = client("gateway", server, state);
    command
        .args(["--json", "--listen", "127.0.0.1:0"])
        .args(args);
    Server::spawn(command, state)
}

/// Prepared bundles of a length.
fn stock(address: &str, tokens: u64) -> u64 {
    let told = get(address, "/status").json();
    let levels = told["stock"].as_array().unwrap().iter();
    let level = levels.clone().find(|level| level["tokens"] == tokens);
    level.map_or(0, |level| level["have"].as_u64().unwrap())
}

/// Questions that are asked at this moment.
fn asking(address: &str) -> u64 {
    get(address, "/status").json()["asking"].as_u64().unwrap()
}
