//! Parameters: ring degree, the chain of primes with its scales, and the line below which nothing
//! is accepted.
//!
//! A ciphertext at level `l` lives modulo the first `l + 2` data primes: every product costs one
//! prime, and two are left at the end, so that results may be much larger than 1. Key switching
//! cuts a ciphertext into a few digits of `α` primes each and works modulo the product of all data
//! primes and `α` more (hybrid key switching; Han and Ki 2020).
//!
//! # One scale for each level
//! A fixed-point product has the product of the scales, and a rescaling divides by a prime that is
//! only near the scale. We fix the scale of *every* ciphertext at a level: `S_(l-1) = S_l²/q_l`.
//! Any two ciphertexts at the same level can be added; nothing has to be tracked. The recurrence
//! doubles every deviation, so primes are chosen along the way: `q_l` is the unused one nearest to
//! `S_l²/Δ`, which brings `S_(l-1)` back to `Δ`.
//!
//! # Security
//! With a uniform ternary secret and errors of standard deviation 3.24, 128-bit classical security
//! allows at most 868 bits of modulus, key-switching primes included, at degree 32,768 and 1,747 at
//! 65,536 (Bossuat et al., *Security Guidelines for Implementing Homomorphic Encryption*, 2024).
//! [`Params::new`] refuses anything beyond, without exception.

use super::embedding::Embedding;
use crate::error::FheError;
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::{Prime, TWO_ADICITY};
use primer_lattice::simd::Simd;
use std::sync::Arc;

/// Largest modulus in bits for 128-bit security with ternary secrets, by degree.
pub const SECURITY_TABLE: [(usize, u32); 2] = [(32_768, 868), (65_536, 1747)];
/// Primes that are left at level 0.
pub const BASE: usize = 2;
/// Most digits of key switching: what one sum of products takes.
pub const MAX_DIGITS: usize = primer_lattice::kernel::inner::MAX_DIGITS;
/// Most primes of a digit.
pub const MAX_SPECIAL: usize = 15;

/// A parameter set with its tables.
pub struct Params {
    degree: usize,
    levels: usize,
    digits: usize,
    special: usize,
    /// Data primes, those of level 0 first; then the key-switching primes.
    primes: Vec<Prime>,
    ntts: Vec<Ntt>,
    /// By level.
    scales: Vec<f64>,
    embedding: Embedding,
    simd: Simd,
}

/// Returns how many primes key switching adds for some levels and digits.
pub const fn special_primes(levels: usize, digits: usize) -> usize {
    (levels + BASE).div_ceil(digits)
}

impl Params {
    /// Makes a set of the given degree for `levels` products one after the other, with `digits`
    /// digits of key switching.
    ///
    /// # Errors
    /// [`FheError`] if the degree is unknown, a number out of range, or the modulus beyond the
    /// security table.
    pub fn new(degree: usize, levels: usize, digits: usize) -> Result<Arc<Self>, FheError> {
        let entry = SECURITY_TABLE.iter().find(|entry| entry.0 == degree);
        let limit = entry.ok_or(FheError::Degree { degree })?.1;
        let params = Self::unchecked(degree, levels, digits)?;
        let bits = params.modulus_bits();
        if bits > f64::from(limit) {
            return Err(FheError::Insecure {
                degree,
                bits: bits.ceil() as u32,
                limit,
            });
        }
        Ok(Arc::new(params))
    }

    /// Makes a small and insecure set: tests only, so that they are fast.
    #[cfg(test)]
    pub(crate) fn toy(degree: usize, levels: usize, digits: usize) -> Arc<Self> {
        Arc::new(Self::unchecked(degree, levels, digits).expect("in range"))
    }

