//! Key switching and rotations.
//!
//! [`Digits`] is the expensive half of a rotation: `c1` modulo each data prime, transformed modulo
//! every prime. It is computed once for all rotations of a ciphertext (hoisting). Each rotation then
//! costs one sum of products with its key and one permutation; the result is modulo `P·q` and `P`
//! times too large, which the caller divides out when it must, and not before.

use crate::ciphertext::Ciphertext;
use crate::error::HeError;
use crate::kernel::{elementwise, inner::inner};
use crate::keys::GaloisKeys;
use crate::params::Params;
use crate::poly::Poly;

/// The digits of `c1`, transformed: `[prime][digit][N]`.
pub struct Digits {
    data: Vec<u32>,
}

impl Default for Digits {
    fn default() -> Self {
        Self::new()
    }
}

impl Digits {
    /// No digits yet: room is kept from one ciphertext to the next.
    pub fn new() -> Self {
        Self { data: Vec::new() }
    }

    fn resize(&mut self, params: &Params) {
        let len = params.data_primes() * params.all_primes() * params.degree();
        self.data.resize(len, 0);
    }

    /// Digits of a polynomial given by values.
    pub fn of_values(&mut self, params: &Params, c1: &[u32]) {
        self.resize(params);
        let (n, data) = (params.degree(), params.data_primes());
        assert_eq!(c1.len(), data * n);
        let mut digit = vec![0; n];
        for (i, limb) in c1.chunks_exact(n).enumerate() {
            digit.copy_from_slice(limb);
            params.ntt(i).inverse(&mut digit);
            for j in 0..params.all_primes() {
                let out = &mut self.data[(j * data + i) * n..][..n];
                if i == j {
                    out.copy_from_slice(limb);
                } else {
                    // A digit is below 2^30 and so below twice any prime.
                    out.copy_from_slice(&digit);
                    params.ntt(j).forward(out);
                }
            }
        }
    }

    /// Digits of a polynomial given by coefficients.
    pub fn of_coefficients(&mut self, params: &Params, c1: &[u32]) {
        self.resize(params);
        let (n, data) = (params.degree(), params.data_primes());
        assert_eq!(c1.len(), data * n);
        for j in 0..params.all_primes() {
            for (i, digit) in c1.chunks_exact(n).enumerate() {
                let out = &mut self.data[(j * data + i) * n..][..n];
                out.copy_from_slice(digit);
                params.ntt(j).forward(out);
            }
        }
    }

    /// All digits modulo one prime.
    pub fn modulo(&self, params: &Params, prime: usize) -> &[u32] {
        let len = params.data_primes() * params.degree();
        &self.data[prime * len..][..len]
    }
}

/// Rotates a ciphertext to the left by `steps` slots of both rows.
///
/// # Errors
/// If there is no key for the rotation.
pub fn rotate(keys: &GaloisKeys, ct: &Ciphertext, steps: i32) -> Result<Ciphertext, HeError> {
    let params = &*keys.params;
    let key = keys.get(steps)?;
    let (n, data, all) = (params.degree(), params.data_primes(), params.all_primes());
    let mut digits = Digits::new();
    digits.of_values(params, ct.halves[1].data());
    let mut sums = [Poly::zero(params, all), Poly::zero(params, all)];
    for j in 0..all {
        let (b, a) = key.halves(params, j);
        let [s0, s1] = &mut sums;
        inner(
            params.simd(),
            params.prime(j),
            digits.modulo(params, j),
            b,
            a,
            s0.limb_mut(j),
            s1.limb_mut(j),
        );
    }
    let mut halves = sums.map(|sum| divide_values(params, sum));
    halves[0].add_assign(params, &ct.halves[0]);
    let mut image = vec![0; n];
    for half in &mut halves {
        for j in 0..data {
            key.map.apply(params.simd(), half.limb(j), &mut image);
            half.limb_mut(j).copy_from_slice(&image);
        }
    }
    Ok(Ciphertext { halves })
}

/// Divides a polynomial by the key-switching prime without leaving the values: only the dropped
/// limb is transformed.
fn divide_values(params: &Params, mut sum: Poly<crate::poly::Values>) -> Poly<crate::poly::Values> {
    let (n, data) = (params.degree(), params.data_primes());
    let dropped = params.prime(data);
    let half = dropped.value() / 2;
    let mut rest = sum.limb(data).to_vec();
    params.ntt(data).inverse(&mut rest);
    elementwise::add_constant(params.simd(), dropped, &mut rest, half);
    let mut values = vec![0; n];
    for j in 0..data {
        let prime = params.prime(j);
        for (v, &r) in values.iter_mut().zip(&rest) {
            // rest - half, lazily: below 2q.
            *v = r + prime.value() - half % prime.value();
        }
        params.ntt(j).forward(&mut values);
        elementwise::divide_limb(
            params.simd(),
            prime,
            sum.limb_mut(j),
            &values,
            0,
            params.inverse(data, j),
        );
    }
    let mut data_only = Poly::zero(params, data);
    data_only
        .data_mut()
        .copy_from_slice(&sum.data()[..data * n]);
    data_only
}
