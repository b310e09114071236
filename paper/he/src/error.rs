//! What can go wrong, with numbers.

use primer_rlwe::error::HeError as Common;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error, PartialEq)]
pub enum HeError {
    /// What goes wrong with products of either crate: sizes, parameters, keys, bytes.
    #[error(transparent)]
    Common(#[from] Common),
    /// The proven noise does not fit the modulus with its flooding.
    #[error(
        "the noise bound of this operation is 2^{noise_bits:.1}, \
         and flooding leaves room for 2^{room_bits:.1} only"
    )]
    NoiseBudget {
        /// Logarithm of the bound.
        noise_bits: f64,
        /// Logarithm of what would fit.
        room_bits: f64,
    },
    /// Decryption met noise beyond the proven bound: wrong key, wrong ciphertext or exhausted
    /// budget.
    #[error(
        "decryption of ciphertext {index} met noise beyond its bound: wrong key or damaged data"
    )]
    NoiseExhausted {
        /// Which ciphertext of the message.
        index: usize,
    },
    /// A rotation was asked for whose key the client did not send.
    #[error("no key for a rotation by {steps} slots")]
    MissingKey {
        /// The rotation.
        steps: i32,
    },
}
