//! Key switching and rotations.
//!
//! [`Digits`] is the expensive half of a rotation: `c1` modulo each data prime, transformed modulo
//! every prime. It is done once for all rotations of a ciphertext (hoisting), prime by prime, so
//! that digits are used while they are in the cache. Each rotation then costs one sum of products
//! with its key and one permutation; the result is modulo `P·q` and `P` times too large, which the
//! caller divides out when it must, and not before.

use crate::ciphertext::Ciphertext;
use crate::error::HeError;
use crate::keys::GaloisKeys;
use crate::params::Params;
use primer_lattice::kernel::{aligned::Aligned, elementwise, inner::inner};
use primer_lattice::poly::Poly;

/// The digits of `c1`: its residues modulo each data prime, by coefficients. Room is kept from one
/// ciphertext to the next.
#[derive(Default)]
pub(crate) struct Digits {
    coefficients: Aligned,
}

impl Digits {
    fn len(params: &Params) -> usize {
        params.data_primes() * params.degree()
    }

    /// Takes the digits of a polynomial given by values.
    pub(crate) fn of_values(&mut self, params: &Params, c1: &[u32]) {
        let coefficients = self.coefficients.sized(Self::len(params));
        coefficients.copy_from_slice(c1);
        for (i, limb) in coefficients.chunks_exact_mut(params.degree()).enumerate() {
            params.ntt(i).inverse(limb);
        }
    }

    /// Takes the digits of a polynomial given by coefficients.
    pub(crate) fn of_coefficients(&mut self, params: &Params, c1: &[u32]) {
        self.coefficients
            .sized(Self::len(params))
            .copy_from_slice(c1);
    }

    /// Transforms all digits modulo prime `j`, end to end into `out`. A digit modulo its own prime
    /// may be at hand: the limb of `c1` by values.
    pub(crate) fn modulo(&self, params: &Params, j: usize, own: Option<&[u32]>, out: &mut [u32]) {
        let n = params.degree();
        let digits = self.coefficients.get(Self::len(params)).chunks_exact(n);
        for (i, (digit, out)) in digits.zip(out.chunks_exact_mut(n)).enumerate() {
            match own {
                Some(own) if i == j => out.copy_from_slice(own),
                // A digit is below 2^30 and so below twice any prime.
                _ => params.ntt(j).forward_from(digit, out),
            }
        }
    }
}

/// Rotates ciphertexts one at a time, with the memory for it.
pub(crate) struct Rotator<'a> {
    keys: &'a GaloisKeys,
    digits: Digits,
    /// Both halves modulo all primes, one limb, and the digits modulo one prime.
    work: Aligned,
}

impl<'a> Rotator<'a> {
    /// Returns a rotator with a client's keys.
    pub(crate) fn new(keys: &'a GaloisKeys) -> Self {
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
    pub(crate) fn rotate(&mut self, ct: &Ciphertext, steps: i32) -> Result<Ciphertext, HeError> {
        let params = &*self.keys.params;
        let (n, data, simd) = (params.degree(), params.data_primes(), params.simd());
        let all = params.all_primes();
        let key = self.keys.get(steps)?;
        self.digits.of_values(params, ct.halves[1].data());
        let work = self.work.sized((2 * all + 1 + data) * n);
        let (sums, rest) = work.split_at_mut(2 * all * n);
        let (limb, digits) = rest.split_at_mut(n);
        let (sums0, sums1) = sums.split_at_mut(all * n);
        for j in 0..all {
            let own = (j < data).then(|| ct.halves[1].limb(j));
            self.digits.modulo(params, j, own, digits);
            let (out0, out1) = (&mut sums0[j * n..][..n], &mut sums1[j * n..][..n]);
            inner(
                simd,
                params.prime(j),
                digits,
                key.modulo(params, j),
                out0,
                out1,
            );
        }
        let mut halves = [
            Poly::zero(params.basis(), data),
            Poly::zero(params.basis(), data),
        ];
        let (keep0, rest0) = sums0.split_at_mut(data * n);
        let (keep1, rest1) = sums1.split_at_mut(data * n);
        round_rest(params, rest0);
        round_rest(params, rest1);
        for j in 0..data {
            let sum = &mut keep0[j * n..][..n];
            divide_values(params, j, sum, rest0, limb);
            elementwise::add_assign(simd, params.prime(j), sum, ct.halves[0].limb(j));
            key.map.apply(simd, sum, halves[0].limb_mut(j));
            let sum = &mut keep1[j * n..][..n];
            divide_values(params, j, sum, rest1, limb);
            key.map.apply(simd, sum, halves[1].limb_mut(j));
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
        params.basis().inverse(special, j),
    );
}
