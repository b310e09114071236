//! Keys: the client's secret, and what it publishes to the server.
//!
//! * [`SecretKey`]: a ternary polynomial `s`. Never leaves the client, is wiped when dropped.
//! * [`PublicKey`]: one encryption of zero `(b, a)`, `b = -a·s + e`, at the primes at which answers are
//!   flooded. The server re-randomises every answer with it.
//! * [`GaloisKeys`]: for each rotation `σ`, what turns a ciphertext under `σ(s)` into one under `s`.
//!
//! # Galois keys in the order in which they are used
//! Key switching sums products of digits `d_i` of `c1` (its residues modulo each data prime) with
//! encryptions of `P·δ_i·σ(s)` under `s`, where `P` is the key-switching prime and `δ_i` is 1 modulo
//! prime `i` and 0 modulo the others. Many rotations of one ciphertext share their digits
//! (hoisting) if the automorphism comes last: `Σ σ(d_i)·k_i = σ(Σ d_i·σ^-1(k_i))`. So keys are made
//! and sent as `σ^-1(k_i)`: encryptions of `P·δ_i·s` under `σ^-1(s)`. They are also kept in Montgomery
//! form, everywhere, which costs the client one multiplication and the server none.
//!
//! The uniform halves of all keys are expanded from seeds.

use crate::ciphertext::Ciphertext;
use crate::error::HeError;
use crate::kernel::aligned::Aligned;
use crate::kernel::elementwise;
use crate::kernel::inner::{interleave, key_index};
use crate::kernel::permute::Automorphism;
use crate::params::Params;
use crate::poly::{Coefficients, Poly, Values};
use crate::sample;
use crate::slots::Slots;
use primer_ring::prg::{Prg, SEED_BYTES, Seed};
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

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

pub(crate) fn draw_seed(rng: &mut impl CryptoRng) -> Seed {
    let mut seed = [0; SEED_BYTES];
    rng.fill_bytes(&mut seed);
    seed
}

/// The uniform polynomial of a public seed.
pub(crate) fn expand(params: &Params, limbs: usize, prg: &mut Prg) -> Poly<Values> {
    let mut a = Poly::zero(params, limbs);
    for i in 0..limbs {
        sample::expand(params.prime(i), prg, a.limb_mut(i));
    }
    a
}

/// Fresh error.
pub(crate) fn error(params: &Params, limbs: usize, rng: &mut impl CryptoRng) -> Poly<Coefficients> {
    Poly::from_small(params, limbs, &sample::error(rng, params.degree()))
}

impl SecretKey {
    /// A fresh secret.
    pub fn generate(params: &Arc<Params>, rng: &mut impl CryptoRng) -> Self {
        let small = sample::ternary(rng, params.degree());
        let values = Poly::from_small(params, params.all_primes(), &small).into_values(params);
        Self {
            params: params.clone(),
            values,
        }
    }

    /// The parameters that the key belongs to.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    pub(crate) fn values(&self) -> &Poly<Values> {
        &self.values
    }

    /// `-a·s + e` for a uniform `a`, by values.
    pub(crate) fn mask(&self, a: &Poly<Values>, e: Poly<Coefficients>) -> Poly<Values> {
        let mut product = a.copy();
        product.mul_assign(&self.params, &self.values);
        product.negate(&self.params);
        let mut e = e.into_values(&self.params);
        product.add_assign(&self.params, &e);
        e.wipe();
        product
    }
}

/// An encryption of zero, for re-randomising answers.
pub struct PublicKey {
    pub(crate) params: Arc<Params>,
    pub(crate) seed: Seed,
    pub(crate) b: Poly<Values>,
    pub(crate) a: Poly<Values>,
}

impl PublicKey {
    /// The public key of a secret.
    pub fn generate(secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let params = &secret.params;
        let limbs = params.flood_limbs();
        let seed = draw_seed(rng);
        let a = expand(params, limbs, &mut Prg::new(&seed));
        let b = secret.mask(&a, error(params, limbs, rng));
        Self {
            params: params.clone(),
            seed,
            b,
            a,
        }
    }

    pub(crate) fn from_parts(params: &Arc<Params>, seed: Seed, b: Poly<Values>) -> Self {
        Self {
            params: params.clone(),
            seed,
            a: expand(params, params.flood_limbs(), &mut Prg::new(&seed)),
            b,
        }
    }

