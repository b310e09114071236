//! Polynomials modulo several primes, with their form in the type.
//!
//! A polynomial is either a list of coefficients or a list of values, and confusing the two is a
//! mistake that no test of lengths detects; so the form is a type parameter, and the only ways from
//! one to the other are the transforms. A polynomial does not know its basis (thousands of them
//! share one): every operation is given it.

use crate::basis::Basis;
use crate::kernel::elementwise;
use std::marker::PhantomData;
use zeroize::Zeroize;

/// A polynomial is given by its coefficients.
pub enum Coefficients {}
/// A polynomial is given by its values in transform order.
pub enum Values {}

/// A polynomial modulo the first primes of a basis: one limb of `N` numbers for each.
pub struct Poly<Form> {
    degree: usize,
    data: Vec<u32>,
    form: PhantomData<Form>,
}

impl<Form> Poly<Form> {
    /// Returns the zero polynomial.
    pub fn zero(basis: &Basis, limbs: usize) -> Self {
        Self::from_data(basis, vec![0; limbs * basis.degree()])
    }

    /// Makes the polynomial of some limbs, end to end.
    ///
    /// # Panics
    /// If they are not whole.
    pub fn from_data(basis: &Basis, data: Vec<u32>) -> Self {
        assert!(data.len().is_multiple_of(basis.degree()));
        Self {
            degree: basis.degree(),
            data,
            form: PhantomData,
        }
    }

    /// Returns the number of limbs.
    pub fn limbs(&self) -> usize {
        self.data.len() / self.degree
    }

    /// Returns limb `i`.
    pub fn limb(&self, i: usize) -> &[u32] {
        &self.data[i * self.degree..][..self.degree]
    }

    /// Returns limb `i`, to be changed.
    pub fn limb_mut(&mut self, i: usize) -> &mut [u32] {
        &mut self.data[i * self.degree..][..self.degree]
    }

    /// Returns all limbs end to end.
    pub fn data(&self) -> &[u32] {
        &self.data
    }

    /// Returns all limbs end to end, to be changed.
    pub fn data_mut(&mut self) -> &mut [u32] {
        &mut self.data
    }

    /// Computes `self += other`, limb by limb; `other` has at least as many limbs.
    pub fn add_assign(&mut self, basis: &Basis, other: &Self) {
        for i in 0..self.limbs() {
            elementwise::add_assign(
                basis.simd(),
                basis.prime(i),
                self.limb_mut(i),
                other.limb(i),
            );
        }
    }

    /// Overwrites all limbs with zeros, for secrets that are about to be dropped.
    pub fn wipe(&mut self) {
        self.data.zeroize();
    }

    /// Returns a copy: a method, not `Clone`, because copies of secrets should be conspicuous.
    pub fn copy(&self) -> Self {
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
    /// Makes a polynomial of small signed coefficients.
    pub fn from_small(basis: &Basis, limbs: usize, small: &[i8]) -> Self {
        let mut poly = Self::zero(basis, limbs);
        for i in 0..limbs {
            elementwise::from_small(basis.simd(), basis.prime(i), poly.limb_mut(i), small);
        }
        poly
    }

    /// Returns the same polynomial by values.
    pub fn into_values(mut self, basis: &Basis) -> Poly<Values> {
        for i in 0..self.limbs() {
            basis.ntt(i).forward(self.limb_mut(i));
        }
        self.cast()
    }

    /// Divides by the last prime and rounds; that prime's limb is dropped.
    pub fn divide_by_last(&mut self, basis: &Basis) {
        let last = self.limbs() - 1;
        let (keep, rest) = self.data.split_at_mut(last * self.degree);
        basis.divide_by_last(keep, rest);
        self.data.truncate(last * self.degree);
    }

    /// Divides by the last primes until `limbs` are left.
    pub fn drop_to(&mut self, basis: &Basis, limbs: usize) {
        while self.limbs() > limbs {
            self.divide_by_last(basis);
        }
    }
}

impl Poly<Values> {
    /// Returns the same polynomial by coefficients.
    pub fn into_coefficients(mut self, basis: &Basis) -> Poly<Coefficients> {
        for i in 0..self.limbs() {
            basis.ntt(i).inverse(self.limb_mut(i));
        }
        self.cast()
    }

    /// Computes `self *= other`; `other` has at least as many limbs.
    pub fn mul_assign(&mut self, basis: &Basis, other: &Self) {
        for i in 0..self.limbs() {
            elementwise::mul_assign(
                basis.simd(),
                basis.prime(i),
                self.limb_mut(i),
                other.limb(i),
            );
        }
    }

    /// Computes `self = -self`.
    pub fn negate(&mut self, basis: &Basis) {
        for i in 0..self.limbs() {
            elementwise::negate(basis.simd(), basis.prime(i), self.limb_mut(i));
        }
    }
}
