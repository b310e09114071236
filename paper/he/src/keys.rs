//! Rotation keys, in the order in which they are used: for each rotation `σ`, what turns a
//! ciphertext under `σ(s)` into one under `s`.
//!
//! Key switching sums products of digits `d_i` of `c1` (its residues modulo each data prime) with
//! encryptions of `P·δ_i·σ(s)` under `s`, where `P` is the key-switching prime and `δ_i` is 1
//! modulo prime `i` and 0 modulo the others. Many rotations of one ciphertext share their digits
//! (hoisting) if the automorphism comes last: `Σ σ(d_i)·k_i = σ(Σ d_i·σ^-1(k_i))`. So keys are made
//! and sent as `σ^-1(k_i)`: encryptions of `P·δ_i·s` under `σ^-1(s)`. They are also kept in
//! Montgomery form, everywhere, which costs the client one multiplication and the server none.

use crate::error::HeError;
use crate::params::{Params, row};
use primer_lattice::automorphism::{Automorphism, rotation};
use primer_lattice::kernel::aligned::Aligned;
use primer_lattice::kernel::elementwise;
use primer_lattice::kernel::inner::{interleave, key_index};
use primer_lattice::poly::{Poly, Values};
use primer_lattice::sample;
use primer_ring::prg::{Prg, Seed};
use primer_rlwe::keys::{SecretKey, draw_seed, error};
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The key of one rotation.
pub(crate) struct GaloisKey {
    /// The seed of the uniform halves.
    pub(crate) seed: Seed,
    /// For each prime, both halves of all digits as [`primer_lattice::kernel::inner`] reads them.
    interleaved: Aligned,
    pub(crate) map: Automorphism,
}

impl GaloisKey {
    /// Counts the numbers of one half of a key.
    pub(crate) fn len(params: &Params) -> usize {
        params.data_primes() * params.all_primes() * params.degree()
    }

    /// Returns the key modulo one prime, interleaved.
    pub(crate) fn modulo(&self, params: &Params, prime: usize) -> &[u32] {
        let len = 2 * params.data_primes() * params.degree();
        &self.interleaved.get(2 * Self::len(params))[prime * len..][..len]
    }

    /// Returns the half that travels, `[prime][digit][N]`.
    pub(crate) fn sent(&self, params: &Params) -> impl Iterator<Item = Vec<u32>> {
        let (n, data) = (params.degree(), params.data_primes());
        (0..params.all_primes()).flat_map(move |j| {
            (0..data).map(move |digit| {
                let key = self.modulo(params, j);
                (0..n).map(|i| key[key_index(data, digit, 0, i)]).collect()
            })
        })
    }

    fn generate(secret: &SecretKey, steps: i32, rng: &mut impl CryptoRng) -> Self {
        let params = &**secret.params();
        let (n, data, all) = (params.degree(), params.data_primes(), params.all_primes());
        // σ^-1(s) encrypts.
        let back = Automorphism::new(n, rotation(n, -steps));
        let mut image = Poly::<Values>::zero(params.basis(), all);
        for j in 0..all {
            back.apply(params.simd(), secret.values().limb(j), image.limb_mut(j));
        }
        let seed = draw_seed(rng);
        let a = Self::expand(params, &seed);
        let mut b = vec![0; Self::len(params)];
        let special = params.prime(data).value();
        for digit in 0..data {
            let mut e = error(params, all, rng).into_values(params.basis());
            for j in 0..all {
                let prime = params.prime(j);
                let at = (j * data + digit) * n;
                let out = &mut b[at..at + n];
                // b = -a·σ^-1(s) + e + [digit is this prime]·P·s, with a = stored·2^-32.
                out.copy_from_slice(e.limb(j));
                if digit == j {
                    let factor = prime.shoup(special % prime.value());
                    let mut message = secret.values().limb(j).to_vec();
                    elementwise::scale(params.simd(), prime, &mut message, factor);
                    elementwise::add_assign(params.simd(), prime, out, &message);
                    zeroize::Zeroize::zeroize(&mut message);
                }
                let unit = prime.shoup(prime.to_montgomery(1));
                elementwise::scale(params.simd(), prime, out, unit);
                elementwise::negate(params.simd(), prime, out);
                elementwise::mul_add(params.simd(), prime, out, &a[at..at + n], image.limb(j));
                elementwise::negate(params.simd(), prime, out);
            }
            e.wipe();
        }
        image.wipe();
        Self::from_parts(params, steps, seed, &b, &a)
    }

    fn from_parts(params: &Params, steps: i32, seed: Seed, b: &[u32], a: &[u32]) -> Self {
        let (n, data) = (params.degree(), params.data_primes());
        let interleaved = interleave(n, data, [b, a]);
        Self {
            seed,
            interleaved,
            map: Automorphism::new(n, rotation(n, steps)),
        }
    }

    /// Returns a key from what is sent of it.
    pub(crate) fn receive(params: &Params, steps: i32, seed: Seed, b: &[u32]) -> Self {
        assert_eq!(b.len(), Self::len(params));
        let a = Self::expand(params, &seed);
        Self::from_parts(params, steps, seed, b, &a)
    }

    fn expand(params: &Params, seed: &Seed) -> Vec<u32> {
        let mut prg = Prg::new(seed);
        let mut a = vec![0; Self::len(params)];
        let len = params.data_primes() * params.degree();
        for (j, chunk) in a.chunks_exact_mut(len).enumerate() {
            sample::expand(params.prime(j), &mut prg, chunk);
        }
        a
    }
}

/// The keys of a set of rotations.
pub(crate) struct GaloisKeys {
    pub(crate) params: Arc<Params>,
    pub(crate) keys: BTreeMap<i32, GaloisKey>,
}

impl GaloisKeys {
    /// Makes keys for the given rotations (slots to the left; zero needs none).
    pub(crate) fn generate(
        secret: &SecretKey,
        rotations: impl IntoIterator<Item = i32>,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let row = row(secret.params()) as i32;
        let mut keys = BTreeMap::new();
        for steps in rotations
            .into_iter()
            .map(|r| centre(r, row))
            .filter(|&r| r != 0)
        {
            keys.entry(steps)
                .or_insert_with(|| GaloisKey::generate(secret, steps, rng));
        }
        Self {
            params: secret.params().clone(),
            keys,
        }
    }

    /// Returns no keys.
    pub(crate) fn none(params: &Arc<Params>) -> Self {
        Self {
            params: params.clone(),
            keys: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, steps: i32) -> Result<&GaloisKey, HeError> {
        let steps = centre(steps, row(&self.params) as i32);
        self.keys.get(&steps).ok_or(HeError::MissingKey { steps })
    }
}

/// Returns a rotation as a number in `[-row/2, row/2)`: one name for each key.
pub(crate) fn centre(steps: i32, row: i32) -> i32 {
    (steps + row / 2).rem_euclid(row) - row / 2
}
