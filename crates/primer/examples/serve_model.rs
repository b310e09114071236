//! A server inside a program of one's own: `cargo run --release --example serve_model [DIRECTORY]`.
//!
//! Prints the address and the fingerprint, serves until the end of standard input, and stops in
//! good order.

use primer::server::Limits;
use primer::{Server, ServerOptions};
use std::error::Error;
use std::io::Read;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(ServerOptions {
        model: std::env::args_os().nth(1).map(PathBuf::from),
        listen: "127.0.0.1:0".into(),
        limits: Limits {
            sessions: 4,
            tokens: 64,
            ..Limits::default()
        },
        ..ServerOptions::default()
    })?;
    println!("{} {}", server.address(), server.fingerprint());
    let stop = server.shutdown_handle();
    let serving = std::thread::spawn(move || server.run());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    stop.shut_down();
    serving.join().expect("the server does not panic")?;
    Ok(())
}
