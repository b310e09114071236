//! Base transfers: 128 random transfers with public-key cryptography.
//!
//! The base *sender* ends with 128 pairs of seeds; the base *receiver*, who has choice bits `b_i`,
//! ends with seed `b_i` of each pair. In an extension the roles are reversed: its sender is the
//! base receiver.
//!
//! Both constructions are Naor and Pinkas' idea (SODA 2001): the receiver may own only one of two
//! public keys, because the two must add up to a constant about which no party knows anything.
//!
//! ```text
//! both       C_i = hash(both nonces, i), a uniform element of the group that public keys live in
//! receiver   makes one key pair (sk, pk); sends K_0 = pk        if b_i = 0
//!                                                K_0 = C_i - pk  if b_i = 1
//! sender     K_1 = C_i - K_0; encapsulates to K_0 and to K_1, gets two shared secrets, sends
//!            what the encapsulation produced; seeds = hash(session, i, 0 or 1, shared secret)
//! receiver   opens the one encapsulation that belongs to its key
//! ```
//!
//! * [`mlkem`] (default): public keys of ML-KEM-768 are vectors that look uniform under the
//!   module-LWE assumption, which is exactly what hides `b_i`. Post-quantum.
//! * [`ristretto`]: Diffie-Hellman in a prime-order group; hides `b_i` perfectly, the other message
//!   under CDH.
//!
//! One round: keys one way, encapsulations back.

pub mod mlkem;
pub mod ristretto;

use crate::error::Result;
use crate::setup::Nonce;
use primer_ring::prg::{SEED_BYTES, Seed};
use primer_wire::Channel;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

/// Base transfers per session: the security parameter.
pub const COUNT: usize = 128;

/// Which public-key cryptography the base transfers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BaseOt {
    /// ML-KEM-768, post-quantum.
    #[default]
    MlKem,
    /// Diffie-Hellman over ristretto255, small and fast, not post-quantum.
    Ristretto,
}

/// The sender's seeds.
pub(crate) type Pairs = Zeroizing<Vec<[Seed; 2]>>;
/// The receiver's seeds.
pub(crate) type Chosen = Zeroizing<Vec<Seed>>;
/// A public string that names the session: the hash of all base messages.
pub(crate) type Session = [u8; 32];

/// Sends 128 random transfers; the constants are drawn from this nonce of the sender and from the
/// receiver's.
pub(crate) fn send(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    base: BaseOt,
    nonce: &Nonce,
) -> Result<(Pairs, Session)> {
    match base {
        BaseOt::MlKem => mlkem::send(channel, rng, nonce),
        BaseOt::Ristretto => ristretto::send(channel, rng, nonce),
    }
}

/// Receives 128 random transfers; bit `i` of `choices` chooses in transfer `i`.
pub(crate) fn receive(
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    base: BaseOt,
    nonce: &Nonce,
    choices: &Zeroizing<u128>,
) -> Result<(Chosen, Session)> {
    match base {
        BaseOt::MlKem => mlkem::receive(channel, rng, nonce, choices),
        BaseOt::Ristretto => ristretto::receive(channel, rng, nonce, choices),
    }
}

/// Begins the hash of a constant `C_i`: a function of both nonces, which neither party chose alone.
fn constant_hasher(domain: &str, nonces: [&[u8]; 2], index: usize) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key(domain);
    for nonce in nonces {
        hasher.update(nonce);
    }
    hasher.update(&(index as u64).to_le_bytes());
    hasher
}

/// Hashes the sender's nonce and the base messages into the name of the session.
fn session(domain: &str, nonce: &Nonce, messages: [&[u8]; 2]) -> Session {
    let mut hasher = blake3::Hasher::new_derive_key(domain);
    hasher.update(nonce);
    for message in messages {
        hasher.update(&(message.len() as u64).to_le_bytes());
        hasher.update(message);
    }
    *hasher.finalize().as_bytes()
}

/// Hashes a shared secret into a seed, bound to session, transfer and message.
fn seed(domain: &str, session: &Session, index: usize, message: u8, secret: &[u8]) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key(domain);
    hasher.update(session);
    hasher.update(&(index as u64).to_le_bytes());
    hasher.update(&[message]);
    hasher.update(secret);
    let mut hash = Zeroizing::new([0; 32]);
    hasher.finalize_xof().fill(&mut *hash);
    hasher.zeroize();
    hash[..SEED_BYTES].try_into().expect("a seed is shorter")
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use primer_wire::{NetError, run_pair};

    const NONCE: Nonce = [9; 32];

    fn check(base: BaseOt, choices: u128) {
        let ((pairs, a), (chosen, b)) = run_pair(
            |channel| send(channel, &mut Prg::from_os(), base, &NONCE),
            |channel| {
                let choices = Zeroizing::new(choices);
                receive(channel, &mut Prg::from_os(), base, &NONCE, &choices)
            },
        )
        .unwrap();
        assert_eq!(a, b);
        assert_eq!((pairs.len(), chosen.len()), (COUNT, COUNT));
        for (i, (pair, seed)) in pairs.iter().zip(chosen.iter()).enumerate() {
            let bit = (choices >> i & 1) as usize;
            assert!(pair[bit] == *seed, "transfer {i}");
            assert!(pair[1 - bit] != *seed, "transfer {i}");
        }
    }

    #[test]
    fn the_receiver_gets_the_seed_of_its_choice_only() {
        for base in [BaseOt::MlKem, BaseOt::Ristretto] {
            check(base, 0);
            check(base, u128::MAX);
            check(base, 0x0123_4567_89ab_cdef_f0e1_d2c3_b4a5_9687);
        }
    }

    #[test]
    fn parties_with_different_bases_are_told() {
        let error = run_pair(
            |channel| send(channel, &mut Prg::from_os(), BaseOt::MlKem, &NONCE).map(drop),
            |channel| {
                let (rng, choices) = (&mut Prg::from_os(), Zeroizing::new(1));
                receive(channel, rng, BaseOt::Ristretto, &NONCE, &choices).map(drop)
            },
        )
        .unwrap_err();
        assert!(matches!(
            error,
            crate::OtError::Net(NetError::WrongLength { .. })
        ));
    }
}
