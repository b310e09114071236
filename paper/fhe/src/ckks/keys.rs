//! Keys: the client's secret, and what lets the server multiply and rotate.
//!
//! A [`SwitchKey`] holds, for every digit `i`, an encryption of `P·δ_i·m` under a secret `t`: `P`
//! is the product of the key-switching primes, `δ_i` is 1 modulo the digit's primes and 0 modulo
//! the other data primes. For products `m = s²` and `t = s`. For the rotation `σ`, `m = s` and `t =
//! σ^-1(s)`, so that the automorphism comes last and all rotations of one ciphertext share their
//! digits (as in `primer-paper-he`). Numbers are kept in Montgomery form throughout; the uniform
//! halves are expanded from a seed.

use super::params::Params;
use primer_lattice::automorphism::{Automorphism, rotation};
use primer_lattice::kernel::aligned::Aligned;
use primer_lattice::kernel::elementwise;
use primer_lattice::kernel::inner::{interleave, key_index};
use primer_lattice::sample;
use primer_ring::prg::{Prg, SEED_BYTES, Seed};
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The client's secret.
pub struct SecretKey {
    params: Arc<Params>,
    /// By values, modulo every prime.
    values: Zeroizing<Vec<u32>>,
}

/// Returns small coefficients by values modulo a number of primes.
pub(super) fn small_values(params: &Params, small: &[i8], primes: usize) -> Zeroizing<Vec<u32>> {
    let n = params.degree();
    let mut values = Zeroizing::new(vec![0; primes * n]);
    for (i, limb) in values.chunks_exact_mut(n).enumerate() {
        elementwise::from_small(params.simd(), params.prime(i), limb, small);
        params.ntt(i).forward(limb);
    }
    values
}

/// Draws a fresh seed.
pub(super) fn draw_seed(rng: &mut impl CryptoRng) -> Seed {
    let mut seed = [0; SEED_BYTES];
    rng.fill_bytes(&mut seed);
    seed
}

impl SecretKey {
    /// Draws a fresh secret: uniform ternary.
    pub fn generate(params: &Arc<Params>, rng: &mut impl CryptoRng) -> Self {
        let small = sample::ternary(rng, params.degree());
        Self {
            params: params.clone(),
            values: small_values(params, &small, params.all()),
        }
    }

    /// Returns the parameters that the key belongs to.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    pub(super) fn limb(&self, i: usize) -> &[u32] {
        let n = self.params.degree();
        &self.values[i * n..][..n]
    }

    /// Makes the key that brings products back to two halves.
    pub fn product_key(&self, rng: &mut impl CryptoRng) -> SwitchKey {
        let params = &*self.params;
        let mut square = Zeroizing::new(self.values.to_vec());
        for (i, limb) in square.chunks_exact_mut(params.degree()).enumerate() {
            elementwise::mul_assign(params.simd(), params.prime(i), limb, self.limb(i));
        }
        self.switch_key(&square, &self.values, rng)
    }

    /// Makes the key of a rotation to the left.
    pub fn rotation_key(&self, steps: i32, rng: &mut impl CryptoRng) -> SwitchKey {
        let params = &*self.params;
        let n = params.degree();
        let back = Automorphism::new(n, rotation(n, -steps));
        let mut image = Zeroizing::new(vec![0; self.values.len()]);
        for (out, limb) in image.chunks_exact_mut(n).zip(self.values.chunks_exact(n)) {
            back.apply(params.simd(), limb, out);
        }
        self.switch_key(&self.values, &image, rng)
    }

    fn switch_key(&self, message: &[u32], secret: &[u32], rng: &mut impl CryptoRng) -> SwitchKey {
        let params = &*self.params;
        let (n, simd) = (params.degree(), params.simd());
        let seed = draw_seed(rng);
        let a = expand(params, &seed);
        let mut b = vec![0; a.len()];
        for digit in 0..params.digits() {
            let own = digit * params.special()..(digit + 1) * params.special();
            let error = sample::error(rng, n);
            let error = small_values(params, &error, params.all());
            for i in 0..params.all() {
                let prime = params.prime(i);
                let at = (i * params.digits() + digit) * n;
                let out = &mut b[at..at + n];
                out.copy_from_slice(&error[i * n..][..n]);
                if own.contains(&i) && i < params.data() {
                    let factor = (params.data()..params.all()).fold(1, |acc, j| {
                        prime.mul(acc, params.prime(j).value() % prime.value())
                    });
                    let mut part = Zeroizing::new(message[i * n..][..n].to_vec());
                    elementwise::scale(simd, prime, &mut part, prime.shoup(factor));
                    elementwise::add_assign(simd, prime, out, &part);
                }
                // b = 2^32·(e + P·δ·m) - a·t, with a stored for 2^32 times the uniform half.
                let unit = prime.shoup(prime.neg(prime.to_montgomery(1)));
                elementwise::scale(simd, prime, out, unit);
                elementwise::mul_add(simd, prime, out, &a[at..at + n], &secret[i * n..][..n]);
                elementwise::negate(simd, prime, out);
            }
        }
        SwitchKey::from_parts(params, seed, &b, &a)
    }
}

