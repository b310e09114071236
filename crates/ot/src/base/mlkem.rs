//! Base transfers from ML-KEM-768 (FIPS 203).
//!
//! An encapsulation key is a vector `t = A·s + e` of 768 residues mod 3329 (12 bits each, in NTT
//! form) and the 32-byte seed `ρ` of the matrix `A`. Both keys of a transfer share `ρ`. The crate
//! `ml-kem` makes, encapsulates to and opens the keys; here vectors are added and subtracted, in
//! constant time where the choice is involved.
//!
//! * *The sender learns nothing.* It sees `ρ, t` or `ρ, C - t`. Under decisional module-LWE `(A,
//!   t)` is indistinguishable from `(A, uniform)`, and so is `(A, C - t)`. A hybrid over 128
//!   transfers.
//! * *A receiver that follows the protocol learns one seed.* `C` is a random-oracle output, so `t'
//!   = C - t` is uniform and independent of `(A, s, e)`. An encapsulation to `(ρ, t')` is `(Aᵀr +
//!   e₁, t'ᵀr + e₂ + ⌈q/2⌋·m)`: module-LWE samples in the secret `r`, which hide `m` and with it
//!   the shared key, a random-oracle output on `m`. (The second half of the IND-CPA proof of
//!   ML-KEM; the first half, replacing `t` by uniform, is here a fact.)
//! * Both encapsulations of a transfer use independent randomness. Decapsulation fails with
//!   probability below 2⁻¹⁶⁰. The sender refuses a vector with a residue ≥ q, by index.
//! * *A receiver that deviates* could look for a `t` for which both keys are useful: a short
//!   preimage of `C` under `[A | I]`, halved. Such pairs exist: the shortest preimages have norms
//!   of about 549, 14 a coefficient, and of a half of that either key decrypts with noise of
//!   deviation about 335, against `q/4 = 832`. What protects is that one is hard to find: it is an
//!   inhomogeneous SIS near the Gaussian heuristic, in dimension 1536. The constants depend on the
//!   other party's nonce, so nothing can be prepared ahead, but the receiver may grind its own
//!   nonce, and attack recorded encapsulations later. This is not proved. It matters where the
//!   server receives: a client that owned both keys of one base transfer of a top level would know
//!   a whole tree, and with it the server's choices. (Masny, Rindal, CCS 2019, whose hash-and-add
//!   form is also maliciously secure, takes 1184 bytes more per transfer.)
//!
//! Bytes: keys `32 + 128·1184`, answers `128·2·1088`.

use super::{COUNT, Chosen, Pairs, Session, constant_hasher, seed, session};
use crate::error::{OtError, Result};
use crate::setup::{NONCE_BYTES, Nonce};
use ml_kem::ml_kem_768::{Ciphertext, DecapsulationKey, EncapsulationKey};
use ml_kem::{Decapsulate, Encapsulate, Generate, Key, KeyExport};
use primer_wire::Channel;
use primer_wire::kind::base::{ANSWERS, KEYS};
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

const SESSION: &str = "primer ot base ml-kem-768 session v2";
const CONSTANT: &str = "primer ot base ml-kem-768 constant v2";
const SEED: &str = "primer ot base ml-kem-768 seed v2";

/// The modulus of ML-KEM.
const Q: u16 = 3329;
/// Residues in a key of ML-KEM-768.
const RESIDUES: usize = 768;
/// Bytes of the vector.
const VECTOR: usize = RESIDUES * 12 / 8;
/// Bytes of an encapsulation key: the vector and the seed of the matrix.
pub const KEY_BYTES: usize = VECTOR + 32;
/// Bytes of an encapsulation.
pub const CIPHERTEXT_BYTES: usize = 1088;
/// Bytes of the keys message.
pub const KEYS_BYTES: usize = NONCE_BYTES + COUNT * KEY_BYTES;
/// Bytes of the answers message.
pub const ANSWERS_BYTES: usize = COUNT * 2 * CIPHERTEXT_BYTES;

type Vector = [u16; RESIDUES];

/// Reads a vector; returns `None` if a residue is not below the modulus.
fn decode(bytes: &[u8]) -> Option<Vector> {
    let mut vector = [0; RESIDUES];
    for (pair, three) in vector.chunks_exact_mut(2).zip(bytes.chunks_exact(3)) {
        let [a, b, c] = [three[0], three[1], three[2]].map(u16::from);
        pair[0] = a | (b & 0xf) << 8;
        pair[1] = b >> 4 | c << 4;
    }
    vector.iter().all(|&x| x < Q).then_some(vector)
}

