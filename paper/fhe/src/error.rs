//! What can go wrong, with numbers.

use primer_ring::pack::PackError;
use primer_wire::NetError;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
pub enum FheError {
    /// The ring degree is not one that the security table knows.
    #[error("ring degree {degree} has no entry in the security table (32768, 65536)")]
    Degree {
        /// The degree asked for.
        degree: usize,
    },
    /// The modulus is too large for 128-bit security at this degree.
    #[error(
        "a modulus of {bits} bits is below 128-bit security at ring degree {degree}: \
         at most {limit} bits"
    )]
    Insecure {
        /// The degree.
        degree: usize,
        /// Bits of the modulus with the key-switching primes.
        bits: u32,
        /// Bits that the table allows.
        limit: u32,
    },
    /// A number is outside what is supported.
    #[error("{what} is {value}, but must be between 1 and {max}")]
    Range {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest allowed.
        max: usize,
    },
    /// The model takes more products one after the other than the parameters have levels for.
    #[error("the model is {depth} levels deep, and the largest secure parameters have {levels}")]
    TooDeep {
        /// Its depth.
        depth: usize,
        /// Levels available.
        levels: usize,
    },
    /// The model's head is not one that this comparator computes.
    #[error("only BERT's classifiers are computed homomorphically")]
    Head,
    /// The input is not padded to the set-up's tokens.
    #[error("an input of {found} tokens where the set-up has {expected}")]
    Tokens {
        /// Tokens of the input.
        found: usize,
        /// Tokens of the set-up.
        expected: usize,
    },
    /// Residues from the peer are malformed.
    #[error(transparent)]
    Packed(#[from] PackError),
    /// The connection failed.
    #[error(transparent)]
    Net(#[from] NetError),
}

#[cfg(test)]
impl PartialEq for FheError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
