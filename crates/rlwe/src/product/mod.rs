//! Products: the one face of this crate.
//!
//! # The life of a product
//! A [`Product`] is a specification that both parties derive from the plan: a [`Relation`], which
//! says what is computed. It is one answer of the server's to one or two [queries](Query) of the
//! client's:
//!
//! ```text
//! both      Product::new                     sizes and odds are checked here
//!           KeyNeeds::add                    of all products of a session
//! once      client  ClientKeys::generate     then publish: its public keys
//!           server  ServerKeys::receive
//! each      client  Query::encrypt           once for each value and way of reading it
//! time      server  Query::read, Product::prepare for the masks of one inference, Product::split:
//!                   its share, and the answer
//!           client  Product::decrypt         its share
//! ```
//!
//! Neither party learns anything from these messages, even if the client encrypts something else,
//! and no mask is chosen (`crate::split` has the reasons). Shares are right but with a
//! probability that is checked ([`check_odds`]).
//!
//! # Who knows what
//! A user of this module knows relations and bytes. How matrices lie in ciphertexts is known to
//! `plan` and to what is below it. Parameters belong to the product: a session may use several sets
//! ([`KeyNeeds`]).
//!
//! ```
//! use primer_rlwe::product::{ClientKeys, KeyNeeds, Product, Relation, ServerKeys, Weights};
//! # use primer_rlwe::error::HeError;
//! # use primer_ring::{matrix::Matrix, modulus, prg::Prg};
//! # let (mut ours, mut theirs) = (Prg::new(&[1; 16]), Prg::new(&[2; 16]));
//! let product = Product::new(Relation::Hadamard { rows: 200, cols: 3 })?;
//! let needs: KeyNeeds = [&product].into_iter().collect();
//!
//! // Once in a session.
//! let client = ClientKeys::generate(&needs, &mut ours);
//! let mut wire = Vec::new();
//! client.publish(&mut ours, |bytes| {
//!     wire.push(bytes.to_vec());
//!     Ok::<_, HeError>(())
//! })?;
//! let mut wire = wire.into_iter();
//! let receive = |_| Ok::<_, HeError>(wire.next().unwrap());
//! let mut server = ServerKeys::receive(&needs, receive)?;
//!
//! // Once for each product.
//! let x = Matrix::from_fn(200, 3, |t, j| (10 * t + j) as u64);
//! let query = product.queries()[0].encrypt(&client, &x, &mut ours)?;
//!
//! let u = Matrix::from_fn(200, 3, |t, j| (t + 5 * j) as u64);
//! let weights = product.prepare(Weights::Hadamard(&u))?;
//! let query = product.queries()[0].read(&query)?;
//! let (answer, theirs) = product.split(&mut server, &[&query], &weights, &mut theirs)?;
//!
//! let ours = product.decrypt(&client, &answer)?;
//! assert_eq!(modulus::add(ours.get(7, 1), theirs.get(7, 1)), 71 * 12);
//! # Ok::<_, HeError>(())
//! ```

mod describe;
mod keys;
mod plan;
mod query;
mod relation;
#[cfg(test)]
mod tests;
mod weights;

pub use crate::form::Operand;
pub use crate::split::ODDS;
pub use keys::{ClientKeys, KeyNeeds, ServerKeys, SetNeeds};
pub use query::{Query, Received};
pub use relation::{Relation, Weights};

use crate::ciphertext::SeededCiphertext;
use crate::error::{HeError, agree};
use crate::params::Params;
use crate::split;
use crate::wire;
use describe::{AnswerLayout, describe_answer};
use plan::Plan;
use primer_ring::matrix::Matrix;
use rand_core::CryptoRng;
use std::fmt;
use std::sync::Arc;
use weights::Factors;

/// The specification of one product: what is asked and what is answered.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Product {
    params: Arc<Params>,
    relation: Relation,
    queries: Vec<Query>,
    answer: AnswerLayout,
}

/// A server's masks, encoded for one product. Wiped when dropped.
pub struct EncodedWeights {
    relation: Relation,
    params: Arc<Params>,
    factors: Factors,
}

impl Product {
    /// Returns the product of a relation.
    ///
    /// # Errors
    /// If a size is zero or too large, or shares would be wrong too often.
    pub fn new(relation: Relation) -> Result<Self, HeError> {
        Self::with_params(&Params::split(), relation)
    }

