//! Row-major matrices and exact integer products.
//!
//! Products over the integers go through the `gemm` crate in double precision. That is exact, not
//! an approximation: every partial sum is an integer below `2^53`, which is asserted from the
//! operands' widths before the product runs. Products modulo p, for which the online phase waits,
//! run on short limbs instead (`limbs`).

use crate::gemm::{self, Layout};
use crate::limbs;
pub use crate::limbs::Packed;

/// A dense row-major matrix.
#[derive(Clone, PartialEq, Eq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Copy + Default> Matrix<T> {
    /// Makes a matrix of default values (zeros).
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self {
            rows,
            cols,
            data: vec![T::default(); rows * cols],
        }
    }

    /// Makes a matrix from its rows laid end to end.
    ///
    /// # Panics
    /// If the length is not `rows · cols`.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(
            data.len(),
            rows * cols,
            "a {rows}x{cols} matrix has that many elements"
        );
        Self { rows, cols, data }
    }

    /// Makes a matrix from a function of row and column.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for r in 0..rows {
            for c in 0..cols {
                data.push(f(r, c));
            }
        }
        Self { rows, cols, data }
    }

    /// Returns the number of rows.
    #[inline]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    #[inline]
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Returns row `r`.
    #[inline]
    pub fn row(&self, r: usize) -> &[T] {
        &self.data[r * self.cols..][..self.cols]
    }

    /// Returns row `r`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, r: usize) -> &mut [T] {
        &mut self.data[r * self.cols..][..self.cols]
    }

    /// Returns the element in row `r` and column `c`.
    #[inline]
    pub fn get(&self, r: usize, c: usize) -> T {
        self.row(r)[c]
    }

    /// Returns all elements in row-major order.
    #[inline]
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Returns all elements in row-major order, to be changed.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Returns the elements in row-major order.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }

    /// Returns the matrix of the images of all elements.
    pub fn map<U: Copy + Default>(&self, f: impl FnMut(&T) -> U) -> Matrix<U> {
        Matrix {
            rows: self.rows,
            cols: self.cols,
            data: self.data.iter().map(f).collect(),
        }
    }

    /// Returns the matrix with rows and columns exchanged.
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |r, c| self.get(c, r))
    }

    /// Returns the `count` columns from `start` on.
    pub fn columns(&self, start: usize, count: usize) -> Self {
        Self::from_fn(self.rows, count, |r, c| self.get(r, start + c))
    }
}

/// Scratch of one product: what the operands look like in double precision, or in limbs.
#[derive(Default)]
pub struct Scratch {
    left: Vec<f64>,
    right: Vec<f64>,
    out: Vec<f64>,
    limbs: limbs::Scratch,
}

/// An integer type that [`product`] takes: exact in double precision.
pub trait Exact: Copy {
    /// Returns the same number in double precision.
    fn to_f64(self) -> f64;
}

impl Exact for i64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Exact for i32 {
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Exact for i16 {
    fn to_f64(self) -> f64 {
        self.into()
    }
}

fn magnitude(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, v| m.max(v.abs()))
}

/// Returns `left · right` over the integers.
///
/// # Panics
/// If the inner dimensions differ, or if the sums could reach `2^53` and so stop being exact.
pub fn product<A: Exact, B: Exact>(
    left: &Matrix<A>,
    right: &Matrix<B>,
    scratch: &mut Scratch,
) -> Matrix<i64> {
    assert_eq!(left.cols, right.rows, "inner dimensions of a product agree");
    let (m, k, n) = (left.rows, left.cols, right.cols);
    let Scratch {
        left: a,
        right: b,
        out,
        ..
    } = scratch;
    a.clear();
    a.extend(left.data.iter().map(|v| v.to_f64()));
    b.clear();
    b.extend(right.data.iter().map(|v| v.to_f64()));
    let bound = magnitude(a) * magnitude(b) * k as f64;
    assert!(
        bound < (1u64 << 53) as f64,
        "an exact product stays below 2^53, not {bound:e}"
    );
    out.clear();
    out.resize(m * n, 0.0);
    gemm::f64(a, Layout::rows(m, k), b, Layout::rows(k, n), out);
    Matrix {
        rows: m,
        cols: n,
        data: out.iter().map(|&v| v as i64).collect(),
    }
}

