//! Parameters: ring degree, primes, and the line below which nothing is accepted.
//!
//! A parameter set is a ring degree `N` and a number `L` of 30-bit data primes; their product is
//! the ciphertext modulus `q`. The largest 30-bit NTT primes are taken in falling order, so both
//! parties derive the same set from two small numbers, and a [fingerprint](Params::fingerprint)
//! over all of it travels with every message. Sets of another [kind](SetKind) have spare primes,
//! too, modulo which keys are encrypted and messages are not: the paper's switch keys with one.
//!
//! # Security
//! With a uniform ternary secret and errors of standard deviation 3.24, 128-bit classical security
//! allows `log2 q` (with spare primes, since keys are encrypted modulo the product) of at most 53,
//! 106, 214 and 430 bits at degrees 2048, 4096, 8192 and 16384, by the tables of Bossuat et al.,
//! *Security Guidelines for Implementing Homomorphic Encryption* (2024). They take attacks into
//! account that the HomomorphicEncryption.org standard of 2018 could not, and are stricter than its
//! 109, 218 and 438. [`Params::new`] and [`Params::of_kind`] refuse anything beyond; there is no
//! way round.
//!
//! # Why five data primes at degree 8192
//! The server's factors fill the 41 bits of p, so a product costs 40 bits of noise and the
//! logarithm of the number of coefficients. With four primes BERT-base would have a wrong share
//! once in 600 inferences of 30 tokens; five leave it below `2^-33` an inference
//! ([`crate::product::ODDS`], `docs/rlwe.md`).

use crate::error::HeError;
use crate::slots::Slots;
use primer_lattice::basis::Basis;
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::{Prime, Shoup};
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use rand_core::CryptoRng;
use std::fmt;
use std::hash::{Hash, Hasher};
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
/// Most data primes: products of residues of as many fit one 64-bit sum, and one to spare.
pub const MAX_DATA_PRIMES: usize = 7;
/// Fewest data primes: with one, a residue modulo p does not fit.
pub const MIN_DATA_PRIMES: usize = 2;
/// Primes for products of two secrets. With four, BERT-base would have a wrong share once in 600
/// inferences of 30 tokens.
const SPLIT_PRIMES: usize = 5;
/// Coefficients of a plaintext that are scaled at once.
const SCALED: usize = 256;
/// Bytes of a fingerprint.
pub const FINGERPRINT_BYTES: usize = 16;

/// What sets have in common that serve one kind of product.
#[derive(Debug, Clone, Copy)]
pub struct SetKind {
    /// What tells fingerprints of such sets from those of others.
    pub context: &'static str,
    /// Primes beyond the data primes: secrets have residues modulo them, ciphertexts have none.
    pub spare: usize,
    /// Most primes of a public key.
    pub public: usize,
}

/// The kind of [`Params::new`]: no rotations, and answers of which each party keeps a half.
const SPLIT: SetKind = SetKind {
    context: "primer homomorphic parameters without rotations 2",
    spare: 0,
    public: MAX_DATA_PRIMES,
};

/// A parameter set with its tables.
pub struct Params {
    /// Data primes, then spare ones.
    basis: Basis,
    data: usize,
    public: usize,
    slots: Slots,
    fingerprint: [u8; FINGERPRINT_BYTES],
    /// `-p^-1` modulo each prime.
    plain_inverse: Vec<Shoup>,
}

impl Params {
    /// Returns the set for products of two secrets: degree 8192, five data primes. Its tables are
    /// made once.
    pub fn split() -> Arc<Self> {
        static SET: LazyLock<Arc<Params>> =
            LazyLock::new(|| Params::new(8192, SPLIT_PRIMES).expect("the set is within the table"));
        SET.clone()
    }

    /// Makes a set of some degree with a number of data primes.
    ///
    /// # Errors
    /// If the degree is unknown, the number of primes unsupported, or the modulus beyond the
    /// security table.
    pub fn new(degree: usize, data: usize) -> Result<Arc<Self>, HeError> {
        Self::of_kind(&SPLIT, degree, data, Simd::detect())
    }