    /// The parameters that the key belongs to.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Encrypts slot values without the secret, at the primes of this key.
    ///
    /// # Panics
    /// If there are not as many as slots.
    pub fn encrypt_slots(&self, slots: &[u64], rng: &mut impl CryptoRng) -> Ciphertext {
        let params = &self.params;
        let limbs = params.flood_limbs();
        let mut plain = Zeroizing::new(vec![0; params.degree()]);
        params.slots().encode(slots, &mut plain);
        let mut halves = [Poly::zero(params, limbs), Poly::zero(params, limbs)];
        let [c0, c1] = &mut halves;
        self.add_zero(c0, c1, rng);
        params.add_plaintext(limbs, &plain, c0.data_mut());
        Ciphertext {
            halves: halves.map(|half| half.into_values(params)),
        }
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
        let mut u = Poly::from_small(params, limbs, &sample::ternary(rng, params.degree()))
            .into_values(params);
        for (key, out) in [(&self.b, c0), (&self.a, c1)] {
            let mut z = u.copy();
            z.mul_assign(params, key);
            let mut z = z.into_coefficients(params);
            let mut e = error(params, limbs, rng);
            out.add_assign(params, &z);
            out.add_assign(params, &e);
            z.wipe();
            e.wipe();
        }
        u.wipe();
    }
}

/// The key of one rotation.
pub struct GaloisKey {
    /// The seed of the uniform halves.
    pub(crate) seed: Seed,
    /// For each prime, both halves of all digits as [`crate::kernel::inner`] reads them.
    interleaved: Aligned,
    pub(crate) map: Automorphism,
}

impl GaloisKey {
    /// Numbers of one half of a key.
    pub(crate) fn len(params: &Params) -> usize {
        params.data_primes() * params.all_primes() * params.degree()
    }

    /// The key modulo one prime, interleaved.
    pub(crate) fn modulo(&self, params: &Params, prime: usize) -> &[u32] {
        let len = 2 * params.data_primes() * params.degree();
        &self.interleaved.get(2 * Self::len(params))[prime * len..][..len]
    }

    /// The half that travels, `[prime][digit][N]`.
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
        let params = &*secret.params;
        let (n, data, all) = (params.degree(), params.data_primes(), params.all_primes());
        // σ^-1(s) encrypts.
        let back = Automorphism::new(n, Slots::rotation(n, -steps));
        let mut image = Poly::<Values>::zero(params, all);
        for j in 0..all {
            back.apply(params.simd(), secret.values.limb(j), image.limb_mut(j));
        }
        let seed = draw_seed(rng);
        let a = Self::expand(params, &seed);
        let mut b = vec![0; Self::len(params)];
        let special = params.prime(data).value();
        for digit in 0..data {
            let mut e = error(params, all, rng).into_values(params);
            for j in 0..all {
                let prime = params.prime(j);
                let at = (j * data + digit) * n;
                let out = &mut b[at..at + n];
                // b = -a·σ^-1(s) + e + [digit is this prime]·P·s, with a = stored·2^-32.
                out.copy_from_slice(e.limb(j));
                if digit == j {
                    let factor = prime.shoup(special % prime.value());
                    let mut message = secret.values.limb(j).to_vec();
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
            map: Automorphism::new(n, Slots::rotation(n, steps)),
        }
    }

    /// A key from what is sent of it.
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
pub struct GaloisKeys {
    pub(crate) params: Arc<Params>,
    pub(crate) keys: BTreeMap<i32, GaloisKey>,
}

impl GaloisKeys {
    /// Keys for the given rotations (slots to the left; zero needs none).
    pub fn generate(
        secret: &SecretKey,
        rotations: impl IntoIterator<Item = i32>,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let row = secret.params.row() as i32;
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
            params: secret.params.clone(),
            keys,
        }
    }

    /// The parameters that the keys belong to.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The rotations that have a key.
    pub fn rotations(&self) -> impl Iterator<Item = i32> {
        self.keys.keys().copied()
    }

    /// Bytes that the keys take in the server's memory.
    pub fn memory(&self) -> usize {
        self.keys.len() * 2 * 4 * GaloisKey::len(&self.params)
    }

    pub(crate) fn get(&self, steps: i32) -> Result<&GaloisKey, HeError> {
        let steps = centre(steps, self.params.row() as i32);
        self.keys.get(&steps).ok_or(HeError::MissingKey { steps })
    }
}

/// The rotation as a number in `[-row/2, row/2)`: one name for each key.
pub(crate) fn centre(steps: i32, row: i32) -> i32 {
    (steps + row / 2).rem_euclid(row) - row / 2
}
