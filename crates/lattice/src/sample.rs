//! Random polynomials.
//!
//! Secrets, errors and flooding noise are drawn without a branch or a table index that depends on
//! the value drawn. Only [`expand`], whose output is public, rejects.

use crate::prime::Prime;
use primer_ring::prg::Prg;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Bound of an error coefficient: a centred binomial of 42 coins, standard deviation 3.24.
pub const ERROR_BOUND: u32 = 21;
/// Flooding noise of slot packings lies in `[-2^FLOOD_BITS, 2^FLOOD_BITS)`.
pub const FLOOD_BITS: u32 = 77;
/// Uniform integers whose sum is one coefficient of it.
pub const FLOOD_TERMS: usize = 8;
/// Each of them is uniform in `[-2^FLOOD_TERM_BITS, 2^FLOOD_TERM_BITS)`.
pub const FLOOD_TERM_BITS: u32 = FLOOD_BITS - FLOOD_TERMS.trailing_zeros();

/// A distribution of flooding noise: the sum of some uniform integers. A sum of several has a
/// smooth density, so that the distances of many coefficients add like lengths and not like
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// How many integers.
    pub terms: usize,
    /// Each is uniform in `[-2^bits, 2^bits)`; from 64 to 120 bits.
    pub bits: u32,
}

impl Flood {
    /// What slot packings flood with.
    pub const SLOTS: Self = Self {
        terms: FLOOD_TERMS,
        bits: FLOOD_TERM_BITS,
    };

    /// No coefficient is larger than this.
    pub fn bound(self) -> f64 {
        self.terms as f64 * f64::from(self.bits).exp2()
    }
}

/// Words drawn at once.
const WORDS: usize = 512;

/// Uniform residues from a public generator: 30-bit words, those not below the prime skipped.
pub fn expand(prime: Prime, prg: &mut Prg, out: &mut [u32]) {
    let mut bytes = [0; 4 * WORDS];
    let mut filled = 0;
    while filled < out.len() {
        let words = (out.len() - filled).min(WORDS);
        prg.fill(&mut bytes[..4 * words]);
        for word in bytes[..4 * words].chunks_exact(4) {
            let x = u32::from_le_bytes(word.try_into().expect("four bytes")) >> 2;
            // Written always, kept if it is a residue: no misprediction costs.
            out[filled.min(out.len() - 1)] = x;
            filled += usize::from(x < prime.value());
        }
    }
}

/// Calls `f` with each of `count` secret 64-bit words.
fn each_word(rng: &mut impl CryptoRng, count: usize, mut f: impl FnMut(usize, u64)) {
    let mut bytes = Zeroizing::new([0; 8 * WORDS]);
    for start in (0..count).step_by(WORDS) {
        let words = (count - start).min(WORDS);
        rng.fill_bytes(&mut bytes[..8 * words]);
        for (i, word) in bytes[..8 * words].chunks_exact(8).enumerate() {
            f(
                start + i,
                u64::from_le_bytes(word.try_into().expect("eight bytes")),
            );
        }
    }
}

/// Coefficients uniform in {-1, 0, 1}, up to a bias of `2^-62`.
pub fn ternary(rng: &mut impl CryptoRng, count: usize) -> Zeroizing<Vec<i8>> {
    let mut out = Zeroizing::new(vec![0; count]);
    each_word(rng, count, |i, x| {
        out[i] = ((u128::from(x) * 3) >> 64) as i8 - 1;
    });
    out
}

/// Error coefficients: the difference of two sums of [`ERROR_BOUND`] coins.
pub fn error(rng: &mut impl CryptoRng, count: usize) -> Zeroizing<Vec<i8>> {
    const MASK: u64 = (1 << ERROR_BOUND) - 1;
    let mut out = Zeroizing::new(vec![0; count]);
    each_word(rng, count, |i, x| {
        let (a, b) = (x & MASK, (x >> ERROR_BOUND) & MASK);
        out[i] = a.count_ones() as i8 - b.count_ones() as i8;
    });
    out
}

