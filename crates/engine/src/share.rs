//! Arithmetic on a party's shares: matrices of residues modulo p that are wiped when dropped.

use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use rand_core::CryptoRng;
use std::ops::{Deref, DerefMut};
use zeroize::Zeroize;

/// A party's share of a value, or a mask. It does not print and is not copied; what is needed
/// longer is held in an `Arc`.
pub struct Share(Matrix<u64>);

impl From<Matrix<u64>> for Share {
    fn from(matrix: Matrix<u64>) -> Self {
        Self(matrix)
    }
}

impl Deref for Share {
    type Target = Matrix<u64>;

    fn deref(&self) -> &Matrix<u64> {
        &self.0
    }
}

impl DerefMut for Share {
    fn deref_mut(&mut self) -> &mut Matrix<u64> {
        &mut self.0
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.data_mut().zeroize();
    }
}

impl Share {
    /// Makes one that is all zero.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Matrix::zeros(rows, cols).into()
    }

    /// Makes one from a function of row and column.
    pub fn from_fn(rows: usize, cols: usize, f: impl FnMut(usize, usize) -> u64) -> Self {
        Matrix::from_fn(rows, cols, f).into()
    }

    /// Draws uniform residues.
    pub fn random(rows: usize, cols: usize, rng: &mut impl CryptoRng) -> Self {
        Self::from_fn(rows, cols, |_, _| modulus::random(rng))
    }

    /// Adds another share: `self += other`.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, modulus::add);
    }

    /// Subtracts another share: `self -= other`.
    pub fn sub(&mut self, other: &Self) {
        self.combine(other, modulus::sub);
    }

    fn combine(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        assert_eq!((self.rows(), self.cols()), (other.rows(), other.cols()));
        self.data_mut()
            .iter_mut()
            .zip(other.data())
            .for_each(|(a, b)| *a = f(*a, *b));
    }

    /// Returns `-self`.
    pub fn negated(mut self) -> Self {
        self.data_mut()
            .iter_mut()
            .for_each(|a| *a = modulus::neg(*a));
        self
    }

    /// Negates some rows, of which it is public which.
    pub fn negate_rows(&mut self, negated: &[bool]) {
        for (r, negated) in negated.iter().enumerate() {
            if *negated {
                let row = self.row_mut(r).iter_mut();
                row.for_each(|a| *a = modulus::neg(*a));
            }
        }
    }

    /// Shifts all of it: `self *= 2^by`.
    pub fn shift(&mut self, by: u32) {
        let factor = power(by);
        self.data_mut()
            .iter_mut()
            .for_each(|a| *a = modulus::mul(*a, factor));
    }

    /// Returns its first rows.
    pub fn first_rows(&self, rows: usize) -> Self {
        self.row_block(0, rows)
    }

    /// Returns columns `block·width ..`.
    pub fn block(&self, block: usize, width: usize) -> Self {
        self.columns(block * width, width).into()
    }

    /// Returns rows `block·height ..`.
    pub fn row_block(&self, block: usize, height: usize) -> Self {
        let size = height * self.cols();
        let data = self.data()[block * size..][..size].to_vec();
        Matrix::from_vec(height, self.cols(), data).into()
    }

    /// Turns rows into columns.
    pub fn transposed(&self) -> Self {
        self.transpose().into()
    }
}

/// Returns `2^by mod p`; checked plans shift by at most `K`.
pub fn power(by: u32) -> u64 {
    debug_assert!(by <= K);
    (1u64 << by) % P
}

/// Computes the inner product of two rows.
pub fn dot(a: &[u64], b: &[u64]) -> u64 {
    let products = a.iter().zip(b);
    let sum = products.map(|(a, b)| u128::from(*a) * u128::from(*b));
    modulus::reduce_wide(sum.sum::<u128>())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tells whether residues look uniform: chi-square over 64 equal parts of `0..p`. With 63
    /// degrees of freedom, uniform values exceed 140 about once in ten million tries.
    pub(crate) fn looks_uniform(values: &[u64]) -> bool {
        assert!(values.len() >= 64 * 50, "too few values to tell");
        let mut counts = [0f64; 64];
        for v in values {
            counts[(u128::from(*v) * 64 / u128::from(P)) as usize] += 1.0;
        }
        let expected = values.len() as f64 / 64.0;
        let distance = counts.map(|c| (c - expected).powi(2) / expected);
        distance.iter().sum::<f64>() < 140.0
    }

    #[test]
    fn blocks_and_signs() {
        let a = Share::from_fn(4, 6, |r, c| (10 * r + c) as u64);
        assert_eq!(a.block(1, 3).row(2), [23, 24, 25]);
        assert_eq!(a.row_block(1, 2).row(0), a.row(2));
        assert_eq!(a.first_rows(1).data(), a.row(0));
        assert_eq!(a.transposed().get(5, 3), 35);
        let mut sum = Share::from_fn(4, 6, |r, c| a.get(r, c));
        sum.add(&a.first_rows(4).negated());
        assert!(sum.data().iter().all(|v| *v == 0));
        assert_eq!(dot(&[P - 1, 2], &[P - 1, 3]), 7);
    }
}
