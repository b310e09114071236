//! The public key: with it the server makes fresh encryptions of zero, one for every answer.
//!
//! The key is one encryption of zero `(b, a)`. From it, a fresh one is `(b·u, a·u + e)` with a
//! ternary `u` of its own, and an error in the first half too where that half is sent.
//!
//! A client chooses the seed of `a`, and an `a` that vanishes at a point of the transform would
//! leave that point without `u`, which is all that split answers (`crate::split`) are hidden by.
//! One seed in 26,000 has such a point. A key of such a seed is refused, and none is made.

use super::{SecretKey, draw_seed, error, expand};
use crate::error::HeError;
use crate::params::Params;
use primer_lattice::poly::{Poly, Values};
use primer_ring::prg::{Prg, Seed};
use rand_core::CryptoRng;
use std::sync::Arc;

/// An encryption of zero, for re-randomising answers.
pub struct PublicKey {
    /// The parameters that the key belongs to.
    pub params: Arc<Params>,
    /// The seed of `a`.
    pub(crate) seed: Seed,
    /// `b` and `a`.
    halves: [Poly<Values>; 2],
}

impl PublicKey {
    /// Draws the public key of a secret.
    pub fn generate(secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let params = &secret.params;
        let limbs = params.public_primes();
        loop {
            let seed = draw_seed(rng);
            let a = expand(params, limbs, &mut Prg::new(&seed));
            let b = secret.mask(&a, error(params, limbs, rng));
            let key = Self {
                params: params.clone(),
                seed,
                halves: [b, a],
            };
            if key.check().is_ok() {
                return key;
            }
        }
    }

    /// Checks that the uniform half is zero at no point of the transform.
    ///
    /// # Errors
    /// [`HeError::VanishingKey`].
    pub(crate) fn check(&self) -> Result<(), HeError> {
        if self.halves[1].data().contains(&0) {
            return Err(HeError::VanishingKey);
        }
        Ok(())
    }

    /// Returns the key of a seed and of the half that is sent.
    pub(crate) fn from_parts(params: &Arc<Params>, seed: Seed, sent: Poly<Values>) -> Self {
        let a = expand(params, params.public_primes(), &mut Prg::new(&seed));
        Self {
            params: params.clone(),
            seed,
            halves: [sent, a],
        }
    }

    /// Returns `b`, which is sent, and `a`.
    pub fn halves(&self) -> &[Poly<Values>; 2] {
        &self.halves
    }

    /// Returns both halves modulo one prime, by values.
    pub(crate) fn limb(&self, limb: usize) -> [&[u32]; 2] {
        self.halves.each_ref().map(|half| half.limb(limb))
    }
}
