//! Parameters: ring degree, primes, and the line below which nothing is accepted.
//!
//! A parameter set is a ring degree `N` and a number `L` of 30-bit data primes; their product is
//! the ciphertext modulus `q`. One more prime serves key switching. The largest 30-bit NTT primes
//! are taken in falling order, so both parties derive the same set from two small numbers, and a
//! [fingerprint](Params::fingerprint) over all of it travels with every message.
//!
//! # Security
//! With a uniform ternary secret and errors of standard deviation 3.24, 128-bit classical security
//! allows `log2 q` (with the key-switching prime, since keys are encrypted modulo the product) of
//! at most 53, 106, 214 and 430 bits at degrees 2048, 4096, 8192 and 16384, by the tables of
//! Bossuat et al., *Security Guidelines for Implementing Homomorphic Encryption* (2024). They take
//! attacks into account that the HomomorphicEncryption.org standard of 2018 could not, and are
//! stricter than its 109, 218 and 438. [`Params::new`] refuses anything beyond; there is no way
//! round.
//!
//! # Why six data primes at degree 8192
//! Slot-packed weights are polynomials whose coefficients fill the 41 bits of p, however small the
//! weights: a product costs 40 bits of noise and the logarithm of the number of coefficients.
//! Worst-case noise of the widest products is about `2^85` (`paper/docs/he.md`); dropping two
//! primes brings it to `2^25`, flooding at four primes adds up to `2^77`, and 41 bits for the
//! plaintext remain. Five primes would hold only for noise of the average case.

use crate::error::HeError;
use crate::slots::Slots;
use primer_lattice::basis::Basis;
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::{Prime, Shoup};
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use rand_core::CryptoRng;
use std::sync::{Arc, LazyLock};
use zeroize::Zeroizing;

/// Largest modulus in bits for 128-bit security with ternary secrets, by degree.
pub const SECURITY_TABLE: [(usize, u32); 4] = [(2048, 53), (4096, 106), (8192, 214), (16384, 430)];
const _: () = {
    let (largest, _) = SECURITY_TABLE[SECURITY_TABLE.len() - 1];
    assert!(
        (P - 1).is_multiple_of(2 * largest as u64),
        "p has no slots for this degree"
    );
};
/// Most data primes: the digits of key switching that fit one 64-bit sum, and a spare.
pub const MAX_DATA_PRIMES: usize = 7;
/// Fewest data primes: those of an answer.
pub const MIN_DATA_PRIMES: usize = ANSWER_LIMBS;
/// Primes left when an answer is flooded.
pub const FLOOD_LIMBS: usize = 4;
/// Primes of an answer on the wire.
pub const ANSWER_LIMBS: usize = 2;
/// Coefficients of a plaintext that are scaled at once.
const SCALED: usize = 256;
/// Bytes of a fingerprint.
pub const FINGERPRINT_BYTES: usize = 16;

/// A parameter set with its tables.
pub struct Params {
    /// Data primes, then the key-switching prime, if there is one.
    basis: Basis,
    data: usize,
    rotating: bool,
    slots: Slots,
    fingerprint: [u8; FINGERPRINT_BYTES],
    /// `-p^-1` modulo each prime.
    plain_inverse: Vec<Shoup>,
}

impl Params {
    /// The set for matrix products: degree 8192, six data primes. Its tables are made once.
    pub fn products() -> Arc<Self> {
        static PRODUCTS: LazyLock<Arc<Params>> =
            LazyLock::new(|| Params::new(8192, 6).expect("the set is within the table"));
        PRODUCTS.clone()
    }

    /// A set of the given degree with the given number of data primes.
    ///
    /// # Errors
    /// If the degree is unknown, the number of primes unsupported, or the modulus beyond the
    /// security table.
    pub fn new(degree: usize, data: usize) -> Result<Arc<Self>, HeError> {
        Self::with_simd(degree, data, Simd::detect())
    }

