//! What can go wrong, with numbers.

use primer_ring::pack::PackError;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error, PartialEq)]
pub enum HeError {
    /// The ring degree is not one that the security table knows.
    #[error("ring degree {degree} has no entry in the security table (2048, 4096, 8192, 16384)")]
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
        /// Bits of the product of all primes of the set.
        bits: u32,
        /// Bits that the table allows.
        limit: u32,
    },
    /// The number of primes is out of range.
    #[error("{primes} data primes: between {min} and {max} are supported")]
    Primes {
        /// Asked for.
        primes: usize,
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// Together, products would have a wrong share too often.
    #[error(
        "a share of these products is wrong with probability 2^{odds_bits:.1}, \
         and 2^{allowed_bits:.1} is allowed"
    )]
    Odds {
        /// Logarithm of the bound.
        odds_bits: f64,
        /// Logarithm of what is allowed.
        allowed_bits: f64,
    },
    /// A public key whose uniform half is zero at a point of the transform.
    #[error("the public key vanishes at a point of the transform; another seed is needed")]
    VanishingKey,
    /// There are no keys for a parameter set.
    #[error("there are no keys for the parameter set {set}")]
    MissingSet {
        /// The set's fingerprint, in hexadecimal.
        set: String,
    },
    /// Something was made for another product than the one it is used in.
    #[error("{what} of another product: made for {found}, used for {wanted}")]
    OtherProduct {
        /// What it is.
        what: &'static str,
        /// What it was made for.
        found: String,
        /// What it is used for.
        wanted: String,
    },
    /// Two things that have to agree do not.
    #[error("{what}: {left} on one side, {right} on the other")]
    Mismatch {
        /// What should agree.
        what: &'static str,
        /// One value.
        left: usize,
        /// The other.
        right: usize,
    },
    /// A shape is outside what a layout can hold.
    #[error("{what} of {value} is out of range: 1 to {max}")]
    Range {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest allowed.
        max: usize,
    },
    /// Bytes do not start as a message of this kind starts.
    #[error("not a message of this kind: {field} is {found:#x}, expected {expected:#x}")]
    Header {
        /// The field.
        field: &'static str,
        /// What was found.
        found: u64,
        /// What was expected.
        expected: u64,
    },
    /// A message made for other parameters.
    #[error("made for other parameters: fingerprint {found}, ours is {expected}")]
    Fingerprint {
        /// Found, in hexadecimal.
        found: String,
        /// Expected, in hexadecimal.
        expected: String,
    },
    /// A message of the wrong length.
    #[error("a message of {expected} bytes was expected, {actual} were given")]
    Length {
        /// Bytes that would be right.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// Packed residues are malformed.
    #[error(transparent)]
    Packed(#[from] PackError),
}

/// Checks that two public quantities agree.
///
/// # Errors
/// [`HeError::Mismatch`] with both.
pub fn agree(what: &'static str, left: usize, right: usize) -> Result<(), HeError> {
    if left == right {
        Ok(())
    } else {
        Err(HeError::Mismatch { what, left, right })
    }
}

/// Checks that a size is between one and some maximum.
///
/// # Errors
/// [`HeError::Range`] with both.
pub fn in_range(what: &'static str, value: usize, max: usize) -> Result<(), HeError> {
    if (1..=max).contains(&value) {
        Ok(())
    } else {
        Err(HeError::Range { what, value, max })
    }
}
