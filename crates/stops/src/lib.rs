//! Layer 3 of Primer: the non-linear stops as protocols between the two parties.
//!
//! Between two stops everything is linear and every value is shared modulo p, with the client's
//! share known in advance. A stop takes the parties' shares in a short ring (after free truncation,
//! [`primer_ring::truncate`]) and ends with shares modulo p of which the client's is again a mask
//! that it drew offline:
//!
//! ```text
//! before   server a, client b                    x = a + b mod 2^m
//! after    server f(x) - r mod p, client r       r drawn offline by the client
//! ```
//!
//! * [`stop`]: the life cycle that all stops share, as a trait for each party. The code that drives
//!   an inference knows stops by these traits only.
//! * [`kind`]: the kinds of stop, and what builds the stop of a function.
//! * [`garbled`]: any circuit of [`primer_garble::stop`]. Offline the server garbles and the client
//!   obtains the labels of its bits by oblivious transfer; online the server sends the labels of
//!   its own bits, the client evaluates and returns the result minus its mask.
//! * [`client_garbled`]: the same circuits with the roles swapped: the client garbles and keeps a
//!   seed, the server evaluates and has its share at once. The client's share may be known only
//!   online.
//! * [`requantise`]: the identity, by one oblivious transfer for each element and no gate at all.
//! * [`late`]: the identity where the client's share, too, is known only online, right after a
//!   product of two secrets.
//! * [`lift`]: the identity with no message from the client online, for values that only products
//!   of secrets read.
//! * [`lookup`]: any function of a short index, by shares of a unit vector and no gate at all.
//! * [`classes`]: look-ups in several tables side by side, for elements of several classes.
//! * [`flags`]: whether any looked-up value came near the end of its range.
//!
//! What moves between offline and online is *material*: bytes that a party keeps secret, reads back
//! once and wipes, so that no label, table or mask is used twice. Both parties know all counts from
//! the plan; nothing that a peer says decides how much is allocated.
//!
//! A new kind of stop is a module of its own, a variant of [`StopKind`], and a case in
//! `tests/stops/conformance.rs`, which checks that its life cycle is that of the others.
#![forbid(unsafe_code)]

mod bytes;
mod circuits;
pub mod classes;
pub mod client_garbled;
mod error;
pub mod flags;
pub mod garbled;
pub mod kind;
pub mod late;
pub mod lift;
pub mod lookup;
mod material;
pub mod measure;
pub mod requantise;
pub mod stop;
mod transfers;

pub use bytes::StoredBytes;
pub use classes::ClassedLookups;
pub use client_garbled::ClientGarbled;
pub use error::{Result, StopError};
pub use flags::{Comparison, FlagShares};
pub use garbled::Garbled;
pub use kind::{StopBuilder, StopKind, StopSpec};
pub use late::LateRequantise;
pub use lift::{Lift, Lifted};
pub use lookup::Lookups;
pub use requantise::Requantise;
pub use stop::{
    AwaitedAnswer, ClientStop, ClientTools, PendingAnswer, ServerStop, ServerTools, Stop, Turn,
    TwoPartyStop,
};
pub use transfers::Transfers;