/// Adds flooding noise to limbs of `count` coefficients each.
///
/// # Panics
/// If the limbs have another length, or the sums would not fit 128 bits.
pub fn add_flood(
    flood: Flood,
    primes: &[Prime],
    rng: &mut impl CryptoRng,
    count: usize,
    limbs: &mut [u32],
) {
    let Flood { terms, bits } = flood;
    assert_eq!(limbs.len(), count * primes.len());
    assert!((64..=120).contains(&bits) && (1..=64).contains(&terms));
    const LIMB: u128 = (1 << 30) - 1;
    // Sixteen bytes for each integer, of which as many bits are used as it has.
    let mask = (1u128 << (bits + 1)) - 1;
    let mut sums = Zeroizing::new(vec![0u128; count]);
    let mut bytes = Zeroizing::new(vec![0; 16 * terms * count.min(WORDS)]);
    for sums in sums.chunks_mut(WORDS) {
        let bytes = &mut bytes[..16 * terms * sums.len()];
        rng.fill_bytes(bytes);
        for (sum, bytes) in sums.iter_mut().zip(bytes.chunks_exact(16 * terms)) {
            for word in bytes.as_chunks::<16>().0 {
                *sum += u128::from_le_bytes(*word) & mask;
            }
        }
    }
    for (prime, limb) in primes.iter().zip(limbs.chunks_exact_mut(count)) {
        let unit = u64::from(prime.reduce60(1 << 30));
        let unit2 = u64::from(prime.mul(unit as u32, unit as u32));
        let centre = prime.mul(prime.pow(2, bits.into()), prime.reduce(terms as u64));
        for (x, &sum) in limb.iter_mut().zip(sums.iter()) {
            let (low, middle) = ((sum & LIMB) as u64, ((sum >> 30) & LIMB) as u64);
            let high = u64::from(prime.reduce((sum >> 60) as u64));
            // Below 2^30 + 2^60 + 2^60.
            let value = prime.reduce(low + middle * unit + high * unit2);
            *x = prime.add(*x, prime.sub(value, centre));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_the_distributions() {
        let mut rng = Prg::new(&[5; 16]);
        let n = 100_000;
        let secret = ternary(&mut rng, n);
        for v in -1..=1 {
            let share = secret.iter().filter(|&&x| x == v).count() as f64 / n as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.01, "{v}: {share}");
        }
        let noise = error(&mut rng, n);
        let mean = noise.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
        let variance = noise.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
        assert!(
            mean.abs() < 0.05 && (variance - 10.5).abs() < 0.3,
            "{mean} {variance}"
        );
        assert!(noise.iter().all(|x| x.unsigned_abs() <= ERROR_BOUND as u8));
    }

    #[test]
    fn expansion_is_uniform_and_repeatable() {
        let prime = Prime::largest(1)[0];
        let (mut a, mut b) = (vec![0; 5000], vec![0; 5000]);
        expand(prime, &mut Prg::new(&[2; 16]), &mut a);
        expand(prime, &mut Prg::new(&[2; 16]), &mut b);
        assert_eq!(a, b);
        assert!(a.iter().all(|&x| x < prime.value()));
        let mean = a.iter().map(|&x| f64::from(x)).sum::<f64>() / 5000.0 / f64::from(prime.value());
        assert!((mean - 0.5).abs() < 0.02);
    }

    #[test]
    fn flood_is_one_integer_in_every_limb() {
        // Three primes hold 90 bits: the integer is recovered and has the stated range.
        let primes = Prime::largest(3);
        let q: Vec<i128> = primes.iter().map(|p| p.value().into()).collect();
        let total = q[0] * q[1] * q[2];
        let n = 4000;
        let mut limbs = vec![0; 3 * n];
        add_flood(
            Flood::SLOTS,
            &primes,
            &mut Prg::new(&[6; 16]),
            n,
            &mut limbs,
        );
        let (mut mean, mut square) = (0.0, 0.0);
        let unit = f64::from(FLOOD_TERM_BITS).exp2();
        for j in 0..n {
            let mut x: i128 = 0;
            let mut weight: i128 = 1;
            for i in 0..3 {
                let digit = primes[i].from_signed_wide((x.rem_euclid(q[i])) as i64);
                let inverse = primes[i].invert(weight.rem_euclid(q[i]) as u32);
                let step = primes[i].mul(primes[i].sub(limbs[i * n + j], digit), inverse);
                x += weight * i128::from(step);
                weight *= q[i];
            }
            if x > total / 2 {
                x -= total;
            }
            assert!((-(1 << FLOOD_BITS)..1 << FLOOD_BITS).contains(&x));
            mean += x as f64 / unit / n as f64;
            square += (x as f64 / unit).powi(2) / n as f64;
        }
        // Variance 8/3 in units of a term; five standard errors.
        let variance = FLOOD_TERMS as f64 / 3.0;
        assert!(mean.abs() < 5.0 * (variance / n as f64).sqrt(), "{mean}");
        assert!((square / variance - 1.0).abs() < 0.12, "{square}");
    }
}