fn encode(vector: &Vector, bytes: &mut [u8]) {
    for (pair, three) in vector.chunks_exact(2).zip(bytes.chunks_exact_mut(3)) {
        let (x, y) = (pair[0], pair[1]);
        three[0] = x as u8;
        three[1] = (x >> 8 | (y & 0xf) << 4) as u8;
        three[2] = (y >> 4) as u8;
    }
}

/// Computes `a - b`, in constant time.
fn subtract(a: &Vector, b: &Vector) -> Vector {
    std::array::from_fn(|i| {
        let difference = a[i].wrapping_sub(b[i]);
        // All ones where the subtraction went below zero.
        let below = (difference >> 15).wrapping_neg();
        difference.wrapping_add(Q & below)
    })
}

/// Computes `C_i`: residues by rejection from 12-bit candidates, as ML-KEM samples its matrix.
fn constant(nonces: [&[u8]; 2], index: usize) -> Vector {
    let mut stream = constant_hasher(CONSTANT, nonces, index).finalize_xof();
    let mut vector = [0; RESIDUES];
    let mut filled = 0;
    while filled < RESIDUES {
        let mut three = [0; 3];
        stream.fill(&mut three);
        let [a, b, c] = three.map(u16::from);
        for candidate in [a | (b & 0xf) << 8, b >> 4 | c << 4] {
            if candidate < Q && filled < RESIDUES {
                vector[filled] = candidate;
                filled += 1;
            }
        }
    }
    vector
}

/// Makes the receiver's first message and the keys that open the answers.
fn make_keys(
    rng: &mut impl CryptoRng,
    theirs: &Nonce,
    choices: u128,
) -> (Vec<u8>, Vec<DecapsulationKey>) {
    let mut message = vec![0; KEYS_BYTES];
    let (ours, keys) = message.split_at_mut(NONCE_BYTES);
    rng.fill_bytes(ours);
    let secrets = keys
        .chunks_exact_mut(KEY_BYTES)
        .enumerate()
        .map(|(i, slot)| {
            let secret = DecapsulationKey::generate_from_rng(rng);
            let public = secret.encapsulation_key().to_bytes();
            let mut own = decode(&public[..VECTOR]).expect("our own key is valid");
            let mut other = subtract(&constant([theirs, ours], i), &own);
            let choice = Choice::from((choices >> i & 1) as u8);
            for (x, y) in own.iter_mut().zip(&other) {
                x.conditional_assign(y, choice);
            }
            encode(&own, slot);
            slot[VECTOR..].copy_from_slice(&public[VECTOR..]);
            // Together with the message, either vector reveals the choice.
            own.zeroize();
            other.zeroize();
            secret
        });
    let secrets = secrets.collect();
    (message, secrets)
}

/// Returns the two keys of a transfer as the sender sees them.
fn both_keys(nonces: [&[u8]; 2], index: usize, bytes: &[u8]) -> Result<[EncapsulationKey; 2]> {
    let bad = || OtError::BadKey { index };
    let first = decode(&bytes[..VECTOR]).ok_or_else(bad)?;
    let second = subtract(&constant(nonces, index), &first);
    let build = |vector: &Vector| {
        let mut key = Key::<EncapsulationKey>::default();
        encode(vector, &mut key);
        key[VECTOR..].copy_from_slice(&bytes[VECTOR..]);
        EncapsulationKey::new(&key).map_err(|_| bad())
    };
    Ok([build(&first)?, build(&second)?])
}

pub(super) fn send(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    ours: &Nonce,
) -> Result<(Pairs, Session)> {
    let mut keys = vec![0; KEYS_BYTES];
    channel.recv_exact(KEYS, &mut keys)?;
    let (theirs, list) = keys.split_at(NONCE_BYTES);
    let mut answers = Vec::with_capacity(ANSWERS_BYTES);
    let mut secrets = Zeroizing::new(vec![[[0u8; 32]; 2]; COUNT]);
    for (i, bytes) in list.chunks_exact(KEY_BYTES).enumerate() {
        for (key, secret) in both_keys([ours, theirs], i, bytes)?
            .iter()
            .zip(&mut secrets[i])
        {
            let (ciphertext, mut shared) = key.encapsulate_with_rng(rng);
            answers.extend_from_slice(&ciphertext);
            secret.copy_from_slice(&shared);
            shared.as_mut_slice().zeroize();
        }
    }
    channel.send(ANSWERS, &answers)?;
    channel.flush()?;
    let session = session(SESSION, ours, [&keys, &answers]);
    let pairs = secrets.iter().enumerate().map(|(i, [zero, one])| {
        [
            seed(SEED, &session, i, 0, zero),
            seed(SEED, &session, i, 1, one),
        ]
    });
    Ok((Zeroizing::new(pairs.collect()), session))
}

