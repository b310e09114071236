//! How much noise a ciphertext carries: a question only the secret's owner can ask.
//!
//! With `x = c0 + c1·s = q·m/p + noise`, `p·x mod q` is `p·noise` for every message. Residues
//! are turned into a number by mixed radix, in floating point: only its size matters. Only tests
//! ask: they compare these figures with the bounds of [`crate::noise`].

use crate::answer::{AnswerCiphertext, add_zero};
use crate::ciphertext::Ciphertext;
use crate::noise::capacity;
use crate::params::{ANSWER_LIMBS, Params, flood_limbs};
use primer_lattice::poly::{Coefficients, Poly};
use primer_ring::modulus::P;
use primer_rlwe::error::HeError;
use primer_rlwe::keys::{PublicKey, SecretKey};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

impl Ciphertext {
    /// Returns the same message modulo fewer primes.
    ///
    /// # Errors
    /// If there are not that many primes, or fewer than an answer has.
    pub(crate) fn switch_to(&self, params: &Params, limbs: usize) -> Result<Self, HeError> {
        if !(ANSWER_LIMBS..=self.limbs()).contains(&limbs) {
            return Err(HeError::Primes {
                primes: limbs,
                min: ANSWER_LIMBS,
                max: self.limbs(),
            });
        }
        Ok(Self {
            halves: self
                .switched(params, limbs)
                .map(|half| half.into_values(params.basis())),
        })
    }

    /// Returns `log2` of the largest noise coefficient.
    pub(crate) fn noise_bits(&self, secret: &SecretKey) -> f64 {
        let params = secret.params();
        let noise = noise(secret, &self.switched(params, self.limbs()));
        noise.iter().fold(0.0f64, |m, x| m.max(x.abs())).log2()
    }

    /// Returns the bits of noise that can still be added before decryption fails; zero or less when
    /// exhausted.
    pub(crate) fn budget_bits(&self, secret: &SecretKey) -> f64 {
        // Noise beyond the capacity wraps round and looks smaller: below half a bit is exhausted.
        let left = capacity(secret.params(), self.limbs()).log2() - self.noise_bits(secret);
        if left < 0.5 { 0.0 } else { left }
    }
}

/// Encrypts slot values without the secret, at the primes of the public key.
///
/// # Panics
/// If there are not as many as slots.
pub(crate) fn encrypt_public(
    public: &PublicKey,
    slots: &[u64],
    rng: &mut impl CryptoRng,
) -> Ciphertext {
    let params = &public.params;
    let limbs = flood_limbs(params);
    let mut plain = Zeroizing::new(vec![0; params.degree()]);
    params.slots().encode(slots, &mut plain);
    let mut halves = [
        Poly::zero(params.basis(), limbs),
        Poly::zero(params.basis(), limbs),
    ];
    let [c0, c1] = &mut halves;
    add_zero(public, c0, c1, rng);
    params.add_plaintext(limbs, &plain, c0.data_mut());
    Ciphertext {
        halves: halves.map(|half| half.into_values(params.basis())),
    }
}

impl AnswerCiphertext {
    /// Returns the noise of every coefficient.
    pub(crate) fn noise(&self, secret: &SecretKey) -> Vec<f64> {
        noise(secret, &self.halves)
    }
}

/// Returns the noise of every coefficient of a ciphertext given by coefficients.
pub(crate) fn noise(secret: &SecretKey, halves: &[Poly<Coefficients>; 2]) -> Vec<f64> {
    let params = secret.params();
    let limbs = halves[0].limbs();
    let mut phase = halves[1].copy().into_values(params.basis());
    phase.mul_assign(params.basis(), secret.values());
    let mut phase = phase.into_coefficients(params.basis());
    phase.add_assign(params.basis(), &halves[0]);
    (0..params.degree())
        .map(|i| {
            let residues: Vec<u32> = (0..limbs)
                .map(|j| {
                    params
                        .prime(j)
                        .mul(phase.limb(j)[i], params.prime(j).reduce(P))
                })
                .collect();
            let negated: Vec<u32> = residues
                .iter()
                .enumerate()
                .map(|(j, &r)| params.prime(j).neg(r))
                .collect();
            let (up, down) = (number(params, &residues), number(params, &negated));
            if up <= down {
                up / P as f64
            } else {
                -down / P as f64
            }
        })
        .collect()
}

