//! Single operations of the scheme on vectors of slots.
//!
//! Products never use them one at a time. They are here to be measured, and to be compared with
//! what another library means by the same words.

use crate::ciphertext::{Ciphertext, encrypt_slots};
use crate::error::HeError;
use crate::keys::GaloisKeys;
use crate::params::Params;
use crate::switch::Rotator;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::keys::SecretKey;
use rand_core::CryptoRng;
use std::sync::Arc;

/// A secret, and the keys of some rotations.
pub struct Primitives {
    secret: SecretKey,
    keys: GaloisKeys,
}

/// A fresh ciphertext: one half, and the seed of the other.
pub struct Fresh(SeededCiphertext);

/// A ciphertext.
pub struct Sealed(Ciphertext);

/// Rotates ciphertexts, with the memory for it.
pub struct Rotations<'a>(Rotator<'a>);

impl Primitives {
    /// Draws fresh keys.
    pub fn new(
        params: &Arc<Params>,
        rotations: impl IntoIterator<Item = i32>,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let secret = SecretKey::generate(params, rng);
        Self {
            keys: GaloisKeys::generate(&secret, rotations, rng),
            secret,
        }
    }

    /// Encrypts one residue modulo p for each slot.
    ///
    /// # Panics
    /// If there are not as many as slots.
    pub fn encrypt(&self, slots: &[u64], rng: &mut impl CryptoRng) -> Fresh {
        Fresh(encrypt_slots(&self.secret, slots, rng))
    }

    /// Expands a fresh ciphertext to both halves.
    pub fn expand(&self, fresh: &Fresh) -> Sealed {
        Sealed(Ciphertext::of(&fresh.0, self.secret.params()))
    }

    /// Returns what rotates ciphertexts.
    pub fn rotations(&self) -> Rotations<'_> {
        Rotations(Rotator::new(&self.keys))
    }

    /// Decrypts to slots.
    ///
    /// # Errors
    /// None that ciphertexts of these keys could cause.
    pub fn decrypt(&self, sealed: &Sealed) -> Result<Vec<u64>, HeError> {
        sealed.0.decrypt_slots(&self.secret)
    }

    /// Makes a key for a rotation and drops it: to be measured.
    pub fn make_key(&self, steps: i32, rng: &mut impl CryptoRng) {
        GaloisKeys::generate(&self.secret, [steps], rng);
    }
}

impl Rotations<'_> {
    /// Rotates both rows of slots to the left.
    ///
    /// # Errors
    /// If there is no key for the rotation.
    pub fn rotate(&mut self, sealed: &Sealed, steps: i32) -> Result<Sealed, HeError> {
        Ok(Sealed(self.0.rotate(&sealed.0, steps)?))
    }
}
