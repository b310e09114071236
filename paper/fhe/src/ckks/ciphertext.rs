//! Ciphertexts: encryption with the secret key, decryption.

use super::keys::{SecretKey, draw_seed, small_values};
use super::params::{BASE, Params};
use primer_lattice::kernel::elementwise;
use primer_lattice::sample;
use primer_ring::prg::{Prg, Seed};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// An encrypted vector.
pub struct Ciphertext {
    pub(super) level: usize,
    /// By values, `level + 2` limbs each.
    pub(super) halves: [Vec<u32>; 2],
}

/// Encodes a vector by values modulo the primes of a level.
pub(super) fn encode(params: &Params, values: &[f64], level: usize, scale: f64) -> Vec<u32> {
    let n = params.degree();
    let coefficients = Zeroizing::new(params.embedding().encode(values, scale));
    let mut out = vec![0; (level + BASE) * n];
    for (i, limb) in out.chunks_exact_mut(n).enumerate() {
        let prime = params.prime(i);
        elementwise::lift(params.simd(), prime, limb, &coefficients, prime.shoup(1));
        params.ntt(i).forward(limb);
    }
    out
}

/// A fresh ciphertext as it travels: its uniform half is a seed.
pub struct Fresh {
    level: usize,
    seed: Seed,
    half: Vec<u32>,
}

fn uniform(params: &Params, seed: &Seed, limbs: usize) -> Vec<u32> {
    let n = params.degree();
    let mut prg = Prg::new(seed);
    let mut a = vec![0; limbs * n];
    for (i, limb) in a.chunks_exact_mut(n).enumerate() {
        sample::expand(params.prime(i), &mut prg, limb);
    }
    a
}

impl Fresh {
    /// Encrypts a vector at a level.
    ///
    /// # Panics
    /// If there are not as many numbers as slots.
    pub fn encrypt(
        secret: &SecretKey,
        values: &[f64],
        level: usize,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let params = &**secret.params();
        let (n, simd) = (params.degree(), params.simd());
        let seed = draw_seed(rng);
        let mut half = uniform(params, &seed, level + BASE);
        let message = Zeroizing::new(encode(params, values, level, params.scale(level)));
        let error = small_values(params, &sample::error(rng, n), level + BASE);
        for (i, limb) in half.chunks_exact_mut(n).enumerate() {
            let prime = params.prime(i);
            elementwise::mul_assign(simd, prime, limb, secret.limb(i));
            elementwise::negate(simd, prime, limb);
            elementwise::add_assign(simd, prime, limb, &error[i * n..][..n]);
            elementwise::add_assign(simd, prime, limb, &message[i * n..][..n]);
        }
        Self { level, seed, half }
    }

    /// Makes a ciphertext from what was sent of it.
    ///
    /// # Panics
    /// If the half is not that of a ciphertext at this level.
    pub fn receive(params: &Params, level: usize, seed: Seed, half: Vec<u32>) -> Self {
        assert_eq!(half.len(), (level + BASE) * params.degree());
        Self { level, seed, half }
    }

    /// Returns the seed of the uniform half.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Returns the other half, by values, limb by limb.
    pub fn half(&self) -> &[u32] {
        &self.half
    }

    /// Expands both halves.
    pub fn expand(self, params: &Params) -> Ciphertext {
        let a = uniform(params, &self.seed, self.level + BASE);
        Ciphertext {
            level: self.level,
            halves: [self.half, a],
        }
    }
}

impl Ciphertext {
    /// Returns its level: the number of products that it still allows, one after the other.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Returns what an answer consists of: both halves modulo the primes of level 0.
    pub fn answer<'a>(&'a self, params: &Params) -> [&'a [u32]; 2] {
        let len = BASE * params.degree();
        [&self.halves[0][..len], &self.halves[1][..len]]
    }

    /// Makes a ciphertext of level 0 from an answer.
    ///
    /// # Panics
    /// If a half has another length.
    pub fn from_answer(params: &Params, halves: [Vec<u32>; 2]) -> Self {
        assert!(halves.iter().all(|h| h.len() == BASE * params.degree()));
        Self { level: 0, halves }
    }

    /// Decrypts the vector.
    pub fn decrypt(&self, secret: &SecretKey) -> Vec<f64> {
        let params = &**secret.params();
        let (n, simd) = (params.degree(), params.simd());
        let mut phase = Zeroizing::new(self.halves[1][..BASE * n].to_vec());
        for (i, limb) in phase.chunks_exact_mut(n).enumerate() {
            let prime = params.prime(i);
            elementwise::mul_assign(simd, prime, limb, secret.limb(i));
            elementwise::add_assign(simd, prime, limb, &self.halves[0][i * n..][..n]);
            params.ntt(i).inverse(limb);
        }
        let (p, q) = (params.prime(0), params.prime(1));
        let modulus = u64::from(p.value()) * u64::from(q.value());
        let inverse = q.shoup(q.invert(p.value() % q.value()));
        let (first, second) = phase.split_at(n);
        let coefficients: Zeroizing<Vec<i64>> = (first.iter().zip(second))
            .map(|(&x, &y)| {
                // Garner, then the number of least absolute value.
                let step = q.mul_shoup(q.sub(y, q.reduce60(x.into())), inverse);
                let number = u64::from(x) + u64::from(p.value()) * u64::from(step);
                number as i64
                    - (modulus & 0u64.wrapping_sub(u64::from(number > modulus / 2))) as i64
            })
            .collect::<Vec<_>>()
            .into();
        params
            .embedding()
            .decode(&coefficients, params.scale(self.level))
    }
}
