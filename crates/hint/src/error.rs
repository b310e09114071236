//! What can be wrong with bytes from the peer, and with weights.

use primer_ring::pack::PackError;
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
        "these weights cannot have a hint: with what shares tell, secrets are as hard to find as \
         with a modulus of {bits:.1} bits, beyond the limit of {limit}"
    )]
    Margin {
        /// What plain samples of that hardness would have.
        bits: f64,
        /// The most they may have.
        limit: f64,
    },
}
