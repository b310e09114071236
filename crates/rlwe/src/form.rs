//! Forms: how products read the client's matrices.
//!
//! The client is given a matrix as it lies in the plan. How a product reads it is its *form*: which
//! rows, where heads begin, whether a head is turned. The form fixes what is encrypted.

use crate::error::{HeError, agree};
use primer_ring::matrix::Matrix;
use std::ops::Deref;
use zeroize::Zeroize;

/// How the `X_h` of all heads lie in the client's matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Side by side: `X_h` is a block of columns.
    Columns,
    /// On top of each other: `X_h` is a block of rows.
    Rows,
    /// Side by side and turned: the transpose of `X_h` is a block of columns.
    Turned,
}

/// How a product reads a matrix of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The first rows.
    Rows {
        /// Rows that are read.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// Heads as blocks of columns. How columns are cut depends on the width of a head's product,
    /// too.
    Heads {
        /// Number of heads.
        heads: usize,
        /// How each head lies in the matrix.
        operand: Operand,
        /// Rows of each head, as it is read.
        rows: usize,
        /// Columns of each head, as it is read.
        inputs: usize,
        /// Columns of each head of the product.
        outputs: usize,
    },
    /// One value for each row, repeated along it.
    Repeated {
        /// Rows of the matrix, which has one column.
        rows: usize,
    },
}

impl Form {
    /// Returns what is encrypted of a value, which has to be whole: a row for each row of the
    /// answer.
    ///
    /// # Errors
    /// If the value has another size.
    pub fn arrange<'a>(&self, value: &'a Matrix<u64>) -> Result<Arranged<'a>, HeError> {
        let sized = |rows: usize, cols: usize| {
            agree("rows of value and query", value.rows(), rows)?;
            agree("columns of value and query", value.cols(), cols)
        };
        match *self {
            Self::Rows { rows, cols } => {
                // More rows than are read are no fault.
                sized(value.rows().max(rows), cols)?;
                if value.rows() == rows {
                    return Ok(Arranged::Whole(value));
                }
                Ok(Wiped::from_fn(rows, cols, |r, c| value.get(r, c)).into())
            }
            Self::Heads {
                heads,
                operand: Operand::Columns,
                rows,
                inputs,
                ..
            } => {
                sized(rows, heads * inputs)?;
                Ok(Arranged::Whole(value))
            }
            Self::Heads {
                heads,
                operand: Operand::Rows,
                rows,
                inputs,
                ..
            } => {
                sized(heads * rows, inputs)?;
                let entry = |r: usize, c: usize| value.get(c / inputs * rows + r, c % inputs);
                Ok(Wiped::from_fn(rows, heads * inputs, entry).into())
            }
            Self::Heads {
                heads,
                operand: Operand::Turned,
                rows,
                inputs,
                ..
            } => {
                sized(inputs, heads * rows)?;
                let entry = |r: usize, c: usize| value.get(c % inputs, c / inputs * rows + r);
                Ok(Wiped::from_fn(rows, heads * inputs, entry).into())
            }
            Self::Repeated { rows } => {
                sized(rows, 1)?;
                Ok(Arranged::Whole(value))
            }
        }
    }
}

/// A value as a form wants it.
pub enum Arranged<'a> {
    /// As it was.
    Whole(&'a Matrix<u64>),
    /// In another order.
    Copied(Wiped),
}

impl From<Wiped> for Arranged<'_> {
    fn from(matrix: Wiped) -> Self {
        Self::Copied(matrix)
    }
}

impl Deref for Arranged<'_> {
    type Target = Matrix<u64>;

    fn deref(&self) -> &Matrix<u64> {
        match self {
            Self::Whole(value) => value,
            Self::Copied(copy) => copy,
        }
    }
}

/// A secret matrix that is overwritten when it is dropped.
pub struct Wiped(Matrix<u64>);

impl Wiped {
    fn from_fn(rows: usize, cols: usize, entry: impl FnMut(usize, usize) -> u64) -> Self {
        Self(Matrix::from_fn(rows, cols, entry))
    }

    /// Copies a matrix.
    pub fn copy(matrix: &Matrix<u64>) -> Self {
        Self(matrix.clone())
    }
}

impl Deref for Wiped {
    type Target = Matrix<u64>;

    fn deref(&self) -> &Matrix<u64> {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.data_mut().zeroize();
    }
}
