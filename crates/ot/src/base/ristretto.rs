//! Base transfers from Diffie-Hellman in ristretto255.
//!
//! Here the encapsulation to a key `K` is one point `S = a·G` for all keys, with shared secret
//! `a·K`. The receiver owns the discrete logarithm of one of `K_0`, `K_1 = C - K_0`; knowing `a·K`
//! for both would give `a·C`, a Diffie-Hellman value of two random points. `K_0` is uniform for
//! either choice.
//!
//! Bytes: keys `32 + 128·32`, answer `32`. Not post-quantum: a discrete logarithm gives `a`, hence
//! all seeds.

use super::{COUNT, Chosen, Pairs, Session, constant_hasher, seed, session};
use crate::error::{OtError, Result};
use crate::setup::{NONCE_BYTES, Nonce};
use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::scalar::Scalar;
use primer_wire::Channel;
use primer_wire::kind::base::{ANSWERS, KEYS};
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

const SESSION: &str = "primer ot base ristretto255 session v2";
const CONSTANT: &str = "primer ot base ristretto255 constant v2";
const SEED: &str = "primer ot base ristretto255 seed v2";

/// Bytes of a point.
pub const POINT_BYTES: usize = 32;
/// Bytes of the keys message.
pub const KEYS_BYTES: usize = NONCE_BYTES + COUNT * POINT_BYTES;
/// Bytes of the answer.
pub const ANSWERS_BYTES: usize = POINT_BYTES;

/// Computes `C_i`, hashed to the group.
fn constant(nonces: [&[u8]; 2], index: usize) -> RistrettoPoint {
    let mut uniform = [0; 64];
    let hasher = constant_hasher(CONSTANT, nonces, index);
    hasher.finalize_xof().fill(&mut uniform);
    RistrettoPoint::from_uniform_bytes(&uniform)
}

fn decode(bytes: &[u8], index: usize) -> Result<RistrettoPoint> {
    CompressedRistretto::from_slice(bytes)
        .ok()
        .and_then(|point| point.decompress())
        .ok_or(OtError::BadKey { index })
}

/// Computes the seed of a message from its shared point.
fn point_seed(
    session: &Session,
    index: usize,
    message: u8,
    mut shared: RistrettoPoint,
) -> crate::base::Seed {
    let mut bytes = Zeroizing::new(shared.compress().to_bytes());
    shared.zeroize();
    let seed = seed(SEED, session, index, message, &*bytes);
    bytes.zeroize();
    seed
}

pub(super) fn send(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    ours: &Nonce,
) -> Result<(Pairs, Session)> {
    let mut keys = vec![0; KEYS_BYTES];
    channel.recv_exact(KEYS, &mut keys)?;
    let (theirs, list) = keys.split_at(NONCE_BYTES);
    let points = list
        .chunks_exact(POINT_BYTES)
        .enumerate()
        .map(|(i, bytes)| decode(bytes, i))
        .collect::<Result<Vec<_>>>()?;
    let secret = Zeroizing::new(Scalar::random(rng));
    let answer = RistrettoPoint::mul_base(&secret).compress().to_bytes();
    channel.send(ANSWERS, &answer)?;
    channel.flush()?;
    let session = session(SESSION, ours, [&keys, &answer]);
    let mut pairs = Zeroizing::new(Vec::with_capacity(COUNT));
    for (i, first) in points.into_iter().enumerate() {
        let second = constant([ours, theirs], i) - first;
        pairs.push([
            point_seed(&session, i, 0, *secret * first),
            point_seed(&session, i, 1, *secret * second),
        ]);
    }
    Ok((pairs, session))
}

pub(super) fn receive(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    theirs: &Nonce,
    choices: &Zeroizing<u128>,
) -> Result<(Chosen, Session)> {
    let mut keys = vec![0; KEYS_BYTES];
    let (ours, list) = keys.split_at_mut(NONCE_BYTES);
    rng.fill_bytes(ours);
    let mut secrets = Zeroizing::new(Vec::with_capacity(COUNT));
    for (i, slot) in list.chunks_exact_mut(POINT_BYTES).enumerate() {
        let secret = Scalar::random(rng);
        let mut own = RistrettoPoint::mul_base(&secret);
        let other = constant([theirs, ours], i) - own;
        own.conditional_assign(&other, Choice::from((**choices >> i & 1) as u8));
        slot.copy_from_slice(own.compress().as_bytes());
        secrets.push(secret);
    }
    channel.send(KEYS, &keys)?;
    let mut answer = [0; ANSWERS_BYTES];
    channel.recv_exact(ANSWERS, &mut answer)?;
    let session = session(SESSION, theirs, [&keys, &answer]);
    let point = decode(&answer, 0)?;
    let chosen = secrets.iter().enumerate().map(|(i, secret)| {
        let bit = (**choices >> i & 1) as u8;
        point_seed(&session, i, bit, secret * point)
    });
    Ok((Zeroizing::new(chosen.collect()), session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use primer_wire::run_pair;

    #[test]
    fn a_bad_point_is_named() {
        let error = run_pair(
            |channel| send(channel, &mut Prg::from_os(), &[1; NONCE_BYTES]).map(drop),
            |channel| {
                channel.send(KEYS, &[0xff; KEYS_BYTES])?;
                channel.flush()?;
                Ok(())
            },
        )
        .unwrap_err();
        assert!(matches!(error, OtError::BadKey { index: 0 }), "{error}");
    }

    #[test]
    fn constants_differ() {
        let constant = |ours, theirs, index| constant([&[ours; 32], &[theirs; 32]], index);
        let one = constant(0, 0, 0);
        assert!(one != constant(0, 0, 1) && one != constant(1, 0, 0) && one != constant(0, 1, 0));
        assert!(constant(0, 1, 0) != constant(1, 0, 0));
    }
}