    fn unchecked(degree: usize, levels: usize, digits: usize) -> Result<Self, FheError> {
        let special = special_primes(levels, digits.max(1));
        for (what, value, max) in [
            ("the number of levels", levels, 256),
            ("the number of digits", digits, MAX_DIGITS),
            ("the number of key-switching primes", special, MAX_SPECIAL),
        ] {
            if value == 0 || value > max {
                return Err(FheError::Range { what, value, max });
            }
        }
        let log = TWO_ADICITY.max(degree.trailing_zeros() + 1);
        let data = levels + BASE;
        let mut pool: Vec<Prime> = Prime::falling(log).take(2 * data + special).collect();
        let kept: Vec<Prime> = pool.drain(..BASE + special).collect();
        let near = f64::from(pool[levels / 2].value());
        let mut scales = vec![near];
        let mut chain = Vec::new();
        for _ in 0..levels {
            let scale = scales[scales.len() - 1];
            let distance = |q: &Prime| (f64::from(q.value()) - scale * scale / near).abs();
            let nearest = (0..pool.len())
                .min_by(|a, b| distance(&pool[*a]).total_cmp(&distance(&pool[*b])))
                .expect("primes are left");
            let prime = pool.swap_remove(nearest);
            scales.push(scale * scale / f64::from(prime.value()));
            chain.push(prime);
        }
        // Made from the top down, stored from the bottom up.
        scales.reverse();
        let (base, switching) = kept.split_at(BASE);
        let mut primes = base.to_vec();
        primes.extend(chain.into_iter().rev());
        primes.extend(switching);
        let simd = Simd::detect();
        Ok(Self {
            degree,
            levels,
            digits,
            special,
            ntts: primes.iter().map(|&q| Ntt::new(q, degree, simd)).collect(),
            primes,
            scales,
            embedding: Embedding::new(degree),
            simd,
        })
    }

    /// Returns the ring degree `N`.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns how many numbers one ciphertext holds, `N/2`.
    pub fn slots(&self) -> usize {
        self.degree / 2
    }

    /// Returns the level of a fresh ciphertext.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Returns the number of digits of key switching.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// Returns the number of primes of a digit, which is that of key-switching primes.
    pub fn special(&self) -> usize {
        self.special
    }

    /// Returns the number of data primes.
    pub fn data(&self) -> usize {
        self.levels + BASE
    }

    /// Returns the number of all primes.
    pub fn all(&self) -> usize {
        self.primes.len()
    }

    /// Returns `log2` of the product of all primes.
    pub fn modulus_bits(&self) -> f64 {
        let bits = self.primes.iter().map(|p| f64::from(p.value()).log2());
        bits.sum()
    }

    /// Returns the scale of every ciphertext at a level.
    pub fn scale(&self, level: usize) -> f64 {
        self.scales[level]
    }

    /// Returns prime `i`.
    pub fn prime(&self, i: usize) -> Prime {
        self.primes[i]
    }

    /// Returns the transform of prime `i`.
    pub fn ntt(&self, i: usize) -> &Ntt {
        &self.ntts[i]
    }

    /// Returns the encoder.
    pub fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    /// Returns the instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_table_is_refused() {
        assert!(Params::new(65_536, 44, 4).is_ok());
        let insecure = |degree, levels, digits| Params::new(degree, levels, digits).err();
        assert!(matches!(
            insecure(65_536, 47, 4),
            Some(FheError::Insecure { limit: 1747, .. })
        ));
        assert!(matches!(
            insecure(32_768, 44, 4),
            Some(FheError::Insecure { limit: 868, .. })
        ));
        assert_eq!(
            insecure(16_384, 2, 1),
            Some(FheError::Degree { degree: 16_384 })
        );
        assert!(matches!(
            insecure(65_536, 44, 9),
            Some(FheError::Range { value: 9, .. })
        ));
    }

    #[test]
    fn scales_stay_near_the_target() {
        let params = Params::new(65_536, 44, 4).unwrap();
        let target = params.scale(44);
        for level in 1..=44 {
            let q = f64::from(params.prime(level + BASE - 1).value());
            let below = params.scale(level).powi(2) / q;
            assert!((below / params.scale(level - 1) - 1.0).abs() < 1e-14);
            assert!((below / target - 1.0).abs() < 0.1, "{level}");
        }
        let mut primes: Vec<u32> = (0..params.all()).map(|i| params.prime(i).value()).collect();
        primes.sort_unstable();
        primes.dedup();
        assert_eq!(primes.len(), params.all());
    }
}
