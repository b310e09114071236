//! What can go wrong at a stop. No variant carries a share, a label or a mask.

use crate::requantise::{MAX_RING_BITS, MIN_RING_BITS};
use primer_garble::stop::CircuitError;
use primer_ot::OtError;
use primer_wire::NetError;
use std::io;
use thiserror::Error;

/// Why a stop failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StopError {
    /// The channel failed, or the peer sent a message of the wrong kind or length.
    #[error(transparent)]
    Net(#[from] NetError),
    /// An oblivious transfer failed.
    #[error(transparent)]
    Ot(#[from] OtError),
    /// The stored material of a stop could not be written.
    #[error("the material of {stop} cannot be stored: {source}")]
    Store {
        /// Which stop.
        stop: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The stored material of a stop could not be read or is not well formed.
    #[error("the stored material of {stop} is not usable: {source}")]
    Material {
        /// Which stop.
        stop: &'static str,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A function that this kind of stop cannot compute: a programming error on this side.
    #[error("{what} cannot be computed by {kind}")]
    Kind {
        /// The kind.
        kind: &'static str,
        /// What was to be computed.
        what: &'static str,
    },
    /// There is no circuit for the function.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// A stop showed a position that its rows do not have: the peer's labels or the stored circuits
    /// are wrong.
    #[error("{stop} shows position {position} of a row of {row}")]
    Position {
        /// Which stop.
        stop: &'static str,
        /// The position.
        position: usize,
        /// Elements of a row.
        row: usize,
    },
    /// The stop is larger than anything a model needs.
    #[error("{instances} instances of {stop} are {amount} {what}, the limit is {limit}")]
    Limit {
        /// Which stop.
        stop: &'static str,
        /// Instances asked for.
        instances: u64,
        /// What there is too much of.
        what: &'static str,
        /// How much.
        amount: u128,
        /// How much there may be.
        limit: u64,
    },
    /// A stop was given more or fewer values than it has: a programming error on this side.
    #[error("{stop}: {got} {what} instead of {expected}")]
    Count {
        /// Which stop.
        stop: &'static str,
        /// Which values.
        what: &'static str,
        /// Values that the stop has.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// A stop that cannot negate its results: a programming error on this side.
    #[error("{stop} cannot be negated")]
    Negated {
        /// Which stop.
        stop: &'static str,
    },
    /// A ring that requantisation cannot use: a programming error on this side.
    #[error("requantisation takes rings of {MIN_RING_BITS} to {MAX_RING_BITS} bits, not {0}")]
    Ring(u32),
}

/// The result of a part of a stop.
pub type Result<T> = std::result::Result<T, StopError>;

/// Fails with [`StopError::Count`] unless `got`, the number of values given, is the `expected`
/// one.
pub(crate) fn expect_count(
    stop: &'static str,
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(StopError::Count {
        stop,
        what,
        expected,
        got,
    })
}

/// Makes the error for stored material that the stop cannot have written.
pub(crate) fn unusable(
    stop: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StopError {
    StopError::Material {
        stop,
        source: source.into(),
    }
}
