//! Layer 2 of Primer: communication. It knows frames, limits and clocks, and of the protocols only
//! how their messages are called.
//!
//! A [`Channel`] is one party's end of a connection to the other: blocking, buffered, framed. The
//! same interface runs over memory (tests), TCP (measurements) and TLS 1.3 (production, [`tls`]).
//!
//! * [`frame`]: typed, length-prefixed messages; the *receiver* says what it expects and how long
//!   it may be.
//! * [`kind`]: the table of all kinds of message, so that no two have one code.
//! * [`channel`]: sending, receiving, streaming, the deadlock rule.
//! * [`message`]: packed residues and small structures on top of frames.
//! * [`meter`]: bytes and rounds per named phase; [`PhaseBytes`]: bytes of an inference, counted or
//!   computed.
//! * [`record`]: what a party does moment by moment, for pictures.
//! * [`shape`]: a slower link, simulated inside the program.
//! * [`pair`]: both parties in one process, for tests and measurements; [`clock`]: what each of
//!   them costs.

#![forbid(unsafe_code)]

mod account;
mod bytes;
pub mod channel;
pub mod clock;
pub mod error;
pub mod frame;
pub mod kind;
pub mod message;
pub mod meter;
pub mod pair;
mod pipe;
mod reader;
pub mod record;
pub mod shape;
mod socket;
pub mod tls;
mod tls_clients;
mod tls_stream;
mod writer;

pub use bytes::PhaseBytes;
pub use channel::{Channel, Options};
pub use error::{Direction, NetError, Result};
pub use kind::Kind;
pub use meter::{Meter, Report, Traffic};
pub use pair::{Transport, run_pair, run_pair_over, run_parties};
pub use reader::RecvStream;
pub use record::Recorder;
pub use shape::{Link, LinkShape};
pub use writer::SendStream;
