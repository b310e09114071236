//! Parameters of products with rotations: one more prime, with which keys are switched.
//!
//! A parameter set is one of [`primer_rlwe::params`], of another kind: beside its data primes it
//! has a key-switching prime, and public keys have the primes at which answers are flooded only.
//! The line below which nothing is accepted is the same, and the key-switching prime counts.
//!
//! # Why six data primes at degree 8192
//! Slot-packed weights are polynomials whose coefficients fill the 41 bits of p, however small the
//! weights: a product costs 40 bits of noise and the logarithm of the number of coefficients.
//! Worst-case noise of the widest products is about `2^85` (`paper/docs/he.md`); dropping two
//! primes brings it to `2^25`, flooding at four primes adds up to `2^77`, and 41 bits for the
//! plaintext remain. Five primes would hold only for noise of the average case.

pub use primer_rlwe::params::{FINGERPRINT_BYTES, Params, SECURITY_TABLE};

use crate::error::HeError;
use primer_lattice::simd::Simd;
use primer_rlwe::params::{MIN_DATA_PRIMES, SetKind};
use std::sync::{Arc, LazyLock};

/// Primes left when an answer is flooded.
pub const FLOOD_LIMBS: usize = 4;
/// Primes of an answer on the wire.
pub const ANSWER_LIMBS: usize = 2;
const _: () = assert!(
    ANSWER_LIMBS <= MIN_DATA_PRIMES,
    "every set has the primes of an answer"
);

/// What the sets of this crate have in common.
const ROTATING: SetKind = SetKind {
    context: "primer homomorphic parameters 1",
    spare: 1,
    public: FLOOD_LIMBS,
};

/// Returns the set for matrix products: degree 8192, six data primes. Its tables are made once.
pub fn products() -> Arc<Params> {
    static PRODUCTS: LazyLock<Arc<Params>> =
        LazyLock::new(|| rotating(8192, 6).expect("the set is within the table"));
    PRODUCTS.clone()
}

/// Makes a set of some degree with a number of data primes, and a key-switching prime.
///
/// # Errors
/// If the degree is unknown, the number of primes unsupported, or the modulus beyond the security
/// table.
pub fn rotating(degree: usize, data: usize) -> Result<Arc<Params>, HeError> {
    with_simd(degree, data, Simd::detect())
}

/// Makes the same on a chosen instruction set: tests compare them.
///
/// # Errors
/// As [`rotating`].
pub(crate) fn with_simd(degree: usize, data: usize, simd: Simd) -> Result<Arc<Params>, HeError> {
    Ok(Params::of_kind(&ROTATING, degree, data, simd)?)
}

/// Counts the slots of one row, `N/2`.
pub(crate) fn row(params: &Params) -> usize {
    params.degree() / 2
}

/// Counts the limbs at which answers get a fresh encryption of zero, which are those of a public
/// key, and flooding with it.
pub(crate) fn flood_limbs(params: &Params) -> usize {
    params.public_primes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_rlwe::error::HeError as Common;

    #[test]
    fn beyond_the_table_is_refused() {
        let refused = |degree, data| match rotating(degree, data) {
            Err(HeError::Common(error)) => error,
            other => panic!("{:?}", other.err()),
        };
        let insecure = |degree, bits, limit| Common::Insecure {
            degree,
            bits,
            limit,
        };
        assert_eq!(refused(4096, 3), insecure(4096, 120, 106));
        assert_eq!(refused(8192, 7), insecure(8192, 240, 214));
        assert_eq!(refused(2048, 2), insecure(2048, 90, 53));
        assert_eq!(refused(1024, 2), Common::Degree { degree: 1024 });
        assert!(matches!(
            refused(16384, 8),
            Common::Primes { primes: 8, .. }
        ));
        for (degree, data) in [(4096, 2), (8192, 6), (16384, 7)] {
            assert!(rotating(degree, data).is_ok());
        }
    }

    #[test]
    fn fingerprints_differ() {
        let a = rotating(8192, 6).unwrap();
        let b = rotating(8192, 5).unwrap();
        assert_ne!(a.fingerprint(), b.fingerprint());
        assert_eq!(a.fingerprint(), products().fingerprint());
        // The same data primes without a key-switching prime are another set.
        assert_ne!(b.fingerprint(), Params::split().fingerprint());
    }
}
