//! Queries: the client's matrices, each encrypted once for all products that read it in the same
//! way.
//!
//! The client is given a matrix as it lies in the plan. How a product reads it is its *form*: which
//! rows, where heads begin, whether a head is turned. The form fixes what is encrypted, so two
//! products with equal queries share one message, and two queries that differ in anything, if only
//! in how columns are cut into ciphertexts, are two messages.

use super::keys::ClientKeys;
use super::method::Method;
use super::relation::Operand;
use crate::ciphertext::SeededCiphertext;
use crate::error::{HeError, agree};
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::fmt;
use std::ops::Deref;
use zeroize::Zeroize;

/// How a product reads a matrix of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The first rows.
    Rows { rows: usize, cols: usize },
    /// Heads as blocks of columns. How columns are cut depends on the width of a head's product,
    /// too.
    Heads {
        heads: usize,
        operand: Operand,
        rows: usize,
        inputs: usize,
        outputs: usize,
    },
    /// One value for each row, repeated along it.
    Repeated { rows: usize },
}

impl Form {
    /// What is encrypted of a value, which has to be whole: a row for each row of the answer.
    fn arrange<'a>(&self, value: &'a Matrix<u64>) -> Result<Arranged<'a>, HeError> {
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
enum Arranged<'a> {
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
pub(super) struct Wiped(Matrix<u64>);

impl Wiped {
    fn from_fn(rows: usize, cols: usize, entry: impl FnMut(usize, usize) -> u64) -> Self {
        Self(Matrix::from_fn(rows, cols, entry))
    }

    /// A copy.
    pub(super) fn copy(matrix: &Matrix<u64>) -> Self {
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

/// One encrypted matrix of the client's. Products that read the same value by equal queries share
/// one message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Query {
    method: Method,
    form: Form,
    len: usize,
}

impl Query {
    pub(super) fn new(method: &Method, form: Form) -> Result<Self, HeError> {
        Ok(Self {
            method: method.clone(),
            form,
            len: method.packer().query_len(method.params(), &form)?,
        })
    }

    /// Bytes on the wire.
    pub fn wire_len(&self) -> u64 {
        self.len as u64
    }

    /// The client: encrypts a value, given as it lies in the plan.
    ///
    /// # Errors
    /// If the value does not have the query's size, or there is no secret for its parameters.
    pub fn encrypt(
        &self,
        keys: &ClientKeys,
        value: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u8>, HeError> {
        let secret = keys.secret(self.method.params())?;
        let matrix = self.form.arrange(value)?;
        let packer = self.method.packer();
        packer.encrypt(secret, keys.threads(), &self.form, &matrix, rng)
    }

    /// The server: reads what the client encrypted.
    ///
    /// # Errors
    /// If the bytes are not such a matrix.
    pub fn read(&self, bytes: &[u8]) -> Result<Received, HeError> {
        let packer = self.method.packer();
        Ok(Received {
            query: self.clone(),
            ciphertexts: packer.read(self.method.params(), &self.form, bytes)?,
        })
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.form, self.method)
    }
}

/// A query that the server has read.
pub struct Received {
    query: Query,
    ciphertexts: Vec<SeededCiphertext>,
}

impl Received {
    /// Its ciphertexts, if it is the query that a product reads.
    pub(super) fn answering(&self, wanted: &Query) -> Result<&[SeededCiphertext], HeError> {
        if self.query == *wanted {
            return Ok(&self.ciphertexts);
        }
        Err(HeError::OtherProduct {
            what: "the query",
            found: format!("{:?}", self.query),
            wanted: format!("{wanted:?}"),
        })
    }
}
