//! Sizes, moduli, and the line below which nothing is accepted.
//!
//! Two moduli: masks live modulo `q = p·2^8`, because rounding by a *divisor* of the modulus maps
//! uniform to uniform exactly; the packing of products lives modulo `q'`, a product of two primes
//! with transforms. Both are at most what 128 bits of security allow at this degree, by the table
//! that `primer_rlwe` enforces for all of Primer's lattices.

use crate::ring::Packing;
use crate::sample::Wide;
use primer_ring::modulus::P;
use primer_rlwe::params::{FINGERPRINT_BYTES, SECURITY_TABLE};

/// The degree of the ring.
pub const DEGREE: usize = 2048;
/// Rows of a batch.
pub const LANES: usize = 256;
/// Columns in one ring element: features of an input, or outputs.
pub const BLOCK: usize = DEGREE / LANES;

/// Bits that rounding takes off a mask.
pub const ROUND_BITS: u32 = 8;
/// The modulus of masks.
pub const Q: u64 = P << ROUND_BITS;

/// Digits of a number modulo q, from the top.
pub const DIGITS: usize = 3;
/// Bits of a digit.
pub const DIGIT_BITS: u32 = 13;
/// Polynomials of digits that belong to one element of a hint.
pub const TERMS: usize = BLOCK * DIGITS;

/// Both primes of `q'` are below this: the root of `2^PACKING_BITS`.
pub const PRIME_BOUND: u32 = 94_906_265;
/// `q'` is below two to this power.
pub const PACKING_BITS: u32 = 53;
/// Bits of a coefficient of a hint that are published; lower ones are rounded away.
pub const HINT_BITS: u32 = 39;

/// Bytes of a message: an element for each part of the secret, and one for the key.
pub const MESSAGE_BYTES: usize = (TERMS + 1) * DEGREE * PACKING_BITS as usize / 8;

/// Returns what stands for all of these parameters, in greetings and in hashes of hints.
pub fn fingerprint() -> [u8; FINGERPRINT_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("primer hint parameters v1");
    let sizes = [
        DEGREE as u64,
        LANES as u64,
        Q,
        Packing::get().modulus(),
        DIGITS as u64,
        DIGIT_BITS.into(),
        ROUND_BITS.into(),
        HINT_BITS.into(),
    ];
    let drawn = [Wide::HINT_SECRET, Wide::HINT_ERROR, Wide::SHARE].map(Wide::numbers);
    for number in sizes.iter().chain(drawn.as_flattened()) {
        hasher.update(&number.to_le_bytes());
    }
    let mut out = [0; FINGERPRINT_BYTES];
    hasher.finalize_xof().fill(&mut out);
    out
}

/// Returns the bytes of a hint for some outputs.
pub const fn hint_bytes(outputs: usize) -> usize {
    outputs.div_ceil(BLOCK) * DEGREE * HINT_BITS as usize / 8
}

const _: () = {
    let (degree, bits) = SECURITY_TABLE[0];
    assert!(degree == DEGREE, "the table begins with the smallest ring");
    assert!(
        Q >> bits == 0 && PACKING_BITS <= bits,
        "both moduli are within the table"
    );
    assert!((PRIME_BOUND as u64).pow(2) <= 1 << PACKING_BITS);
    assert!(DIGIT_BITS * (DIGITS as u32) < Q.ilog2());
    // Packed elements end with a byte.
    assert!(DEGREE.is_multiple_of(8));
};
