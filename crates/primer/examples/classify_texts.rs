//! A client inside a program of one's own:
//! `cargo run --release --example classify_texts ADDRESS FINGERPRINT TEXT...`.
//!
//! Prepares one bundle a text ahead, then asks: what is left to wait for is the online phase.

use primer::{Client, ClientOptions};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(fingerprint)) = (arguments.next(), arguments.next()) else {
        return Err("usage: classify_texts ADDRESS FINGERPRINT TEXT...".into());
    };
    let texts: Vec<String> = arguments.collect();
    let options = ClientOptions {
        trust: Some(fingerprint.parse()?),
        ..ClientOptions::default()
    };
    let mut client = Client::connect(&address, options)?;
    println!(
        "{}: up to {} tokens",
        client.card().model,
        client.card().max_tokens()
    );
    client.prepare(16, texts.len())?;
    for text in &texts {
        let found = client.classify(text)?;
        println!(
            "{} {:.4} ({:.2} s online)",
            found.label,
            found.score.unwrap_or(1.0),
            found.cost.online_s
        );
    }
    client.close();
    Ok(())
}