/// Expands the uniform half of a key, by prime, by digit.
fn expand(params: &Params, seed: &Seed) -> Vec<u32> {
    let mut prg = Prg::new(seed);
    let len = params.digits() * params.degree();
    let mut a = vec![0; params.all() * len];
    for (i, chunk) in a.chunks_exact_mut(len).enumerate() {
        sample::expand(params.prime(i), &mut prg, chunk);
    }
    a
}

/// A key for key switching.
pub struct SwitchKey {
    seed: Seed,
    /// For each prime, both halves of all digits as [`primer_lattice::kernel::inner`] reads them.
    interleaved: Aligned,
}

impl SwitchKey {
    /// Returns how many numbers one half has: by prime, by digit, by position.
    pub fn len(params: &Params) -> usize {
        params.all() * params.digits() * params.degree()
    }

    /// Returns the bytes of a key in memory.
    pub fn memory(params: &Params) -> usize {
        8 * Self::len(params)
    }

    fn from_parts(params: &Params, seed: Seed, b: &[u32], a: &[u32]) -> Self {
        let interleaved = interleave(params.degree(), params.digits(), [b, a]);
        Self { seed, interleaved }
    }

    /// Makes a key from what is sent of it: its seed and the half that is not uniform.
    ///
    /// # Panics
    /// If the half does not have [`Self::len`] numbers.
    pub fn receive(params: &Params, seed: Seed, b: &[u32]) -> Self {
        assert_eq!(b.len(), Self::len(params));
        Self::from_parts(params, seed, b, &expand(params, &seed))
    }

    /// Returns what is sent of the key besides its seed: by prime, by digit.
    pub fn sent<'a>(&'a self, params: &'a Params) -> impl Iterator<Item = Vec<u32>> + 'a {
        let digits = params.digits();
        (0..params.all() * digits).map(move |limb| {
            let key = self.modulo(params, limb / digits);
            let at = |i| key[key_index(digits, limb % digits, 0, i)];
            (0..params.degree()).map(at).collect()
        })
    }

    /// Returns the seed of the uniform half.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    pub(super) fn modulo(&self, params: &Params, prime: usize) -> &[u32] {
        let len = 2 * params.digits() * params.degree();
        &self.interleaved.get(2 * Self::len(params))[prime * len..][..len]
    }
}

/// All that the server computes with.
pub struct EvaluationKeys {
    pub(super) params: Arc<Params>,
    pub(super) product: SwitchKey,
    pub(super) rotations: BTreeMap<i32, (SwitchKey, Automorphism)>,
}

impl EvaluationKeys {
    /// Collects keys from their parts.
    pub fn new(
        params: &Arc<Params>,
        product: SwitchKey,
        rotations: impl IntoIterator<Item = (i32, SwitchKey)>,
    ) -> Self {
        let n = params.degree();
        let map = |steps| Automorphism::new(n, rotation(n, steps));
        Self {
            params: params.clone(),
            product,
            rotations: (rotations.into_iter())
                .map(|(steps, key)| (steps, (key, map(steps))))
                .collect(),
        }
    }

    /// Generates the keys for the given rotations.
    pub fn generate(secret: &SecretKey, rotations: &[i32], rng: &mut impl CryptoRng) -> Self {
        let product = secret.product_key(rng);
        let rotations: Vec<_> = (rotations.iter())
            .map(|&steps| (steps, secret.rotation_key(steps, rng)))
            .collect();
        Self::new(&secret.params, product, rotations)
    }
}
