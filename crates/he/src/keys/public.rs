//! The public key: with it the server makes fresh encryptions of zero, one for every answer.

use super::{SecretKey, draw_seed, error, expand};
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_lattice::sample;
use primer_ring::prg::{Prg, Seed};
use rand_core::CryptoRng;
use std::sync::Arc;

/// An encryption of zero, for re-randomising answers.
pub(crate) struct PublicKey {
    pub(crate) params: Arc<Params>,
    pub(crate) seed: Seed,
    pub(crate) b: Poly<Values>,
    pub(crate) a: Poly<Values>,
    /// `⌊x·2^32/q⌋` for each number `x` of both, by which products with them are reduced.
    quotients: [Vec<u32>; 2],
}

impl PublicKey {
    /// The public key of a secret.
    pub(crate) fn generate(secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let params = &secret.params;
        let limbs = params.flood_limbs();
        let seed = draw_seed(rng);
        let a = expand(params, limbs, &mut Prg::new(&seed));
        let b = secret.mask(&a, error(params, limbs, rng));
        Self::with_halves(params, seed, [b, a])
    }

    pub(crate) fn from_parts(params: &Arc<Params>, seed: Seed, b: Poly<Values>) -> Self {
        let a = expand(params, params.flood_limbs(), &mut Prg::new(&seed));
        Self::with_halves(params, seed, [b, a])
    }

    fn with_halves(params: &Arc<Params>, seed: Seed, [b, a]: [Poly<Values>; 2]) -> Self {
        let quotients = [&b, &a].map(|half| {
            let limbs = (0..half.limbs()).map(|i| (params.prime(i), half.limb(i)));
            let quotients =
                limbs.flat_map(|(prime, limb)| limb.iter().map(move |&x| prime.shoup(x).quotient));
            quotients.collect()
        });
        Self {
            params: params.clone(),
            seed,
            b,
            a,
            quotients,
        }
    }

    /// `out = from + u·b` or, for the other half, `u·a`, modulo one prime and by values.
    pub(crate) fn product_onto(
        &self,
        limb: usize,
        half: usize,
        u: &[u32],
        from: &[u32],
        out: &mut [u32],
    ) {
        let params = &self.params;
        let key = [&self.b, &self.a][half].limb(limb);
        let quotients = &self.quotients[half][limb * key.len()..][..key.len()];
        let prime = params.prime(limb);
        elementwise::mul_shoup_onto(params.simd(), prime, out, from, u, key, quotients);
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
        for (key, out) in [(&self.b, c0), (&self.a, c1)] {
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