pub(super) fn receive(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    theirs: &Nonce,
    choices: &Zeroizing<u128>,
) -> Result<(Chosen, Session)> {
    let (keys, secrets) = make_keys(rng, theirs, **choices);
    channel.send(KEYS, &keys)?;
    let mut answers = vec![0; ANSWERS_BYTES];
    channel.recv_exact(ANSWERS, &mut answers)?;
    let session = session(SESSION, theirs, [&keys, &answers]);
    let pairs = answers.chunks_exact(2 * CIPHERTEXT_BYTES);
    let chosen = secrets
        .iter()
        .zip(pairs)
        .enumerate()
        .map(|(i, (secret, pair))| {
            let bit = (**choices >> i & 1) as u8;
            let choice = Choice::from(bit);
            let (zero, one) = pair.split_at(CIPHERTEXT_BYTES);
            let mut ciphertext = Ciphertext::default();
            for ((out, a), b) in ciphertext.iter_mut().zip(zero).zip(one) {
                *out = u8::conditional_select(a, b, choice);
            }
            let mut shared = secret.decapsulate(&ciphertext);
            let seed = seed(SEED, &session, i, bit, &shared);
            shared.as_mut_slice().zeroize();
            ciphertext.as_mut_slice().zeroize();
            seed
        });
    Ok((Zeroizing::new(chosen.collect()), session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use primer_wire::run_pair;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn keys_from_the_peer_are_right_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), KEY_BYTES),
        ) {
            // Random bytes almost surely hold a residue that is out of range.
            let refused = both_keys([&[0; 32], &[1; 32]], 5, &bytes).map(drop).unwrap_err();
            let named = matches!(refused, OtError::BadKey { index: 5 });
            prop_assert!(named);
        }

        #[test]
        fn vectors_round_trip_and_subtract(seed: [u8; 32]) {
            let nonces = [&[2; NONCE_BYTES][..], &seed];
            let (a, b) = (constant(nonces, 0), constant(nonces, 1));
            prop_assert!(a != b);
            let mut bytes = [0; VECTOR];
            encode(&a, &mut bytes);
            prop_assert_eq!(decode(&bytes), Some(a));
            let back = subtract(&a, &subtract(&a, &b));
            prop_assert_eq!(back, b);
            prop_assert!(subtract(&a, &b).iter().all(|&x| x < Q));
        }
    }

    #[test]
    fn a_key_of_the_library_survives_our_coding() {
        let secret = DecapsulationKey::generate_from_rng(&mut Prg::new(&[3; 16]));
        let public = secret.encapsulation_key().to_bytes();
        assert_eq!(public.len(), KEY_BYTES);
        let mut again = public;
        encode(&decode(&public[..VECTOR]).unwrap(), &mut again);
        assert_eq!(again, public);
    }

    /// Checks that the residues on the wire are uniform for both choices: a crude check of what
    /// MLWE promises, which would catch a key sent in the wrong form.
    #[test]
    fn sent_vectors_look_alike() {
        for choices in [0, u128::MAX] {
            let (message, _) = make_keys(&mut Prg::new(&[8; 16]), &[1; NONCE_BYTES], choices);
            let mut sum = 0u64;
            for key in message[NONCE_BYTES..].chunks_exact(KEY_BYTES) {
                sum += decode(key)
                    .unwrap()
                    .iter()
                    .map(|&x| u64::from(x))
                    .sum::<u64>();
            }
            let mean = sum as f64 / (COUNT * RESIDUES) as f64;
            // Standard error 961 / sqrt(98304) = 3.1.
            assert!((mean - 1664.0).abs() < 16.0, "{mean}");
        }
    }

    #[test]
    fn a_bad_key_is_named() {
        let error = run_pair(
            |channel| send(channel, &mut Prg::from_os(), &[1; NONCE_BYTES]).map(drop),
            |channel| {
                let (mut keys, _) = make_keys(&mut Prg::from_os(), &[1; NONCE_BYTES], 0);
                let bad = NONCE_BYTES + 17 * KEY_BYTES;
                keys[bad..bad + 3].fill(0xff);
                channel.send(KEYS, &keys)?;
                channel.flush()?;
                Ok(())
            },
        )
        .unwrap_err();
        assert!(matches!(error, OtError::BadKey { index: 17 }), "{error}");
    }
}
