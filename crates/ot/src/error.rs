//! What can go wrong in a transfer. No variant carries a secret.

use primer_ring::pack::PackError;
use primer_wire::NetError;
use thiserror::Error;

/// Why a transfer failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OtError {
    /// The channel failed, or the peer sent a message of the wrong kind or length.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A public key of the peer is not valid.
    #[error("base transfer {index}: the peer's public key is not valid")]
    BadKey {
        /// Which of the base transfers.
        index: usize,
    },
    /// The parties disagree on how many transfers of this state were spent.
    #[error("the peer is at transfer {got} of this extension, this party at {expected}")]
    OutOfStep {
        /// This party's position.
        expected: u64,
        /// The peer's position.
        got: u64,
    },
    /// The receiver of an extension did not grow whole trees, or did not use one string of choices
    /// for all of Δ: it does not follow the protocol.
    #[error("the peer's transfers are not consistent: it does not follow the protocol")]
    Inconsistent,
    /// The unused bits of a bit string from the peer are not zero.
    #[error("the padding after {bits} bits is not zero")]
    Padding {
        /// Bits in the string.
        bits: usize,
    },
    /// A step got more or fewer values than its material was made for: a mistake of the calling
    /// code.
    #[error("{got} {what} for {expected} prepared transfers")]
    Count {
        /// Which values.
        what: &'static str,
        /// Transfers prepared.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// A value is not below the modulus of the material: a mistake of the calling code. Which one
    /// is not disclosed.
    #[error("some of the {what} are not residues of the modulus")]
    NotResidues {
        /// Which values.
        what: &'static str,
    },
    /// Stored material has another length than the plan's count takes.
    #[error("the stored material has {got} bytes, the plan's takes {expected}")]
    StoredLength {
        /// Bytes that the material of the plan takes.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
    /// Stored material holds something that is not a residue.
    #[error("stored material: {0}")]
    Stored(#[from] PackError),
    /// A one-hot vector that cannot be made: a mistake of the calling code.
    #[error("one-hot vectors have indices of 4 to 10 bits, not {bits}")]
    Index {
        /// The bits asked for.
        bits: u32,
    },
    /// A modulus that messages cannot have: a mistake of the calling code.
    #[error("messages live modulo 2 to 2^57, not {modulus}")]
    Modulus {
        /// The modulus asked for.
        modulus: u64,
    },
}

/// The result of a transfer.
pub type Result<T> = std::result::Result<T, OtError>;

/// Compares a count with what the material was made for.
pub(crate) fn expect_count(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        Ok(())
    } else {
        Err(OtError::Count {
            what,
            expected,
            got,
        })
    }
}
