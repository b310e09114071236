//! The public key: with it the server makes fresh encryptions of zero, one for every answer.
//!
//! The key is one encryption of zero `(b, a)`. From it, a fresh one is `(b·u, a·u + e)` with a
//! ternary `u` of its own, and an error in the first half too where that half is sent.
//!
//! A client chooses the seed of `a`, and an `a` that vanishes at a point of the transform would
//! leave that point without `u`, which is all that [split answers](crate::split) are hidden by. One
//! seed in 26,000 has such a point. Without rotations a key of such a seed is refused, and none is
//! made.

use super::{SecretKey, draw_seed, error, expand};
use crate::error::HeError;
use crate::params::Params;
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_lattice::sample;
use primer_ring::prg::{Prg, Seed};
use rand_core::CryptoRng;
use std::sync::Arc;

/// An encryption of zero, for re-randomising answers.
pub(crate) struct PublicKey {
    pub(crate) params: Arc<Params>,
    pub(crate) seed: Seed,
    /// `b` and `a`.
    halves: [Poly<Values>; 2],
}

impl PublicKey {
    /// Draws the public key of a secret.
    pub(crate) fn generate(secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let params = &secret.params;
        let limbs = params.flood_limbs();
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

    /// Fails if the uniform half is zero at a point of the transform; keys with rotations, whose
    /// answers are flooded, may be.
    ///
    /// # Errors
    /// [`HeError::VanishingKey`].
    pub(crate) fn check(&self) -> Result<(), HeError> {
        if !self.params.rotates() && self.halves[1].data().contains(&0) {
            return Err(HeError::VanishingKey);
        }
        Ok(())
    }

    /// Returns the key of a seed and of the half that is sent.
    pub(crate) fn from_parts(params: &Arc<Params>, seed: Seed, sent: Poly<Values>) -> Self {
        let a = expand(params, params.flood_limbs(), &mut Prg::new(&seed));
        Self {
            params: params.clone(),
            seed,
            halves: [sent, a],
        }
    }

    /// Returns the half that is sent.
    pub(crate) fn sent(&self) -> &Poly<Values> {
        &self.halves[0]
    }

    /// Returns both halves modulo one prime, by values.
    pub(crate) fn limb(&self, limb: usize) -> [&[u32]; 2] {
        self.halves.each_ref().map(|half| half.limb(limb))
    }

    /// Adds a fresh encryption of zero to a ciphertext given by coefficients.
    pub(crate) fn add_zero(
        &self,
        c0: &mut Poly<Coefficients>,
        c1: &mut Poly<Coefficients>,
        rng: &mut impl CryptoRng,
    ) {
        let params = &self.params;
        let limbs = params.flood_limbs();
        let mut u = Poly::from_small(
            params.basis(),
            limbs,
            &sample::ternary(rng, params.degree()),
        )
        .into_values(params.basis());
        for (key, out) in self.halves.iter().zip([c0, c1]) {
            let mut z = u.copy();
            z.mul_assign(params.basis(), key);
            let mut z = z.into_coefficients(params.basis());
            let mut e = error(params, limbs, rng);
            out.add_assign(params.basis(), &z);
            out.add_assign(params.basis(), &e);
            z.wipe();
            e.wipe();
        }
        u.wipe();
    }
}
