//! Public keys: round trips, sizes, and every field corrupted in turn. Queries and answers go
//! through the face: `tests/split.rs`.

use crate::error::HeError;
use crate::keys::{PublicKey, SecretKey};
use crate::params::{Params, SetKind};
use primer_lattice::simd::Simd;
use primer_ring::prg::Prg;

/// The 22 bytes before anything else.
const HEADER: usize = 22;

/// Flips each byte of a range and requires that reading fails each time.
fn every_byte<T>(
    bytes: &[u8],
    range: std::ops::Range<usize>,
    read: impl Fn(&[u8]) -> Result<T, HeError>,
) {
    for i in range {
        for flip in [1, 0x80] {
            let mut damaged = bytes.to_vec();
            damaged[i] ^= flip;
            assert!(
                read(&damaged).is_err(),
                "byte {i} flipped by {flip:#x} was accepted"
            );
        }
    }
}

/// Cuts and extends a message and requires that reading fails.
fn every_length<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, HeError>) {
    for len in [0, 1, 5, HEADER - 1, HEADER, HEADER + 3, bytes.len() - 1] {
        assert!(read(&bytes[..len]).is_err(), "{len} bytes were accepted");
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(read(&longer).is_err());
}

/// Writes all ones over the residue at a byte and requires the error that names it.
fn out_of_range<T>(bytes: &[u8], at: usize, read: impl Fn(&[u8]) -> Result<T, HeError>) {
    let mut damaged = bytes.to_vec();
    damaged[at..at + 8].fill(0xff);
    assert!(matches!(read(&damaged), Err(HeError::Packed(_))));
}

#[test]
fn keys() {
    // Of split products, and of a kind whose keys have fewer primes than its ciphertexts.
    let fewer = SetKind {
        context: "primer test of public keys",
        spare: 1,
        public: 4,
    };
    let fewer = Params::of_kind(&fewer, 8192, 6, Simd::detect()).unwrap();
    for (params, limbs) in [(Params::split(), 5), (fewer, 4)] {
        let mut rng = Prg::new(&[1; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        let public = PublicKey::generate(&secret, &mut rng).to_bytes();
        assert_eq!(public.len(), PublicKey::wire_len(&params));
        assert_eq!(public.len(), HEADER + 16 + limbs * 30_720);
        let read = |b: &[u8]| PublicKey::from_bytes(&params, b);
        assert_eq!(read(&public).unwrap().to_bytes(), public);
        every_byte(&public, 0..HEADER, read);
        every_length(&public, read);
        out_of_range(&public, HEADER + 16, read);
        out_of_range(&public, public.len() - 8, read);
    }
}

#[test]
fn other_parameters_are_named() {
    let (params, other) = (Params::split(), Params::new(8192, 4).unwrap());
    let mut rng = Prg::new(&[2; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let bytes = PublicKey::generate(&secret, &mut rng).to_bytes();
    assert!(matches!(
        PublicKey::from_bytes(&other, &bytes),
        Err(HeError::Fingerprint { .. })
    ));
}