    /// Makes a set of some kind, whose arithmetic is done by an instruction set.
    ///
    /// # Errors
    /// As [`Params::new`]; all primes, those to spare too, are held against the security table.
    pub fn of_kind(
        kind: &SetKind,
        degree: usize,
        data: usize,
        simd: Simd,
    ) -> Result<Arc<Self>, HeError> {
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
        let all = data + kind.spare;
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
        let mut hash = blake3::Hasher::new_derive_key(kind.context);
        hash.update(&(degree as u64).to_le_bytes());
        hash.update(&P.to_le_bytes());
        for q in primes {
            hash.update(&q.value().to_le_bytes());
        }
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&hash.finalize().as_bytes()[..FINGERPRINT_BYTES]);
        Ok(Arc::new(Self {
            data,
            public: kind.public.min(data),
            slots: Slots::new(degree),
            fingerprint,
            plain_inverse,
            basis,
        }))
    }

    /// Returns the ring degree `N`.
    pub fn degree(&self) -> usize {
        self.basis.degree()
    }

    /// Returns the number `L` of data primes.
    pub fn data_primes(&self) -> usize {
        self.data
    }

    /// Counts all primes: those of ciphertexts, then those to spare.
    pub fn all_primes(&self) -> usize {
        self.basis.primes().len()
    }

    /// Counts the primes of a public key, and of the encryptions of zero that are made with it.
    pub fn public_primes(&self) -> usize {
        self.public
    }

    /// Returns the primes with their transforms: what polynomials are over.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Returns one prime.
    pub fn prime(&self, i: usize) -> Prime {
        self.basis.prime(i)
    }

    /// Returns the transform of one prime.
    pub fn ntt(&self, i: usize) -> &Ntt {
        self.basis.ntt(i)
    }

    /// Returns the slots of the plaintext ring.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Returns the instruction set in use.
    pub fn simd(&self) -> Simd {
        self.basis.simd()
    }

    /// Returns what identifies the set on the wire.
    pub fn fingerprint(&self) -> &[u8; FINGERPRINT_BYTES] {
        &self.fingerprint
    }

    /// Returns `log2` of the product of the first `limbs` primes.
    pub fn modulus_bits(&self, limbs: usize) -> f64 {
        self.basis.modulus_bits(limbs)
    }

    /// Adds `round(q·m/p)` to limbs of as many coefficients as there are, `q` being the product of
    /// the first `limbs` primes: a plaintext scaled to a ciphertext.
    ///
    /// With `r` the residue of `q·m` modulo p of least absolute value, `q·m/p` rounds to
    /// `(q·m - r)/p`, which is `-r/p` modulo each prime. Rounding the scaled plaintext, rather
    /// than scaling by a rounded factor, keeps wrap-around modulo p free of noise.
    pub fn add_plaintext(&self, limbs: usize, plain: &[u64], out: &mut [u32]) {
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

    /// Draws for each `m` of a plaintext a number `r` that is `q·m` modulo p, such that
    /// `(q·m - r)/p`, the scaled plaintext, is rounded up or down at random: up with the
    /// probability that makes the mean of the rounding zero, for every plaintext.
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

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Params {}

impl Hash for Params {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (degree, primes) = (self.degree(), self.data);
        write!(f, "degree {degree}, {primes} primes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that has a prime to spare, as one that switches keys.
    const SPARE: SetKind = SetKind {
        context: "primer test of parameters",
        spare: 1,
        public: 4,
    };

    #[test]
    fn beyond_the_table_is_refused() {
        let spare = |degree, data| Params::of_kind(&SPARE, degree, data, Simd::detect());
        for (refused, degree, bits, limit) in [
            (Params::new(4096, 4), 4096, 120, 106),
            (Params::new(2048, 2), 2048, 60, 53),
            (spare(4096, 3), 4096, 120, 106),
            (spare(8192, 7), 8192, 240, 214),
        ] {
            let insecure = HeError::Insecure {
                degree,
                bits,
                limit,
            };
            assert_eq!(refused.err(), Some(insecure));
        }
        assert_eq!(
            Params::new(1024, 2).err(),
            Some(HeError::Degree { degree: 1024 })
        );
        for primes in [0, 1, 8] {
            let refused = Params::new(16384, primes).err();
            assert!(matches!(refused, Some(HeError::Primes { .. })), "{primes}");
        }
        for (degree, data) in [(4096, 3), (8192, 7), (16384, 7)] {
            assert!(Params::new(degree, data).is_ok());
        }
        assert!(spare(4096, 2).is_ok() && spare(8192, 6).is_ok());
    }

    #[test]
    fn fingerprints_differ() {
        let five = Params::new(8192, 5).unwrap();
        assert_eq!(five.fingerprint(), Params::split().fingerprint());
        let other = SetKind {
            context: "primer test of other parameters",
            ..SPLIT
        };
        let others = [
            Params::new(8192, 4),
            Params::new(16384, 5),
            Params::of_kind(&SPARE, 8192, 5, Simd::detect()),
            Params::of_kind(&other, 8192, 5, Simd::detect()),
        ];
        for set in others {
            assert_ne!(set.unwrap().fingerprint(), five.fingerprint());
        }
    }
}
