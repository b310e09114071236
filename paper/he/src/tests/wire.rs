//! Messages: round trips, sizes, and every field corrupted in turn.

use super::{pair, product, residues, signed, weights};
use crate::error::HeError;
use crate::keys::GaloisKeys;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::packing::weights::PreparedWeights;
use crate::params::{products, rotating};
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError as Common;
use primer_rlwe::keys::{PublicKey, SecretKey};

/// The 22 bytes before anything else.
const HEADER: usize = 22;

/// Flips each byte of a range and requires that reading fails each time.
fn every_byte<T>(
    bytes: &[u8],
    range: std::ops::Range<usize>,
    read: impl Fn(&[u8]) -> Result<T, Common>,
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
fn every_length<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, Common>) {
    for len in [0, 1, 5, HEADER - 1, HEADER, HEADER + 3, bytes.len() - 1] {
        assert!(read(&bytes[..len]).is_err(), "{len} bytes were accepted");
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(read(&longer).is_err());
}

/// Writes all ones over the residue at a byte and requires the error that names it.
fn out_of_range<T>(bytes: &[u8], at: usize, read: impl Fn(&[u8]) -> Result<T, Common>) {
    let mut damaged = bytes.to_vec();
    damaged[at..at + 8].fill(0xff);
    assert!(matches!(read(&damaged), Err(Common::Packed(_))));
}

#[test]
fn keys() {
    let params = products();
    let mut rng = Prg::new(&[1; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let public = PublicKey::generate(&secret, &mut rng).to_bytes();
    assert_eq!(public.len(), PublicKey::wire_len(&params));
    assert_eq!(public.len(), HEADER + 16 + 4 * 30_720);
    let read = |b: &[u8]| PublicKey::from_bytes(&params, b);
    assert_eq!(read(&public).unwrap().to_bytes(), public);
    every_byte(&public, 0..HEADER, read);
    every_length(&public, read);
    out_of_range(&public, HEADER + 16, read);
    out_of_range(&public, public.len() - 8, read);

    let galois = GaloisKeys::generate(&secret, [1, -2, 5, 4095], &mut rng);
    assert_eq!(
        galois.keys.keys().copied().collect::<Vec<_>>(),
        [-2, -1, 1, 5]
    );
    let bytes = galois.to_bytes();
    assert_eq!(bytes.len(), HEADER + 4 + 4 * (20 + 42 * 30_720));
    let read = |b: &[u8]| GaloisKeys::from_bytes(&params, b);
    assert_eq!(read(&bytes).unwrap().to_bytes(), bytes);
    // Header, count and the number of the first rotation, of which only the sign of the low byte
    // may change to another valid one.
    every_byte(&bytes, 0..HEADER + 4, read);
    every_length(&bytes, read);
    out_of_range(&bytes, HEADER + 24, read);
    let mut unsorted = bytes.clone();
    unsorted[HEADER + 4..][..4].copy_from_slice(&7i32.to_le_bytes());
    assert!(matches!(
        read(&unsorted),
        Err(Common::Header {
            field: "rotation",
            ..
        })
    ));
    unsorted[HEADER + 4..][..4].copy_from_slice(&(-3000i32).to_le_bytes());
    assert!(matches!(
        read(&unsorted),
        Err(Common::Header {
            field: "rotation",
            ..
        })
    ));
    // A count that promises more than is there is refused before anything is allocated.
    let mut many = bytes[..HEADER + 4].to_vec();
    many[HEADER..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&many), Err(Common::Range { .. })));
    many[HEADER..].copy_from_slice(&512u32.to_le_bytes());
    assert!(matches!(read(&many), Err(Common::Length { .. })));
}

#[test]
fn other_parameters_are_named() {
    let (params, other) = (products(), rotating(8192, 5).unwrap());
    let mut rng = Prg::new(&[2; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let bytes = PublicKey::generate(&secret, &mut rng).to_bytes();
    assert!(matches!(
        PublicKey::from_bytes(&other, &bytes),
        Err(Common::Fingerprint { .. })
    ));
}

#[test]
fn matrices_and_answers() {
    let params = products();
    let layout = Layout::tokens_first(&params, 200).unwrap();
    let mut p = pair(&layout, 4);
    let w = weights(&mut p.rng, 40, 33);
    let x = residues(&mut p.rng, 200, 40);
    let mask = residues(&mut p.rng, 200, 33);
    let prepared = PreparedWeights::dense(&params, &layout, &w).unwrap();
    let chunks = prepared.input_chunks();
    let sent = EncryptedMatrix::encrypt(&p.secret, &layout, chunks, &x, &mut p.rng).unwrap();
    let bytes = sent.to_bytes(&params);
    assert_eq!(bytes.len(), HEADER + 17 + 2 * (16 + 6 * 30_720));
    let read = |b: &[u8]| EncryptedMatrix::from_bytes(&params, &layout, chunks, b);
    every_byte(&bytes, 0..HEADER + 17, read);
    every_length(&bytes, read);
    out_of_range(&bytes, HEADER + 17 + 16, read);
    let other = Layout::tokens_first(&params, 199).unwrap();
    assert!(matches!(
        EncryptedMatrix::from_bytes(&params, &other, chunks, &bytes),
        Err(Common::Mismatch { .. })
    ));

    let received = read(&bytes).unwrap();
    let (answer, _) = p
        .server
        .linear(&received, &prepared, Some(&mask), &mut p.rng)
        .unwrap();
    let reply = answer.to_bytes(&params);
    assert_eq!(reply.len(), HEADER + 17 + 2 * 4 * 30_720);
    let outputs = Chunks::even(&layout, 33);
    let read_reply = |b: &[u8]| EncryptedAnswer::from_bytes(&params, &layout, &outputs, b);
    let got = read_reply(&reply).unwrap().decrypt(&p.secret).unwrap();
    assert!(got == product(&x, &signed(&w), &mask));
    every_byte(&reply, 0..HEADER + 17, read_reply);
    every_length(&reply, read_reply);
    out_of_range(&reply, HEADER + 17, read_reply);
    out_of_range(&reply, reply.len() - 8, read_reply);

    // What is well formed but not what was sent shows as noise, at the latest in the answer.
    let exhausted = |answer: &EncryptedAnswer| {
        assert!(matches!(
            answer.decrypt(&p.secret),
            Err(HeError::NoiseExhausted { .. })
        ));
    };
    // In c0 a coefficient is on its own: noise hides one damaged coefficient in two, not fifty.
    let damage = |at: usize, step: usize| {
        let mut damaged = reply.clone();
        (0..50).for_each(|i| damaged[at + step * i] ^= 1);
        read_reply(&damaged).unwrap()
    };
    exhausted(&damage(HEADER + 17, 60));
    // In c1 each coefficient meets the whole secret.
    let second_half = HEADER + 17 + 2 * 30_720;
    let mut damaged = reply.clone();
    damaged[second_half + 15] ^= 1;
    exhausted(&read_reply(&damaged).unwrap());
    for at in [HEADER + 17 + 3, HEADER + 17 + 16 + 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let (answer, _) = p
            .server
            .linear(&read(&damaged).unwrap(), &prepared, Some(&mask), &mut p.rng)
            .unwrap();
        exhausted(&answer);
    }
    // Wrong keys never panic.
    let stranger = SecretKey::generate(&params, &mut p.rng);
    assert!(matches!(
        answer.decrypt(&stranger),
        Err(HeError::NoiseExhausted { .. })
    ));
    let mut other = pair(&layout, 5);
    let (answer, _) = other
        .server
        .linear(&received, &prepared, Some(&mask), &mut p.rng)
        .unwrap();
    exhausted(&answer);
}
