//! Queries: the client's matrices, each encrypted once for all products that read it in the same
//! way.
//!
//! A query has a [form](primer_rlwe::form), which fixes what is encrypted of a value. So two
//! products with equal queries share one message, and two queries that differ in anything, if only
//! in how columns are cut into ciphertexts, are two messages.

use super::keys::ClientKeys;
use super::method::Method;
use crate::error::HeError;
use primer_ring::matrix::Matrix;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::error::HeError as Common;
use primer_rlwe::form::Form;
use rand_core::CryptoRng;
use std::fmt;

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
            len: method.packer.query_len(method.params(), &form)?,
        })
    }

    /// Counts the bytes on the wire.
    pub fn wire_len(&self) -> u64 {
        self.len as u64
    }

    /// Encrypts at the client a value that is given as it lies in the plan.
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
        let packer = self.method.packer;
        packer.encrypt(secret, &self.form, &matrix, rng)
    }

    /// Reads at the server what the client encrypted.
    ///
    /// # Errors
    /// If the bytes are not such a matrix.
    pub fn read(&self, bytes: &[u8]) -> Result<Received, HeError> {
        let packer = self.method.packer;
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
    /// Returns its ciphertexts, if it is the query that a product reads.
    pub(super) fn answering(&self, wanted: &Query) -> Result<&[SeededCiphertext], Common> {
        if self.query == *wanted {
            return Ok(&self.ciphertexts);
        }
        Err(Common::OtherProduct {
            what: "the query",
            found: format!("{:?}", self.query),
            wanted: format!("{wanted:?}"),
        })
    }
}
