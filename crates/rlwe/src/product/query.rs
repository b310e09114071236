//! Queries: the client's matrices, each encrypted once for all products that read it in the same
//! way.
//!
//! A query has a [form](crate::form), which fixes what is encrypted of a value. So two products
//! with equal queries share one message, and two queries that differ in anything, if only in how
//! columns are cut into ciphertexts, are two messages.

use super::describe::describe_query;
use super::keys::ClientKeys;
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::form::Form;
use crate::params::Params;
use crate::split::heads::HeadShape;
use crate::split::slots::SlotShape;
use crate::wire::{self, Described};
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::fmt;
use std::sync::Arc;

/// One encrypted matrix of the client's. Products that read the same value by equal queries share
/// one message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Query {
    params: Arc<Params>,
    form: Form,
    described: Described,
}

impl Query {
    pub(super) fn new(params: &Arc<Params>, form: Form) -> Self {
        Self {
            params: params.clone(),
            described: describe_query(params, &form),
            form,
        }
    }

    /// Counts the bytes on the wire.
    pub fn wire_len(&self) -> u64 {
        let [.., count] = self.described.numbers;
        wire::query_len(&self.params, count) as u64
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
        let (secret, threads) = (keys.secret(&self.params)?, keys.threads());
        let matrix = &*self.form.arrange(value)?;
        let mut message = wire::start_query(&self.params, &self.described);
        let out = wire::query_ciphertexts(&mut message);
        match self.form {
            Form::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => HeadShape::choose(&self.params, rows, (heads, inputs, outputs))
                .encrypt(secret, threads, matrix, rng, out),
            Form::Rows { rows, cols } => {
                SlotShape::new(&self.params, rows, cols).encrypt(secret, threads, matrix, rng, out)
            }
            Form::Repeated { rows } => SlotShape::new(&self.params, rows, 1).encrypt_repeated(
                secret,
                threads,
                matrix.data(),
                rng,
                out,
            ),
        }
        Ok(message)
    }

    /// Reads at the server what the client encrypted.
    ///
    /// # Errors
    /// If the bytes are not such a matrix.
    pub fn read(&self, bytes: &[u8]) -> Result<Received, HeError> {
        Ok(Received {
            query: self.clone(),
            ciphertexts: wire::read_query(&self.params, &self.described, bytes)?,
        })
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.form, self.params)
    }
}

/// A query that the server has read.
pub struct Received {
    query: Query,
    ciphertexts: Vec<SeededCiphertext>,
}

impl Received {
    /// Returns its ciphertexts, if it is the query that a product reads.
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
