//! What can be wrong with bytes from the peer, and with weights.

use primer_ring::pack::PackError;
use std::io;
use thiserror::Error;

/// Why bytes are not a message or a hint, or weights have none.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HintError {
    /// A message or a hint has another length than its sizes ask for, or a coefficient that is not
    /// below the modulus.
    #[error("{what}: {cause}")]
    Bytes {
        /// Which of them.
        what: &'static str,
        /// What is wrong.
        cause: PackError,
    },
    /// Shares of these weights would tell too much about a client's secrets.
    #[error(
        "these weights cannot have a hint: given what shares leak, its secrets are as hard to find \
         as with a modulus of {bits:.1} bits, above the limit of {limit}"
    )]
    Margin {
        /// What plain samples of that hardness would have.
        bits: f64,
        /// The most they may have.
        limit: f64,
    },
    /// A hint, or a list of its hashes, is not the one that was announced.
    #[error("{what} is not the one that was announced")]
    Other {
        /// What was compared.
        what: &'static str,
    },
    /// A chunk does not have the hash that belongs to it.
    #[error("chunk {chunk} of the hint is damaged")]
    Damaged {
        /// Its number, from 0.
        chunk: usize,
    },
    /// Reading or writing a file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
