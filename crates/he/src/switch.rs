//! Key switching and rotations.
//!
//! [`Digits`] is the expensive half of a rotation: `c1` modulo each data prime, transformed modulo
//! every prime. It is computed once for all rotations of a ciphertext (hoisting). Each rotation then
//! costs one sum of products with its key and one permutation; the result is modulo `P·q` and `P`
//! times too large, which the caller divides out when it must, and not before.

use crate::ciphertext::Ciphertext;
use crate::error::HeError;
use crate::kernel::{aligned::Aligned, elementwise, inner::inner};
use crate::keys::GaloisKeys;
use crate::params::Params;
use crate::poly::Poly;

/// The digits of `c1`, transformed: `[prime][digit][N]`. Room is kept from one ciphertext to the next.
#[derive(Default)]
pub struct Digits {
    data: Aligned,
}

impl Digits {
    fn len(params: &Params) -> usize {
        params.data_primes() * params.all_primes() * params.degree()
    }

    /// Digits of a polynomial given by values.
    pub fn of_values(&mut self, params: &Params, c1: &[u32]) {
        let all = self.data.sized(Self::len(params));
        let (n, data) = (params.degree(), params.data_primes());
        assert_eq!(c1.len(), data * n);
        let mut digit = vec![0; n];
        for (i, limb) in c1.chunks_exact(n).enumerate() {
            digit.copy_from_slice(limb);
            params.ntt(i).inverse(&mut digit);
            for j in 0..params.all_primes() {
                let out = &mut all[(j * data + i) * n..][..n];
                if i == j {
                    out.copy_from_slice(limb);
                } else {
                    // A digit is below 2^30 and so below twice any prime.
                    params.ntt(j).forward_from(&digit, out);
                }
            }
        }
    }

    /// Digits of a polynomial given by coefficients.
    pub fn of_coefficients(&mut self, params: &Params, c1: &[u32]) {
        let all = self.data.sized(Self::len(params));
        let (n, data) = (params.degree(), params.data_primes());
        assert_eq!(c1.len(), data * n);
        for j in 0..params.all_primes() {
            for (i, digit) in c1.chunks_exact(n).enumerate() {
                let out = &mut all[(j * data + i) * n..][..n];
                params.ntt(j).forward_from(digit, out);
            }
        }
    }

    /// All digits modulo one prime.
    pub fn modulo(&self, params: &Params, prime: usize) -> &[u32] {
        let len = params.data_primes() * params.degree();
        &self.data.get(Self::len(params))[prime * len..][..len]
    }
}

/// Rotates ciphertexts one at a time, with the memory for it.
pub struct Rotator<'a> {
    keys: &'a GaloisKeys,
    digits: Digits,
    /// Both halves modulo all primes, and one limb.
    work: Aligned,
}

impl<'a> Rotator<'a> {
    /// A rotator with a client's keys.
    pub fn new(keys: &'a GaloisKeys) -> Self {
        Self {
            keys,
            digits: Digits::default(),
            work: Aligned::default(),
        }
    }

    /// Rotates a ciphertext to the left by `steps` slots of both rows.
    ///
    /// # Errors
    /// If there is no key for the rotation.
    pub fn rotate(&mut self, ct: &Ciphertext, steps: i32) -> Result<Ciphertext, HeError> {
        let params = &*self.keys.params;
        let (n, data, simd) = (params.degree(), params.data_primes(), params.simd());
        let all = params.all_primes();
        let key = self.keys.get(steps)?;
        self.digits.of_values(params, ct.halves[1].data());
        let (sums, limb) = self.work.sized((2 * all + 1) * n).split_at_mut(2 * all * n);
        let (sums0, sums1) = sums.split_at_mut(all * n);
        for (j, (out0, out1)) in sums0
            .chunks_exact_mut(n)
            .zip(sums1.chunks_exact_mut(n))
            .enumerate()
        {
            let digits = self.digits.modulo(params, j);
            inner(
                simd,
                params.prime(j),
                digits,
                key.modulo(params, j),
                out0,
                out1,
            );
        }
        let mut halves = [Poly::zero(params, data), Poly::zero(params, data)];
        for (half, (sums, out)) in [sums0, sums1].into_iter().zip(&mut halves).enumerate() {
            let (keep, rest) = sums.split_at_mut(data * n);
            round_rest(params, rest);
            for (j, sum) in keep.chunks_exact_mut(n).enumerate() {
                let prime = params.prime(j);
                divide_values(params, j, sum, rest, limb);
                if half == 0 {
                    elementwise::add_assign(simd, prime, sum, ct.halves[0].limb(j));
                }
                key.map.apply(simd, sum, out.limb_mut(j));
            }
        }
        Ok(Ciphertext { halves })
    }
}

/// Prepares the limb of the key-switching prime, given by values, for [`divide_values`].
fn round_rest(params: &Params, rest: &mut [u32]) {
    let special = params.data_primes();
    let prime = params.prime(special);
    params.ntt(special).inverse(rest);
    elementwise::add_constant(params.simd(), prime, rest, prime.value() / 2);
}

/// Divides one limb, given by values, by the key-switching prime: only what is rounded off is
/// transformed.
fn divide_values(params: &Params, j: usize, sum: &mut [u32], rest: &[u32], limb: &mut [u32]) {
    let (special, prime) = (params.data_primes(), params.prime(j));
    let half = params.prime(special).value() / 2 % prime.value();
    // rest - half, lazily: below 2^30 + q.
    elementwise::add_lazy(params.simd(), limb, rest, prime.value() - half);
    params.ntt(j).forward(limb);
    elementwise::divide_limb(
        params.simd(),
        prime,
        sum,
        limb,
        0,
        params.inverse(special, j),
    );
}