/// Returns the number below the product of the first primes that has the given residues.
fn number(params: &Params, residues: &[u32]) -> f64 {
    let mut digits: Vec<u32> = Vec::with_capacity(residues.len());
    for (j, &r) in residues.iter().enumerate() {
        let prime = params.prime(j);
        // ((r - d0)/q0 - d1)/q1 …
        let mut x = r;
        for (i, &d) in digits.iter().enumerate() {
            x = prime.mul_shoup(
                prime.sub(x, d % prime.value()),
                params.basis().inverse(i, j),
            );
        }
        digits.push(x);
    }
    let value =
        |acc: f64, (j, &d): (usize, &u32)| acc * f64::from(params.prime(j).value()) + f64::from(d);
    digits.iter().enumerate().rev().fold(0.0, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ciphertext::encrypt_slots;
    use crate::keys::GaloisKeys;
    use crate::noise;
    use crate::params::{products, rotating};
    use crate::switch::Rotator;
    use primer_ring::modulus;
    use primer_ring::prg::Prg;

    fn fresh(params: &std::sync::Arc<Params>, rng: &mut Prg) -> (SecretKey, Vec<u64>, Ciphertext) {
        let secret = SecretKey::generate(params, rng);
        let slots: Vec<u64> = (0..params.degree()).map(|_| modulus::random(rng)).collect();
        let ct = Ciphertext::of(&encrypt_slots(&secret, &slots, rng), params);
        (secret, slots, ct)
    }

    #[test]
    fn fresh_and_rotated_noise_is_within_bounds() {
        let mut rng = Prg::new(&[1; 16]);
        for (degree, data) in [(4096, 2), (8192, 6), (16384, 7)] {
            let params = rotating(degree, data).unwrap();
            let (secret, slots, ct) = fresh(&params, &mut rng);
            assert!(ct.decrypt_slots(&secret).unwrap() == slots);
            let bits = ct.noise_bits(&secret);
            assert!(bits <= noise::fresh().log2() && bits > 2.0, "{bits}");
            let keys = GaloisKeys::generate(&secret, [1, -7], &mut rng);
            for steps in [1, -7] {
                let rotated = Rotator::new(&keys).rotate(&ct, steps).unwrap();
                let bound = noise::fresh() + noise::key_switch(&params) + noise::rounding(&params);
                let bits = rotated.noise_bits(&secret);
                assert!(bits <= bound.log2() && bits > 5.0, "{bits}");
                let got = rotated.decrypt_slots(&secret).unwrap();
                let row = degree / 2;
                for i in 0..row {
                    let from = (i as i32 + steps).rem_euclid(row as i32) as usize;
                    assert_eq!((got[i], got[row + i]), (slots[from], slots[row + from]));
                }
            }
        }
    }

    #[test]
    fn modulus_switching_and_public_encryption_keep_the_message() {
        let mut rng = Prg::new(&[3; 16]);
        let params = products();
        let (secret, slots, ct) = fresh(&params, &mut rng);
        let mut bound = noise::fresh();
        for limbs in (2..6).rev() {
            let switched = ct.switch_to(&params, limbs).unwrap();
            assert_eq!(switched.limbs(), limbs);
            bound = bound / 2f64.powi(29) + noise::rounding(&params) * 1.001;
            assert!(switched.noise_bits(&secret) <= bound.log2());
            assert!(switched.decrypt_slots(&secret).unwrap() == slots);
        }
        assert!(ct.switch_to(&params, 1).is_err() && ct.switch_to(&params, 7).is_err());
        let public = PublicKey::generate(&secret, &mut rng);
        let ct = encrypt_public(&public, &slots, &mut rng);
        assert!(ct.decrypt_slots(&secret).unwrap() == slots);
        let bits = ct.noise_bits(&secret);
        assert!(
            bits <= (21.0f64 * 16385.0 + 0.5).log2() && bits > 6.0,
            "{bits}"
        );
    }

    #[test]
    fn exhaustion_is_seen() {
        let mut rng = Prg::new(&[2; 16]);
        let params = products();
        let (secret, mut slots, mut ct) = fresh(&params, &mut rng);
        let mut last = ct.budget_bits(&secret);
        assert!(last > 130.0);
        // Doubling costs one bit each time.
        for _ in 0..40 {
            let same = Ciphertext {
                halves: ct.halves.each_ref().map(Poly::copy),
            };
            ct.add_assign(&params, &same).unwrap();
            slots.iter_mut().for_each(|s| *s = modulus::add(*s, *s));
        }
        let now = ct.budget_bits(&secret);
        assert!((last - now - 40.0).abs() < 0.1, "{last} {now}");
        last = now;
        assert!(ct.decrypt_slots(&secret).unwrap() == slots);
        while last > 0.0 {
            let same = Ciphertext {
                halves: ct.halves.each_ref().map(Poly::copy),
            };
            ct.add_assign(&params, &same).unwrap();
            slots.iter_mut().for_each(|s| *s = modulus::add(*s, *s));
            let now = ct.budget_bits(&secret);
            assert!(now < last);
            last = now;
        }
        let same = Ciphertext {
            halves: ct.halves.each_ref().map(Poly::copy),
        };
        ct.add_assign(&params, &same).unwrap();
        slots.iter_mut().for_each(|s| *s = modulus::add(*s, *s));
        assert!(ct.decrypt_slots(&secret).unwrap() != slots);
    }
}
