//! Layer 3 of Primer: private inference along the plan, one protocol of two parties.
//!
//! Every value of the plan is shared modulo p: the server holds `x̂ = x - r`, the client holds `r`.
//! The invariant that lets nearly everything happen before there is a text: **the client's share is
//! known offline.** Each kind of step keeps it in its own way.
//!
//! * Linear steps (`linear`, `silent`): offline the parties get shares of `r·W` by a *hint* that
//!   the client has for all of its inferences, and nothing comes back; online the server adds
//!   `x̂·W` to its share in the clear and nothing is said.
//! * Products of two secrets (`secrets`): offline both parties get shares of the mixed terms;
//!   online the server opens `x̂ - U` and `ŷ - V`, masks that it drew offline, and the client
//!   returns its share minus a new mask, or both hand their shares to a stop. No homomorphic
//!   operation is left online.
//! * Stops (`primer_stops`) make a value of an accumulator, of the kind that [`stop_kinds`] names.
//! * Local steps (`local`) each party does alone.
//!
//! A [`Program`] is a compiled plan: every step becomes one of these (`compiled`), with the
//! homomorphic exchanges (`exchange`) that prepare it. [`session`] is how two parties begin, and
//! their keys. [`client`] and [`server`] drive a program, each the whole stack of its side:
//! `prepare` writes a bundle of offline material (`stored`, `seeds`), `infer` reads and consumes
//! it.
#![forbid(unsafe_code)]

mod batch;
mod bits;
pub mod client;
pub mod clock;
mod compiled;
pub mod cost;
mod error;
mod exchange;
mod flags;
mod flow;
pub mod hints;
mod linear;
mod local;
mod masks;
mod padding;
mod program;
mod renewed;
mod reveal;
mod secrets;
mod seeds;
pub mod server;
pub mod session;
pub mod share;
mod silent;
mod stop;
pub mod stop_kinds;
mod stored;

pub use batch::{MOST_BUNDLES, TOKENS_TOGETHER, bundles_together};
pub use error::{ProtocolError, Result};
pub use primer_plan::times;
pub use primer_wire::VERSION;
pub use program::{Program, SCHEME_NAME};
pub use reveal::{Reveal, output_bits};
