//! The schemes of the Primer paper: private inference along the plan, as the paper has it.
//!
//! They are kept beside the product (`primer_engine`), to be measured against it; nothing that is
//! served depends on them. They promise what the paper promises: both parties follow the protocol.
//!
//! Every value of the plan is shared modulo p: the server holds `x̂ = x - r`, the client holds `r`.
//! The invariant that lets nearly everything happen before there is a text: **the client's share is
//! known offline.** Each kind of step keeps it in its own way.
//!
//! * Linear steps (`linear`): offline the parties get shares of `r·W` by *HGS* (`hgs`), where
//!   `Enc(r)` goes up and `Enc(r·W + S)` comes back; online the server adds `x̂·W` to its share in
//!   the clear and nothing is said.
//! * Products of two secrets are *FHGS* (`fhgs`): offline both parties get shares of the mixed
//!   terms; online the server opens `x̂ - U` and `ŷ - V`, masks that it drew offline, and the
//!   client returns its share minus a new mask. No homomorphic operation is left online, but in
//!   `base`.
//! * Scores without queries and keys are *CHGS* (`chgs`): the first product as in HGS, the second
//!   as in FHGS, nothing between them.
//! * Stops (`primer_stops`) make a value of an accumulator.
//!
//! A [`Scheme`] is a recipe, a [`Program`] a plan compiled by it: every step becomes linear, a
//! product of two secrets (`secrets`) or a stop (`stop`), with the homomorphic exchanges
//! (`exchange`) that prepare it. [`session`] is the handshake with its keys. [`client`] and
//! [`server`] drive a program, each the whole stack of its side: `prepare` writes a bundle of
//! offline material (`stored`, `seeds`), `infer` reads and consumes it.
#![forbid(unsafe_code)]

mod chgs;
pub mod client;
mod compiled;
pub mod cost;
mod error;
mod exchange;
mod exchanges;
mod fhgs;
mod flow;
mod hgs;
mod linear;
mod masks;
mod program;
mod renewed;
pub mod scheme;
mod secrets;
mod seeds;
pub mod server;
pub mod session;
mod stop;
mod stored;

pub use error::{ProtocolError, Result};
pub use primer_wire::VERSION;
pub use program::Program;
pub use scheme::Scheme;
