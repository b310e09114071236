//! Private BERT inference as a library: the two halves of the program `primer`.
//!
//! A [`Server`] holds a model, a [`Client`] a text. They need a network between them and the
//! server's fingerprint at the client; then the client gets the label, and the server learns the
//! padded length of the text.
//!
//! ```no_run
//! use primer::{Client, ClientOptions, Server, ServerOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Where the model is; without a directory, the embedded one.
//! let server = Server::bind(ServerOptions::default())?;
//! let (address, stop) = (server.address(), server.shutdown_handle());
//! let fingerprint = server.fingerprint();
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
//! stop.shut_down();
//! serving.join().expect("the server does not panic")?;
//! # Ok(())
//! # }
//! ```
//!
//! An answer is as good as the model's calibration: values beyond the ranges that it was calibrated
//! for wrap around, and what comes out is garbage. [`Classification::in_range`] tells.
//!
//! [`server`] and [`client`] are the two halves, crates of their own; [`service`] is what they say
//! to each other around the private protocol, [`hints`] a file of the model's that both need before
//! they prepare, [`state`] where they keep what they must remember, [`source`] finds the model that
//! is served. Every type that their options are made of is named here, so that a program needs this
//! crate alone.
#![forbid(unsafe_code)]

/// Files that a server makes of a model, and a client fetches, before anything is prepared.
pub mod hints {
    pub use primer_server::hints::{ServerHint, secret};
    pub use primer_service::hints::{MAX_HINT, stored};
}

pub use primer_client as client;
pub use primer_server as server;
pub use primer_server::source;
pub use primer_service as service;
pub use primer_service::state;

pub use primer_client::{
    AnswerOptions, Classification, Client, ClientOptions, Cost, Embedding, Event, Extract, HangUp,
    Tagging,
};
pub use primer_engine::{Reveal, SCHEME_NAME};
pub use primer_net::tls::{Clients, Identity};
pub use primer_server::{
    AccessTokens, Limits, Server, ServerOptions, SharedStore, ShutdownHandle, WebOptions,
};
pub use primer_service::{BundleId, ServiceError};
pub use primer_wire::peer::Fingerprint;
pub use primer_wire::{Meter, PhaseBytes};
pub use zeroize::Zeroizing;