/// Returns `left · right` modulo p, for residues and small weights.
///
/// # Panics
/// If the inner dimensions differ.
pub fn product_mod(left: &Matrix<u64>, right: &Packed, scratch: &mut Scratch) -> Matrix<u64> {
    assert_eq!(
        left.cols,
        right.rows(),
        "inner dimensions of a product agree"
    );
    let data = limbs::product(&left.data, right, &mut scratch.limbs);
    modular(left.rows, right.cols(), data)
}

/// Returns `left · right` modulo p, for residues.
///
/// # Panics
/// If the inner dimensions differ or are beyond `2^19`.
pub fn product_residues(left: &Matrix<u64>, right: &Matrix<u64>) -> Matrix<u64> {
    assert_eq!(left.cols, right.rows, "inner dimensions of a product agree");
    let mut scratch = limbs::Scratch::default();
    let data =
        limbs::product_residues(&left.data, &right.data, left.cols, right.cols, &mut scratch);
    modular(left.rows, right.cols, data)
}

/// Makes a matrix of the result of a product; that of an empty inner dimension is zero.
fn modular(rows: usize, cols: usize, mut data: Vec<u64>) -> Matrix<u64> {
    data.resize(rows * cols, 0);
    Matrix { rows, cols, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn product_is_schoolbook(
            (m, k, n) in (1usize..12, 1usize..40, 1usize..40),
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let mut next = |bits: u32| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state as i64) >> (64 - bits)
            };
            let a = Matrix::from_fn(m, k, |_, _| next(20));
            let b = Matrix::from_fn(k, n, |_, _| next(15) as i16);
            let got = product(&a, &b, &mut Scratch::default());
            for r in 0..m {
                for c in 0..n {
                    let want: i64 = (0..k).map(|i| a.get(r, i) * i64::from(b.get(i, c))).sum();
                    prop_assert_eq!(got.get(r, c), want);
                }
            }
        }
    }

    #[test]
    fn modular_products_are_schoolbook() {
        let mut rng = crate::prg::Prg::new(&[8; 16]);
        let a = Matrix::from_fn(3, 50, |_, _| modulus::random(&mut rng));
        let w = Matrix::from_fn(50, 7, |_, _| modulus::random(&mut rng) as i16);
        let residues = w.map(|v| modulus::from_signed((*v).into()));
        let got = product_mod(&a, &Packed::new(&w), &mut Scratch::default());
        assert_eq!(got.data(), product_residues(&a, &residues).data());
        for r in 0..3 {
            for c in 0..7 {
                let want = (0..50).fold(0, |sum, i| {
                    modulus::add(sum, modulus::mul(a.get(r, i), residues.get(i, c)))
                });
                assert_eq!(got.get(r, c), want);
            }
        }
    }

    #[test]
    fn empty_products_are_zero() {
        let product = product_residues(&Matrix::zeros(2, 0), &Matrix::zeros(0, 3));
        assert_eq!((product.rows(), product.cols()), (2, 3));
        assert!(product.data().iter().all(|v| *v == 0));
        let none = product_mod(
            &Matrix::zeros(0, 5),
            &Packed::new(&Matrix::zeros(5, 3)),
            &mut Scratch::default(),
        );
        assert_eq!((none.rows(), none.cols()), (0, 3));
    }

    #[test]
    #[should_panic(expected = "stays below 2^53")]
    fn inexact_products_are_refused() {
        let big = Matrix::from_vec(1, 2, vec![1i64 << 40; 2]);
        product(&big, &big.transpose(), &mut Scratch::default());
    }

    #[test]
    fn views() {
        let m = Matrix::from_fn(2, 3, |r, c| (10 * r + c) as i32);
        assert_eq!(m.columns(1, 2).data(), [1, 2, 11, 12]);
        assert_eq!(m.transpose().row(2), [2, 12]);
        assert_eq!(m.map(|v| v * 2).get(1, 1), 22);
    }
}
