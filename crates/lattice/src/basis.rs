//! A basis: the primes whose product is a modulus, with what a polynomial over them needs.
//!
//! An integer below `q = q_0·q_1·…` is known by its residues. What has to be described beyond
//! arithmetic modulo each prime is how one prime is dropped: dividing by `q_l` and rounding is,
//! modulo every other prime, `(x + q_l/2 - r)/q_l` with `r` the residue of `x + q_l/2` modulo
//! `q_l`, so the table of inverses of each prime modulo each other one belongs to the basis.
//! Modulus switching, key switching and rescaling are all this division.

use crate::kernel::elementwise;
use crate::ntt::Ntt;
use crate::prime::{Prime, Shoup};
use crate::simd::Simd;

/// Primes of one ring degree, in order. A polynomial with `k` limbs lives modulo the first `k`.
pub struct Basis {
    degree: usize,
    simd: Simd,
    primes: Vec<Prime>,
    ntts: Vec<Ntt>,
    /// `inverses[i][j]`: prime `i` inverted modulo prime `j`.
    inverses: Vec<Vec<Shoup>>,
}

impl Basis {
    /// Makes the basis of some distinct primes, for polynomials of a power-of-two degree.
    ///
    /// # Panics
    /// If a prime has no transform of that degree ([`Ntt::new`]).
    pub fn new(primes: Vec<Prime>, degree: usize, simd: Simd) -> Self {
        let inverses = primes.iter().map(|a| {
            let invert = |b: &Prime| b.shoup(b.invert(a.value() % b.value()));
            primes
                .iter()
                .map(|b| if a == b { Shoup::default() } else { invert(b) })
                .collect()
        });
        Self {
            degree,
            simd,
            inverses: inverses.collect(),
            ntts: primes.iter().map(|&q| Ntt::new(q, degree, simd)).collect(),
            primes,
        }
    }

    /// Returns the ring degree `N`.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Returns all primes.
    pub fn primes(&self) -> &[Prime] {
        &self.primes
    }

    /// Returns prime `i`.
    pub fn prime(&self, i: usize) -> Prime {
        self.primes[i]
    }

    /// Returns the transform of prime `i`.
    pub fn ntt(&self, i: usize) -> &Ntt {
        &self.ntts[i]
    }

    /// Returns prime `i` inverted modulo prime `j`, which is another one.
    pub fn inverse(&self, i: usize, j: usize) -> Shoup {
        self.inverses[i][j]
    }

    /// Returns `log2` of the product of the first `limbs` primes.
    pub fn modulus_bits(&self, limbs: usize) -> f64 {
        let primes = self.primes[..limbs].iter();
        primes.map(|p| f64::from(p.value()).log2()).sum()
    }

    /// Computes `x/q` modulo 1 in units of `2^-128`, for `x` given by limbs of `fractions.len()`
    /// coefficients each: the point of the circle that a residue is, for every modulus. The result
    /// is too small by up to two units for each prime.
    ///
    /// By the Chinese remainder theorem `x/q` is the sum of `x_i·((q/q_i)^-1 mod q_i)/q_i`, up to
    /// an integer. The factor of `x_i` is taken to 160 bits after the point, so nothing is reduced
    /// modulo a prime.
    ///
    /// # Panics
    /// If there are more limbs than primes.
    pub fn fractions(&self, limbs: &[u32], fractions: &mut [u128]) {
        let n = fractions.len();
        let count = limbs.len().checked_div(n).unwrap_or(0);
        assert!(count <= self.primes.len() && limbs.len() == count * n);
        let factors = (0..count).map(|i| {
            let divisor = u128::from(self.primes[i].value());
            let shifted = u128::from(self.inverse_of_others(i, count)) << 96;
            let (high, rest) = (shifted / divisor, shifted % divisor);
            let low = ((rest << 64) / divisor) as u64;
            (high << 32 | u128::from(low >> 32), u64::from(low as u32))
        });
        let factors: Vec<(u128, u64)> = factors.collect();
        for (at, fraction) in fractions.iter_mut().enumerate() {
            let residues = limbs[at..].iter().step_by(n);
            *fraction = residues.zip(&factors).fold(0, |sum, (&x, &(high, low))| {
                let part = high.wrapping_mul(x.into());
                sum.wrapping_add(part)
                    .wrapping_add(((u64::from(x) * low) >> 32).into())
            });
        }
    }