    /// Returns the product of a relation with some parameters.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_params(params: &Arc<Params>, relation: Relation) -> Result<Self, HeError> {
        relation.check()?;
        split::check(Plan::of(params, &relation).split(params).odds(params))?;
        let forms = relation.forms().into_iter();
        Ok(Self {
            params: params.clone(),
            relation,
            queries: forms.map(|form| Query::new(params, form)).collect(),
            answer: describe_answer(params, &relation),
        })
    }

    /// Returns a bound of the probability that one run of this product gives a wrong share, which
    /// neither party notices. It adds up over products ([`check_odds`]).
    pub fn odds(&self) -> f64 {
        self.plan().split(&self.params).odds(&self.params)
    }

    fn plan(&self) -> Plan {
        Plan::of(&self.params, &self.relation)
    }

    /// Returns what it computes.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// Returns the client's matrices that it reads, in order.
    pub fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// Counts the rows of the answer.
    pub fn rows(&self) -> usize {
        self.relation.size().0
    }

    /// Counts the columns of the answer.
    pub fn cols(&self) -> usize {
        self.relation.size().1
    }

    /// Counts the bytes of the answer on the wire.
    pub fn answer_len(&self) -> u64 {
        self.answer.len as u64
    }

    /// Returns the keys that it needs, on its own.
    pub fn keys(&self) -> KeyNeeds {
        std::iter::once(self).collect()
    }

    /// Encodes weights at the server: masks of one inference.
    ///
    /// # Errors
    /// If they are weights of another relation or have other sizes.
    pub fn prepare(&self, weights: Weights<'_>) -> Result<EncodedWeights, HeError> {
        self.relation.check_weights(&weights)?;
        Ok(EncodedWeights {
            relation: self.relation,
            params: self.params.clone(),
            factors: Factors::new(&self.params, self.plan(), &weights),
        })
    }

    /// Multiplies at the server: returns the answer as it travels, and the server's share of the
    /// product; the client's is what [`Self::decrypt`] gives. The answer is pseudorandom for all
    /// queries that there are.
    ///
    /// The caller wipes the share.
    ///
    /// # Errors
    /// If queries or weights are those of another product, or the client's keys lack the set that
    /// the product needs.
    pub fn split(
        &self,
        keys: &mut ServerKeys,
        queries: &[&Received],
        weights: &EncodedWeights,
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<u8>, Matrix<u64>), HeError> {
        let queries = self.check_answer(queries, weights)?;
        let keys = keys.set(&self.params)?;
        weights.factors.answer(&self.answer, keys, &queries, rng)
    }

    /// Returns the ciphertexts of the queries, if they and the weights are this product's.
    fn check_answer<'a>(
        &self,
        queries: &[&'a Received],
        weights: &EncodedWeights,
    ) -> Result<Vec<&'a [SeededCiphertext]>, HeError> {
        if (weights.relation, &weights.params) != (self.relation, &self.params) {
            return Err(HeError::OtherProduct {
                what: "the encoded weights",
                found: format!("{}, {:?}", weights.relation, weights.params),
                wanted: format!("{self:?}"),
            });
        }
        agree("queries of the product", queries.len(), self.queries.len())?;
        let received = queries.iter().zip(&self.queries);
        received
            .map(|(received, query)| received.answering(query))
            .collect()
    }

    /// Returns the share of the client.
    ///
    /// # Errors
    /// If the bytes do not have the form of an answer to this product. A wrong key and damaged data
    /// are not seen: the rest of an answer is any bytes of its length.
    pub fn decrypt(&self, keys: &ClientKeys, answer: &[u8]) -> Result<Matrix<u64>, HeError> {
        let (secret, threads) = (keys.secret(&self.params)?, keys.threads());
        let AnswerLayout {
            described,
            width,
            len,
        } = self.answer;
        let bytes = wire::read_answer(&self.params, &described, answer, len)?;
        match self.plan() {
            Plan::Heads(shape) => shape.open(secret, threads, bytes, width),
            Plan::Sums(shape) => shape.open_sums(secret, threads, bytes, width),
            Plan::Products(shape, _) => shape.open(secret, threads, bytes, width),
        }
    }
}

/// Refuses products that together give a wrong share with a probability of more than [`ODDS`]:
/// all products of an inference, or of several that are prepared together.
///
/// # Errors
/// [`HeError::Odds`] with the probability reached and allowed.
pub fn check_odds<'a>(products: impl IntoIterator<Item = &'a Product>) -> Result<(), HeError> {
    split::check(products.into_iter().map(Product::odds).sum())
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", self.relation, self.params)
    }
}

impl EncodedWeights {
    /// Counts the bytes in memory.
    pub fn memory(&self) -> usize {
        self.factors.memory()
    }
}
