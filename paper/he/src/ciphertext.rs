//! Ciphertexts and what the client does with them.
//!
//! A ciphertext `(c0, c1)` modulo `q` encrypts `m` modulo p if `c0 + c1·s = round(q·m/p) + noise`.
//! The client's fresh ciphertexts are symmetric: `c1` is expanded from a seed, so only `c0`
//! travels.

use crate::error::HeError;
use crate::params::{ANSWER_LIMBS, Params};
use primer_lattice::poly::{Coefficients, Poly};
use primer_lattice::prime::{Prime, Shoup, reduce_once};
use primer_ring::modulus::P;
use primer_ring::prg::Prg;
use primer_rlwe::ciphertext::{Halves, SeededCiphertext};
use primer_rlwe::error::agree;
use primer_rlwe::keys::{self, SecretKey};
use rand_core::CryptoRng;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A ciphertext modulo all data primes, by values.
pub(crate) struct Ciphertext {
    pub(crate) halves: Halves,
}

/// Encrypts coefficients modulo p.
///
/// # Panics
/// If the plaintext is not one polynomial.
pub(crate) fn encrypt(
    secret: &SecretKey,
    plain: &[u64],
    rng: &mut impl CryptoRng,
) -> SeededCiphertext {
    let params = secret.params();
    assert_eq!(plain.len(), params.degree());
    let limbs = params.data_primes();
    let seed = keys::draw_seed(rng);
    let a = keys::expand(params, limbs, &mut Prg::new(&seed));
    let mut message = keys::error(params, limbs, rng);
    params.add_plaintext(limbs, plain, message.data_mut());
    SeededCiphertext {
        seed,
        c0: secret.mask(&a, message),
    }
}

/// Encrypts slot values modulo p.
///
/// # Panics
/// If there are not as many as slots.
pub(crate) fn encrypt_slots(
    secret: &SecretKey,
    slots: &[u64],
    rng: &mut impl CryptoRng,
) -> SeededCiphertext {
    let params = secret.params();
    let mut plain = Zeroizing::new(vec![0; params.degree()]);
    params.slots().encode(slots, &mut plain);
    encrypt(secret, &plain, rng)
}

impl Ciphertext {
    /// Expands a fresh ciphertext.
    pub(crate) fn of(seeded: &SeededCiphertext, params: &Params) -> Self {
        Self {
            halves: seeded.expand(params),
        }
    }

    /// Counts the primes.
    pub(crate) fn limbs(&self) -> usize {
        self.halves[0].limbs()
    }

    /// Adds another ciphertext.
    ///
    /// # Errors
    /// If the moduli differ.
    pub(crate) fn add_assign(&mut self, params: &Params, other: &Self) -> Result<(), HeError> {
        agree("primes of the ciphertexts", self.limbs(), other.limbs())?;
        for (a, b) in self.halves.iter_mut().zip(&other.halves) {
            a.add_assign(params.basis(), b);
        }
        Ok(())
    }

    /// Returns the ciphertext by coefficients, rounded to fewer primes.
    pub(crate) fn switched(&self, params: &Params, limbs: usize) -> [Poly<Coefficients>; 2] {
        self.halves.each_ref().map(|half| {
            let mut half = half.copy().into_coefficients(params.basis());
            half.drop_to(params.basis(), limbs);
            half
        })
    }

    /// Decrypts to slot values; for tests and for data that is not an answer. The noise is not
    /// checked, as its bound is not known here.
    ///
    /// # Errors
    /// If the key has other parameters.
    pub(crate) fn decrypt_slots(&self, secret: &SecretKey) -> Result<Vec<u64>, HeError> {
        let params = secret.params();
        let (mut plain, _) = decrypt(secret, &self.switched(params, ANSWER_LIMBS));
        let mut slots = vec![0; params.degree()];
        params.slots().decode(&mut plain, &mut slots);
        Ok(slots)
    }
}

/// Decrypts two limbs; returns the coefficients and the largest noise times p.
pub(crate) fn decrypt(
    secret: &SecretKey,
    ct: &[Poly<Coefficients>; 2],
) -> (Zeroizing<Vec<u64>>, u64) {
    let params: &Arc<Params> = secret.params();
    let n = params.degree();
    let mut phase = ct[1].copy().into_values(params.basis());
    phase.mul_assign(params.basis(), secret.values());
    let mut phase = phase.into_coefficients(params.basis());
    phase.add_assign(params.basis(), &ct[0]);
    let rounding = Rounding::new(params);
    let mut worst = 0;
    let mut plain = Zeroizing::new(vec![0; n]);
    for ((out, &x0), &x1) in plain.iter_mut().zip(phase.limb(0)).zip(phase.limb(1)) {
        let (message, rest) = rounding.round(x0, x1);
        (*out, worst) = (message, worst.max(rest.unsigned_abs()));
    }
    phase.wipe();
    (plain, worst)
}

/// The last step of a decryption: from the first two primes, whose product is `q` here, to p.
///
/// `x = c0 + c1·s` is a 60-bit number, and `m` is `p·x/q` rounded. The quotient by a reciprocal is
/// right or one too small, and the exact remainder settles it; what is left of it is the noise
/// times p.
pub(crate) struct Rounding {
    primes: [Prime; 2],
    modulus: u64,
    /// `⌊2^64·p/q⌋`.
    reciprocal: u64,
    /// The first prime inverted modulo the second.
    inverse: Shoup,
}

impl Rounding {
    pub(crate) fn new(params: &Params) -> Self {
        let primes = [params.prime(0), params.prime(1)];
        let modulus = u64::from(primes[0].value()) * u64::from(primes[1].value());
        Self {
            primes,
            modulus,
            reciprocal: ((u128::from(P) << 64) / u128::from(modulus)) as u64,
            inverse: params.basis().inverse(0, 1),
        }
    }

    /// Returns the residue modulo p, and the noise times p with its sign.
    #[inline(always)]
    pub(crate) fn round(&self, x0: u32, x1: u32) -> (u64, i64) {
        let ([q0, q1], modulus) = (self.primes, self.modulus);
        // Garner: x = x0 + q0·((x1 - x0)/q0 mod q1).
        let x0_mod = reduce_once(x0, q1.value());
        let step = q1.mul_shoup(q1.sub(x1, x0_mod), self.inverse);
        let x = u64::from(x0) + u64::from(q0.value()) * u64::from(step);
        let m = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        // Between 0 and 2q, which is below 2^61.
        let rest = P.wrapping_mul(x).wrapping_sub(m.wrapping_mul(modulus));
        let up = u64::from(rest > modulus / 2) + u64::from(rest > modulus + modulus / 2);
        let m = m + up;
        let rest = rest.wrapping_sub(up * modulus) as i64;
        // m is between 0 and p: p itself stands for zero.
        (m.min(m.wrapping_sub(P)), rest)
    }
}