    /// Returns the product of the first `count` primes except prime `i`, inverted modulo prime `i`.
    fn inverse_of_others(&self, i: usize, count: usize) -> u32 {
        let others = (0..count).filter(|&j| j != i);
        others.fold(1, |f, j| self.primes[i].mul(f, self.inverses[j][i].value))
    }

    /// Computes `keep = round(x / q_last)` for `x` given by coefficients: the limbs `keep`, and the
    /// limb `rest` modulo the next prime, which is overwritten.
    pub fn divide_by_last(&self, keep: &mut [u32], rest: &mut [u32]) {
        let last = keep.len() / self.degree;
        let half = self.primes[last].value() / 2;
        elementwise::add_constant(self.simd, self.primes[last], rest, half);
        for (i, limb) in keep.chunks_exact_mut(self.degree).enumerate() {
            let inverse = self.inverse(last, i);
            elementwise::divide_limb(self.simd, self.primes[i], limb, rest, half, inverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `x/q·2^128` computed digit by digit, for `x` given by its digits to the mixed
    /// base of the primes.
    #[test]
    fn fractions_are_quotients_by_the_modulus() {
        let n = 64;
        for limbs in [1, 4, 5, 6] {
            let basis = Basis::new(Prime::largest(limbs), n, Simd::detect());
            let q: Vec<u128> = basis.primes().iter().map(|p| p.value().into()).collect();
            // x = d_0 + d_1·q_0 + d_2·q_0·q_1 + …
            let digit = |i: usize, k: usize| match i {
                0 => 0,
                1 => q[k] - 1,
                _ => (((i * limbs + k) as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7) % q[k],
            };
            let residue = |i: usize, m: u128| {
                let digits = (0..limbs).rev();
                digits.fold(0, |x, k| (x * q[k] + digit(i, k)) % m)
            };
            let given = q
                .iter()
                .flat_map(|&m| (0..n).map(move |i| residue(i, m) as u32));
            let given: Vec<u32> = given.collect();
            let mut got = vec![7; n];
            basis.fractions(&given, &mut got);
            for (i, &got) in got.iter().enumerate() {
                // (…((d_0/q_0 + d_1)/q_1 + d_2)/q_2 …)/q_last, 32 bits of a quotient at a time.
                let mut words = [0u128; 5];
                for (k, &q) in q.iter().enumerate() {
                    let mut rest = digit(i, k);
                    for word in &mut words {
                        let whole = rest << 32 | *word;
                        (*word, rest) = (whole / q, whole % q);
                    }
                }
                let want = words[..4].iter().fold(0, |sum, word| sum << 32 | word);
                let short = want.wrapping_sub(got) as i128;
                let most = 2 * limbs as i128;
                assert!((0..=most).contains(&short), "{limbs} {i}: {short}");
            }
        }
    }

    #[test]
    fn division_rounds_to_the_nearest_integer() {
        let n = 64;
        let basis = Basis::new(Prime::largest(3), n, Simd::detect());
        let q: Vec<u128> = basis.primes().iter().map(|p| p.value().into()).collect();
        let (kept, last) = (q[0] * q[1], q[2]);
        let number = |i: usize| (i as u128 * 0x9e37_79b9_7f4a_7c15_f39c_c060) % (kept * last);
        let residues = |q: u128| (0..n).map(move |i| (number(i) % q) as u32);
        let mut keep: Vec<u32> = residues(q[0]).chain(residues(q[1])).collect();
        let mut rest: Vec<u32> = residues(last).collect();
        basis.divide_by_last(&mut keep, &mut rest);
        for i in 0..n {
            let want = (number(i) + last / 2) / last;
            assert_eq!(u128::from(keep[i]), want % q[0]);
            assert_eq!(u128::from(keep[n + i]), want % q[1]);
        }
    }
}
