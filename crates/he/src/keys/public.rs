//! The public key: with it the server makes fresh encryptions of zero, one for every answer.
//!
//! The key is one encryption of zero `(b, a)`, or several with uniform halves `a_1, a_2, …` of
//! their own. From each, a fresh one is `(b_i·u, a_i·u + e_i)`. With several keys the same ternary
//! `u` serves as many answers: `a_1·u + e_1, a_2·u + e_2, …` are samples of ring LWE with one
//! secret and different uniform factors, as a client's queries are, so all of them are pseudorandom
//! together. A `u` never meets the same `a_i` twice.
//!
//! A client chooses the seed of the `a_i`, and an `a` that vanishes at a point of the transform
//! would leave that point without `u`, which is all that [split answers](crate::subring::split) are
//! hidden by. One seed in 26,000 has such a point. Without rotations a key of such a seed is
//! refused, and none is made.

use super::{SecretKey, draw_seed, error, expand};
use crate::error::HeError;
use crate::params::Params;
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_lattice::sample;
use primer_ring::prg::{Prg, Seed};
use rand_core::CryptoRng;
use std::sync::Arc;

/// Encryptions of zero, for re-randomising answers: as many as the parameters say.
pub(crate) struct PublicKey {
    pub(crate) params: Arc<Params>,
    pub(crate) seed: Seed,
    zeros: Vec<Zero>,
}

/// One encryption of zero.
struct Zero {
    /// `b` and `a`.
    halves: [Poly<Values>; 2],
}

impl PublicKey {
    /// The public key of a secret.
    pub(crate) fn generate(secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let params = &secret.params;
        let limbs = params.flood_limbs();
        loop {
            let seed = draw_seed(rng);
            let mut prg = Prg::new(&seed);
            let zeros = (0..params.zeros()).map(|_| {
                let a = expand(params, limbs, &mut prg);
                let b = secret.mask(&a, error(params, limbs, rng));
                Zero { halves: [b, a] }
            });
            let key = Self {
                params: params.clone(),
                seed,
                zeros: zeros.collect(),
            };
            if key.check().is_ok() {
                return key;
            }
        }
    }

    /// Fails if a uniform half is zero at a point of the transform; keys with rotations, whose
    /// answers are flooded, may be.
    ///
    /// # Errors
    /// [`HeError::VanishingKey`].
    pub(crate) fn check(&self) -> Result<(), HeError> {
        let mut halves = self.zeros.iter().map(|zero| zero.halves[1].data());
        if !self.params.rotates() && halves.any(|a| a.contains(&0)) {
            return Err(HeError::VanishingKey);
        }
        Ok(())
    }

    /// The key of a seed and of the halves that are sent, one for each encryption of zero.
    pub(crate) fn from_parts(params: &Arc<Params>, seed: Seed, sent: Vec<Poly<Values>>) -> Self {
        let mut prg = Prg::new(&seed);
        let zeros = sent.into_iter().map(|b| {
            let a = expand(params, params.flood_limbs(), &mut prg);
            Zero { halves: [b, a] }
        });
        Self {
            params: params.clone(),
            seed,
            zeros: zeros.collect(),
        }
    }

    /// The halves that are sent.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Poly<Values>> {
        self.zeros.iter().map(|zero| &zero.halves[0])
    }

    /// Both halves of one of the encryptions of zero, modulo one prime and by values.
    pub(crate) fn zero(&self, zero: usize, limb: usize) -> [&[u32]; 2] {
        self.zeros[zero]
            .halves
            .each_ref()
            .map(|half| half.limb(limb))
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
        for (key, out) in self.zeros[0].halves.iter().zip([c0, c1]) {
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
