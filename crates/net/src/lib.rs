//! Sockets under the channel of `primer_wire`, for programs on an operating system.
//!
//! * [`tcp`], [`tls_accept`] and [`tls_connect`] make a channel of a connected socket; each of them
//!   is a transport inside.
//! * [`tls`]: who is trusted, identities and their fingerprints.
//! * [`websocket`]: a WebSocket as a transport, for clients in a browser.
//! * [`shape`]: a slower link, simulated inside the program.
//! * [`pair`]: both parties in one process over every transport, for tests and measurements.

#![forbid(unsafe_code)]

mod channel;
pub mod pair;
pub mod shape;
mod socket;
pub mod tls;
mod tls_clients;
mod tls_stream;
pub mod websocket;

pub use channel::{plain, secured, tcp, tls_accept, tls_connect};
pub use pair::{Medium, run_pair_over};
pub use shape::Link;
