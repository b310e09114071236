//! Keys: the client's secret, and what it publishes to the server.
//!
//! * [`SecretKey`]: a ternary polynomial `s`. Never leaves the client, is wiped when dropped.
//! * [`PublicKey`]: an encryption of zero `(b, a)`, `b = -a·s + e`, or a few of them. The server
//!   re-randomises every answer with them.
//!
//! The uniform halves of all keys are expanded from seeds.

mod public;

pub use public::PublicKey;

use crate::params::Params;
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_lattice::sample;
use primer_ring::prg::{Prg, SEED_BYTES, Seed};
use rand_core::CryptoRng;
use std::sync::Arc;

/// The client's secret.
pub struct SecretKey {
    params: Arc<Params>,
    /// `s` by values, modulo every prime.
    values: Poly<Values>,
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.values.wipe();
    }
}

/// Draws a public seed.
pub fn draw_seed(rng: &mut impl CryptoRng) -> Seed {
    let mut seed = [0; SEED_BYTES];
    rng.fill_bytes(&mut seed);
    seed
}

/// Expands the uniform polynomial of a public seed.
pub fn expand(params: &Params, limbs: usize, prg: &mut Prg) -> Poly<Values> {
    let mut a = Poly::zero(params.basis(), limbs);
    for i in 0..limbs {
        sample::expand(params.prime(i), prg, a.limb_mut(i));
    }
    a
}

/// Draws a fresh error.
pub fn error(params: &Params, limbs: usize, rng: &mut impl CryptoRng) -> Poly<Coefficients> {
    Poly::from_small(params.basis(), limbs, &sample::error(rng, params.degree()))
}

impl SecretKey {
    /// Draws a fresh secret.
    pub fn generate(params: &Arc<Params>, rng: &mut impl CryptoRng) -> Self {
        let small = sample::ternary(rng, params.degree());
        let values = Poly::from_small(params.basis(), params.all_primes(), &small)
            .into_values(params.basis());
        Self {
            params: params.clone(),
            values,
        }
    }

    /// Returns the parameters that the key belongs to.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Returns `s` by values, modulo every prime.
    pub fn values(&self) -> &Poly<Values> {
        &self.values
    }

    /// Returns `-a·s + e` for a uniform `a`, by values.
    pub fn mask(&self, a: &Poly<Values>, e: Poly<Coefficients>) -> Poly<Values> {
        let mut product = a.copy();
        product.mul_assign(self.params.basis(), &self.values);
        product.negate(self.params.basis());
        let mut e = e.into_values(self.params.basis());
        product.add_assign(self.params.basis(), &e);
        e.wipe();
        product
    }
}