    /// A set for products without rotations: there is no key-switching prime, and the data primes
    /// alone are held against the security table.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub fn without_rotations(degree: usize, data: usize) -> Result<Arc<Self>, HeError> {
        Self::build(degree, data, false, Simd::detect())
    }

    /// The same on a chosen instruction set: tests compare them.
    ///
    /// # Errors
    /// As [`Params::new`].
    pub(crate) fn with_simd(degree: usize, data: usize, simd: Simd) -> Result<Arc<Self>, HeError> {
        Self::build(degree, data, true, simd)
    }

    fn build(degree: usize, data: usize, rotating: bool, simd: Simd) -> Result<Arc<Self>, HeError> {
        let limit = SECURITY_TABLE
            .iter()
            .find(|entry| entry.0 == degree)
            .ok_or(HeError::Degree { degree })?
            .1;
        if !(MIN_DATA_PRIMES..=MAX_DATA_PRIMES).contains(&data) {
            return Err(HeError::Primes {
                primes: data,
                min: MIN_DATA_PRIMES,
                max: MAX_DATA_PRIMES,
            });
        }
        let all = data + usize::from(rotating);
        let basis = Basis::new(Prime::largest(all), degree, simd);
        let (primes, bits) = (basis.primes(), basis.modulus_bits(all));
        if bits > f64::from(limit) {
            return Err(HeError::Insecure {
                degree,
                bits: bits.ceil() as u32,
                limit,
            });
        }
        let plain_inverse = primes
            .iter()
            .map(|q| q.shoup(q.neg(q.invert(q.reduce(P)))))
            .collect();
        let mut hash = blake3::Hasher::new_derive_key(if rotating {
            "primer homomorphic parameters 1"
        } else {
            "primer homomorphic parameters without rotations 2"
        });
        hash.update(&(degree as u64).to_le_bytes());
        hash.update(&P.to_le_bytes());
        for q in primes {
            hash.update(&q.value().to_le_bytes());
        }
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&hash.finalize().as_bytes()[..FINGERPRINT_BYTES]);
        Ok(Arc::new(Self {
            data,
            rotating,
            slots: Slots::new(degree),
            fingerprint,
            plain_inverse,
            basis,
        }))
    }

    /// The ring degree `N`.
    pub fn degree(&self) -> usize {
        self.basis.degree()
    }

    /// Slots of one row, `N/2`.
    pub fn row(&self) -> usize {
        self.degree() / 2
    }

    /// The number `L` of data primes.
    pub fn data_primes(&self) -> usize {
        self.data
    }

    /// Whether there is a key-switching prime.
    pub fn rotates(&self) -> bool {
        self.rotating
    }

    /// Limbs with the key-switching prime, which is the last.
    pub fn all_primes(&self) -> usize {
        self.data + usize::from(self.rotating)
    }

    /// Limbs at which answers get a fresh encryption of zero, and flooding with it: all of them
    /// where there are no rotations, whose answers are split instead.
    pub fn flood_limbs(&self) -> usize {
        if self.rotating {
            FLOOD_LIMBS.min(self.data)
        } else {
            self.data
        }
    }

    /// The primes with their transforms: what polynomials are over.
    pub(crate) fn basis(&self) -> &Basis {
        &self.basis
    }

    /// One prime.
    pub(crate) fn prime(&self, i: usize) -> Prime {
        self.basis.prime(i)
    }

    /// The transform of one prime.
    pub(crate) fn ntt(&self, i: usize) -> &Ntt {
        self.basis.ntt(i)
    }

    /// The slots of the plaintext ring.
    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The instruction set in use.
    pub(crate) fn simd(&self) -> Simd {
        self.basis.simd()
    }

    /// What identifies the set on the wire.
    pub fn fingerprint(&self) -> &[u8; FINGERPRINT_BYTES] {
        &self.fingerprint
    }

    /// `log2` of the product of the first `limbs` primes.
    pub fn modulus_bits(&self, limbs: usize) -> f64 {
        self.basis.modulus_bits(limbs)
    }

    /// Adds `round(q·m/p)` to limbs of as many coefficients as there are, `q` being the product of
    /// the first `limbs` primes: a plaintext scaled to a ciphertext.
    ///
    /// With `r` the residue of `q·m` modulo p of least absolute value, `q·m/p` rounds to
    /// `(q·m - r)/p`, which is `-r/p` modulo each prime. Rounding the scaled plaintext, rather
    /// than scaling by a rounded factor, keeps wrap-around modulo p free of noise.
    pub(crate) fn add_plaintext(&self, limbs: usize, plain: &[u64], out: &mut [u32]) {
        let q = self.modulus_mod_p(limbs);
        let mut rest = Zeroizing::new([0; SCALED]);
        for (at, plain) in plain.chunks(SCALED).enumerate() {
            let rest = &mut rest[..plain.len()];
            for (rest, &m) in rest.iter_mut().zip(plain) {
                *rest = modulus::to_signed(modulus::mul(q, m));
            }
            let len = out.len() / limbs;
            for (i, out) in out.chunks_exact_mut(len).enumerate() {
                self.add_scaled(i, rest, &mut out[at * SCALED..]);
            }
        }
    }

    /// For each `m` of a plaintext a number `r` that is `q·m` modulo p, such that `(q·m - r)/p`,
    /// the scaled plaintext, is rounded up or down at random: up with the probability that makes
    /// the mean of the rounding zero, whatever the plaintext is.
    pub(crate) fn dither(
        &self,
        limbs: usize,
        plain: &[u64],
        rng: &mut impl CryptoRng,
        rest: &mut [i64],
    ) {
        let q = self.modulus_mod_p(limbs);
        let mut bytes = Zeroizing::new([0; 8 * SCALED]);
        for (rest, plain) in rest.chunks_mut(SCALED).zip(plain.chunks(SCALED)) {
            let bytes = &mut bytes[..8 * plain.len()];
            rng.fill_bytes(bytes);
            let coins = bytes.as_chunks::<8>().0;
            for ((to, &m), coin) in rest.iter_mut().zip(plain).zip(coins) {
                let rest = modulus::mul(q, m);
                let coin = u128::from(u64::from_le_bytes(*coin)) * u128::from(P);
                // All ones if the coin, uniform below p, is below the rest.
                let up = (((coin >> 64) as u64).wrapping_sub(rest) as i64) >> 63;
                *to = rest as i64 - (P as i64 & up);
            }
        }
    }

    fn modulus_mod_p(&self, limbs: usize) -> u64 {
        let primes = self.basis.primes()[..limbs].iter();
        primes.fold(1, |acc, q| modulus::mul(acc, q.value().into()))
    }

    /// Adds `(q·m - r)/p` modulo one prime, given what to take as `r`, which is `q·m` modulo p.
    pub(crate) fn add_scaled(&self, limb: usize, rest: &[i64], out: &mut [u32]) {
        let factor = self.plain_inverse[limb];
        elementwise::add_lift(self.simd(), self.prime(limb), out, rest, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_table_is_refused() {
        assert_eq!(
            Params::new(4096, 3).err(),
            Some(HeError::Insecure {
                degree: 4096,
                bits: 120,
                limit: 106
            })
        );
        assert_eq!(
            Params::new(8192, 7).err(),
            Some(HeError::Insecure {
                degree: 8192,
                bits: 240,
                limit: 214
            })
        );
        assert_eq!(
            Params::new(2048, 2).err(),
            Some(HeError::Insecure {
                degree: 2048,
                bits: 90,
                limit: 53
            })
        );
        assert_eq!(
            Params::new(1024, 2).err(),
            Some(HeError::Degree { degree: 1024 })
        );
        assert!(matches!(
            Params::new(16384, 8).err(),
            Some(HeError::Primes { primes: 8, .. })
        ));
        for (degree, data) in [(4096, 2), (8192, 6), (16384, 7)] {
            assert!(Params::new(degree, data).is_ok());
        }
        let refused = Params::without_rotations(4096, 4).err();
        assert!(matches!(refused, Some(HeError::Insecure { bits: 120, .. })));
    }

    #[test]
    fn fingerprints_differ() {
        let a = Params::new(8192, 6).unwrap();
        let b = Params::new(8192, 5).unwrap();
        assert_ne!(a.fingerprint(), b.fingerprint());
        assert_eq!(a.fingerprint(), Params::products().fingerprint());
    }
}
