//! Layer 3 of Primer: the non-linear stops as protocols between the two parties.
//!
//! Between two stops everything is linear and every value is shared modulo p, with the client's share
//! known in advance. A stop takes the parties' shares in a short ring (after free truncation,
//! [`primer_ring::truncate`]) and ends with shares modulo p of which the client's is again a mask that it
//! drew offline:
//!
//! ```text
//! before   server a, client b                    x = a + b mod 2^m
//! after    server f(x) - r mod p, client r       r drawn offline by the client
//! ```
//!
//! * [`server`] and [`client`]: any [`primer_garble::stop::Stop`], by a garbled circuit. Offline the server
//!   garbles and the client obtains the labels of its bits by oblivious transfer; online the server sends
//!   the labels of its own, the client evaluates and returns the result less its mask.
//! * [`requantise`]: the identity, by one oblivious transfer for each element and no gate at all.
//! * [`job`]: how many instances of which stop, with limits, and what that costs in bytes.
//!
//! Offline and online are separate calls. What moves between them is *material*: it cannot be cloned, it
//! is wiped when dropped, and the online call consumes it, so that no label, table or mask is used twice.
//! Both parties know all counts from the plan; nothing that a peer says decides how much is allocated.
#![forbid(unsafe_code)]

pub mod client;
mod error;
pub mod job;
pub mod requantise;
pub mod server;

pub use client::ClientMaterial;
pub use error::{Result, StopsError};
pub use job::{Cost, Job};
pub use requantise::{RequantiseAnswering, RequantiseClient, RequantiseServer, RequantiseWaiting};
pub use server::ServerMaterial;

use primer_net::Kind;

const NONCE: Kind = Kind::new(0x30, "garbling nonce");
const GARBLED: Kind = Kind::new(0x31, "garbled circuits");
const LABELS: Kind = Kind::new(0x32, "server labels");
const RESULTS: Kind = Kind::new(0x33, "masked results");
