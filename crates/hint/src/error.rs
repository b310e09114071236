//! What can be wrong with bytes from the peer.

use primer_ring::pack::PackError;
use thiserror::Error;

/// Why bytes are not a message or a hint.
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
}
