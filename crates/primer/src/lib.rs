//! Private BERT inference: the program `primer`, and its two halves as a library.
//!
//! A [`Server`] holds a model, a [`Client`] a text. They need a network between them and the server's fingerprint at
//! the client; then the client gets the label, and the server learns the padded length of the text.
//!
//! ```no_run
//! use primer::{Client, ClientOptions, Server, ServerOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Where the model is; without a directory, the embedded one.
//! let server = Server::bind(ServerOptions::default())?;
//! let (address, fingerprint, stop) = (server.address(), server.fingerprint(), server.stop_handle());
//! let serving = std::thread::spawn(move || server.run());
//!
//! // Where the text is.
//! let options = ClientOptions {
//!     trust: Some(fingerprint),
//!     ..ClientOptions::default()
//! };
//! let mut client = Client::connect(&address.to_string(), options)?;
//! client.prepare(32, 1)?; // ahead of time; skipped, the first question takes longer
//! let found = client.classify("a warm and funny film")?;
//! println!("{} {:?}, online {:.2} s", found.label, found.score, found.cost.online_s);
//!
//! client.close();
//! stop.stop();
//! serving.join().expect("the server does not panic")?;
//! # Ok(())
//! # }
//! ```
//!
//! [`server`] and [`client`] are the two halves, [`service`] is what they say to each other around the private protocol,
//! [`state`] where they keep what they must remember.
//! [`command`] holds one file per command of the program; [`source`] finds the model that a command is
//! about, [`mod@bench`] measures, [`report`] shows what was measured with [`plot`], [`provenance`] says where a figure comes from, [`secure`] runs both parties in one process, [`task`] knows the data sets and their measures, [`progress`] shows how far long work is, [`usage`] tells wrong use from failure.
#![forbid(unsafe_code)]

pub mod bench;
pub mod client;
pub mod command;
pub mod plot;
pub mod progress;
pub mod provenance;
pub mod report;
pub mod secure;
pub mod server;
pub mod service;
pub mod source;
pub mod state;
pub mod task;
pub mod usage;

pub use client::{Client, ClientOptions};
pub use server::{Server, ServerOptions};
