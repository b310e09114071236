//! Polynomials modulo several primes, with their form in the type.

use crate::kernel::elementwise;
use crate::params::Params;
use std::marker::PhantomData;
use zeroize::Zeroize;

/// A polynomial is given by its coefficients.
pub enum Coefficients {}
/// A polynomial is given by its values in transform order.
pub enum Values {}

/// A polynomial modulo the first primes of a parameter set: one limb of `N` numbers for each.
///
/// With one limb more than there are data primes, the last belongs to the key-switching prime.
pub struct Poly<Form> {
    degree: usize,
    data: Vec<u32>,
    form: PhantomData<Form>,
}

impl<Form> Poly<Form> {
    /// The zero polynomial.
    pub fn zero(params: &Params, limbs: usize) -> Self {
        Self::from_data(params, vec![0; limbs * params.degree()])
    }

    pub(crate) fn from_data(params: &Params, data: Vec<u32>) -> Self {
        assert!(data.len().is_multiple_of(params.degree()));
        Self {
            degree: params.degree(),
            data,
            form: PhantomData,
        }
    }

    /// Number of limbs.
    pub fn limbs(&self) -> usize {
        self.data.len() / self.degree
    }

    /// One limb.
    pub fn limb(&self, i: usize) -> &[u32] {
        &self.data[i * self.degree..][..self.degree]
    }

    /// One limb, to be changed.
    pub fn limb_mut(&mut self, i: usize) -> &mut [u32] {
        &mut self.data[i * self.degree..][..self.degree]
    }

    /// All limbs end to end.
    pub fn data(&self) -> &[u32] {
        &self.data
    }

    pub(crate) fn data_mut(&mut self) -> &mut [u32] {
        &mut self.data
    }

    /// `self += other`, limb by limb; `other` has at least as many limbs.
    pub fn add_assign(&mut self, params: &Params, other: &Self) {
        for i in 0..self.limbs() {
            elementwise::add_assign(
                params.simd(),
                params.prime(i),
                self.limb_mut(i),
                other.limb(i),
            );
        }
    }

    pub(crate) fn wipe(&mut self) {
        self.data.zeroize();
    }

    pub(crate) fn copy(&self) -> Self {
        Self {
            degree: self.degree,
            data: self.data.clone(),
            form: PhantomData,
        }
    }

    fn cast<To>(self) -> Poly<To> {
        Poly {
            degree: self.degree,
            data: self.data,
            form: PhantomData,
        }
    }
}

impl Poly<Coefficients> {
    /// Small signed coefficients.
    pub(crate) fn from_small(params: &Params, limbs: usize, small: &[i8]) -> Self {
        let mut poly = Self::zero(params, limbs);
        for i in 0..limbs {
            elementwise::from_small(params.simd(), params.prime(i), poly.limb_mut(i), small);
        }
        poly
    }

    /// The same polynomial by values.
    pub fn into_values(mut self, params: &Params) -> Poly<Values> {
        for i in 0..self.limbs() {
            params.ntt(i).forward(self.limb_mut(i));
        }
        self.cast()
    }

    /// Divides by the last prime and rounds; that prime's limb goes away.
    ///
    /// With all limbs present the last prime is the key-switching prime.
    pub fn divide_by_last(&mut self, params: &Params) {
        let last = self.limbs() - 1;
        let (keep, rest) = self.data.split_at_mut(last * self.degree);
        divide_by_last(params, keep, rest);
        self.data.truncate(last * self.degree);
    }

    /// Divides by the last primes until `limbs` are left.
    pub fn drop_to(&mut self, params: &Params, limbs: usize) {
        while self.limbs() > limbs {
            self.divide_by_last(params);
        }
    }
}

/// `keep = round(x / q_last)` for `x` given by the limbs `keep` and the limb `rest`, modulo the next
/// prime, which is overwritten.
pub(crate) fn divide_by_last(params: &Params, keep: &mut [u32], rest: &mut [u32]) {
    let last = keep.len() / params.degree();
    let dropped = params.prime(last);
    let half = dropped.value() / 2;
    elementwise::add_constant(params.simd(), dropped, rest, half);
    for (i, limb) in keep.chunks_exact_mut(params.degree()).enumerate() {
        let prime = params.prime(i);
        elementwise::divide_limb(
            params.simd(),
            prime,
            limb,
            rest,
            half,
            params.inverse(last, i),
        );
    }
}

impl Poly<Values> {
    /// The same polynomial by coefficients.
    pub fn into_coefficients(mut self, params: &Params) -> Poly<Coefficients> {
        for i in 0..self.limbs() {
            params.ntt(i).inverse(self.limb_mut(i));
        }
        self.cast()
    }

    /// `self *= other`; `other` has at least as many limbs.
    pub fn mul_assign(&mut self, params: &Params, other: &Self) {
        for i in 0..self.limbs() {
            elementwise::mul_assign(
                params.simd(),
                params.prime(i),
                self.limb_mut(i),
                other.limb(i),
            );
        }
    }

    /// `self = -self`.
    pub fn negate(&mut self, params: &Params) {
        for i in 0..self.limbs() {
            elementwise::negate(params.simd(), params.prime(i), self.limb_mut(i));
        }
    }
}
