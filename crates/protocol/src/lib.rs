//! Layer 3 of Primer: private inference along the plan.
//!
//! Every value of the plan is shared modulo p: the server holds `x̂ = x - r`, the client holds `r`.
//! The invariant that lets nearly everything happen before there is a text: **the client's share is
//! known offline.** Each kind of step keeps it in its own way.
//!
//! * Linear steps (`linear`): offline the parties get shares of `r·W`, by *HGS*, where `Enc(r)`
//!   goes up and `Enc(r·W + S)` comes back, or silently, by a *hint* that the client has for all of
//!   its inferences; online the server adds `x̂·W` to its share in the clear and nothing is said.
//! * Products of two secrets are *FHGS*: offline both parties get shares of the mixed terms; online
//!   the server opens `x̂ - U` and `ŷ - V`, masks that it drew offline, and the client returns its
//!   share minus a new mask. No homomorphic operation is left online.
//! * Scores without queries and keys are *CHGS*: the first product as in HGS, the second as in
//!   FHGS, nothing between them.
//! * Stops (`primer_stops`) make a value of an accumulator, by the means that the scheme names.
//!
//! A [`Scheme`] is a recipe, a [`Program`] a plan compiled by it: every step becomes linear
//! (`linear`, by `hgs` or `silent`), a product of two secrets (`secrets`, by `fhgs` or `chgs`) or a
//! stop (`stop`), with the homomorphic exchanges (`exchange`) that prepare it. [`session`] is the
//! handshake with its keys. [`client`] and [`server`] drive a program, each the whole stack of its
//! side: `prepare` writes a bundle of offline material (`stored`, `seeds`), `infer` reads and
//! consumes it.
#![forbid(unsafe_code)]

mod answer_bits;
mod batch;
mod bits;
mod chgs;
pub mod client;
mod clock;
pub mod cost;
mod error;
mod exchange;
mod fhgs;
mod flags;
mod flow;
mod hgs;
pub mod hints;
mod linear;
mod local;
mod masks;
mod padding;
mod program;
mod renewed;
pub mod scheme;
mod secrets;
mod seeds;
pub mod server;
pub mod session;
mod share;
mod silent;
mod stop;
mod stored;
mod work;

pub use answer_bits::output_bits;
pub use error::{ProtocolError, Result};
pub use primer_plan::times;
pub use program::{Program, VERSION};
pub use scheme::{Reveal, Scheme};
