//! Answers: what the server returns, hiding everything but the message.
//!
//! The noise and the uniform half of a computed ciphertext are functions of the weights; the
//! client, who knows its own errors and its secret, could solve for them. So every answer is
//! finished in this order, with nothing optional:
//!
//! 1. divide by the key-switching prime and round down to [`FLOOD_LIMBS`] primes;
//! 2. add a *fresh* public-key encryption of zero: the uniform half becomes pseudorandom;
//! 3. add the mask: a plaintext that is uniform wherever the slots do not hold a result;
//! 4. add flooding noise, sums of eight uniform integers of 75 bits: more than 40 bits above what
//!    it has to hide ([`crate::noise::hidden`], checked before the product starts);
//! 5. round down to [`ANSWER_LIMBS`] primes, the fewest that still decrypt.
//!
//! **Why it is enough.** After step 2 the client's view is `c1 = a·u + e1 + (old c1)` and the noise
//! `e·u + e0 + e1·s + (old noise) + flood`, where `e` is the public key's error. Let
//! `h = old noise + B·(2N+1) + 1/2` bound each coefficient of everything but the flood. For a
//! density `f` with Fisher information `I = ∫ f'²/f`, independent coordinates shifted by `δ` are
//! within statistical distance `½·‖δ‖₂·√I` of the unshifted ones: the distance is at most half the
//! mean of `|Σ δ_i·f'(x_i)/f(x_i)|` along the shift, and these terms are independent with mean 0
//! and variance `δ_i²·I`. For a sum of eight uniforms in `±A`, `√I = 0.614/A` (with one uniform
//! there is no such bound, and distances of coefficients add up as numbers). The flood is the
//! integer part of such a sum, up to a carry below 8, which is worth another `2^-73` a coefficient.
//! So one answer is within `½·√N·h·0.615/2^74` (`noise::distance_bits`) of one whose noise is the
//! flood alone, and `k` answers within `√k` times that. With the noise replaced, `u` and `e1` occur
//! only in `a·u + e1`, which is pseudorandom under ring LWE (N = 8192, 120 bits, ternary `u`), so
//! `c1` is too, no matter what the old `c1` was. Steps 3 and 5 are functions of what is left and of
//! the result. The mask of step 3 is uniform in all slots but the result's, because the others
//! (unused tokens and features, copies, partial sums) would hold products of what a client put
//! there.
//!
//! The client's decryption checks that noise stayed within the proven bound, which a wrong key or a
//! damaged ciphertext fails for certain. Such an error ends the session; it must not be
//! answered with more information, as reactions to chosen ciphertexts are an attack.

use crate::ciphertext::decrypt;
use crate::error::HeError;
use crate::noise;
use crate::params::{ANSWER_LIMBS, FLOOD_LIMBS, Params, flood_limbs};
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_lattice::sample;
use primer_ring::modulus::P;
use primer_rlwe::keys::{self, PublicKey, SecretKey};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

const _: () = assert!(ANSWER_LIMBS < FLOOD_LIMBS);

/// A finished answer: two polynomials by coefficients, modulo [`ANSWER_LIMBS`] primes.
pub(crate) struct AnswerCiphertext {
    pub(crate) halves: [Poly<Coefficients>; 2],
}

/// Finishes a ciphertext given by values, modulo the data primes or `P` times too large modulo all.
///
/// `mask` is a plaintext by coefficients.
pub(crate) fn finish(
    public: &PublicKey,
    halves: [Poly<Values>; 2],
    mask: &[u64],
    rng: &mut impl CryptoRng,
) -> AnswerCiphertext {
    let params: &Params = &public.params;
    let limbs = flood_limbs(params);
    let [mut c0, mut c1] = halves.map(|half| {
        let mut half = half.into_coefficients(params.basis());
        half.drop_to(params.basis(), limbs);
        half
    });
    add_zero(public, &mut c0, &mut c1, rng);
    params.add_plaintext(limbs, mask, c0.data_mut());
    let primes: Vec<_> = (0..limbs).map(|i| params.prime(i)).collect();
    let count = params.degree();
    let out = c0.data_mut();
    sample::add_flood(params.simd(), &primes, rng, count, out);
    c0.drop_to(params.basis(), ANSWER_LIMBS);
    c1.drop_to(params.basis(), ANSWER_LIMBS);
    AnswerCiphertext { halves: [c0, c1] }
}

/// Adds a fresh encryption of zero to a ciphertext given by coefficients.
pub(crate) fn add_zero(
    public: &PublicKey,
    c0: &mut Poly<Coefficients>,
    c1: &mut Poly<Coefficients>,
    rng: &mut impl CryptoRng,
) {
    let params = &public.params;
    let limbs = flood_limbs(params);
    let mut u = Poly::from_small(
        params.basis(),
        limbs,
        &sample::ternary(rng, params.degree()),
    )
    .into_values(params.basis());
    for (key, out) in public.halves().iter().zip([c0, c1]) {
        let mut z = u.copy();
        z.mul_assign(params.basis(), key);
        let mut z = z.into_coefficients(params.basis());
        let mut e = keys::error(params, limbs, rng);
        out.add_assign(params.basis(), &z);
        out.add_assign(params.basis(), &e);
        z.wipe();
        e.wipe();
    }
    u.wipe();
}

impl AnswerCiphertext {
    /// Decrypts to slot values. `index` names the ciphertext in an error.
    ///
    /// # Errors
    /// If the noise is beyond what any admitted operation can leave.
    pub(crate) fn decrypt_slots(
        &self,
        secret: &SecretKey,
        index: usize,
    ) -> Result<Zeroizing<Vec<u64>>, HeError> {
        let params = secret.params();
        let (mut plain, worst) = decrypt(secret, &self.halves);
        if worst as f64 > noise_limit(params) * P as f64 {
            return Err(HeError::NoiseExhausted { index });
        }
        let mut slots = Zeroizing::new(vec![0; params.degree()]);
        params.slots().decode(&mut plain, &mut slots);
        Ok(slots)
    }
}

/// Returns the most noise that an admitted operation leaves in an answer.
fn noise_limit(params: &Params) -> f64 {
    // `noise::check` admits hidden noise up to 2^34; the rest of an answer is the same for all.
    let flooded = f64::from(sample::FLOOD_BITS).exp2()
        + f64::from(sample::FLOOD_TERM_BITS - noise::STATISTICAL_BITS).exp2();
    let bits = params.modulus_bits(flood_limbs(params)) - params.modulus_bits(ANSWER_LIMBS);
    (flooded * (-bits).exp2() + 2.0 * noise::rounding(params))
        .min(noise::capacity(params, ANSWER_LIMBS))
}
