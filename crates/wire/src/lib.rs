//! Layer 2 of Primer: what the two parties say to each other, as bytes. It knows frames, limits and
//! counts, and of the protocols only how their messages are called. It knows no sockets: those are
//! `primer_net`'s, and a browser's are its own.
//!
//! A [`Channel`] is one party's end of a connection to the other: blocking, buffered, framed. It
//! stands on a [`Transport`], two directions of bytes: pipes in memory, here ([`pipe`]); TCP and
//! TLS, in `primer_net`; or rings that a browser's worker blocks on.
//!
//! * [`transport`]: what a channel asks of that which carries its bytes.
//! * [`frame`]: typed, length-prefixed messages; the *receiver* says what it expects and how long
//!   it may be.
//! * [`kind`]: the table of all kinds of message, so that no two have one code.
//! * [`channel`]: sending, receiving, streaming, the deadlock rule.
//! * [`message`]: packed residues and small structures on top of frames.
//! * [`meter`]: bytes and rounds per named phase; [`PhaseBytes`]: bytes of an inference, counted or
//!   computed.
//! * [`VERSION`]: what programs of different ages tell each other apart by.
//! * [`clock`]: the one place that asks for the time; [`record`]: what a party does moment by
//!   moment, for pictures.
//! * [`peer`]: what an encrypted transport knows of the other end.
//! * [`pair`]: both parties in one process, for tests and measurements.

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
pub mod peer;
pub mod pipe;
mod reader;
pub mod record;
mod shape;
pub mod transport;
mod version;
mod writer;

pub use bytes::PhaseBytes;
pub use channel::{Channel, Options};
pub use error::{Direction, NetError, Result};
pub use kind::Kind;
pub use meter::{Meter, Report, Traffic};
pub use pair::{run_pair, run_parties};
pub use reader::RecvStream;
pub use record::Recorder;
pub use shape::LinkShape;
pub use transport::{Receive, Transport};
pub use version::VERSION;
pub use writer::SendStream;
