//! Products: the one face of this crate.
//!
//! # The life of a product
//! A [`Product`] is a specification that both parties derive from the plan: a [`Relation`], which
//! says what is computed, and a [`Method`], which says with which parameters and in which packing.
//! It is one answer of the server's to one or two [queries](Query) of the client's:
//!
//! ```text
//! both      Product::new                     sizes and worst-case noise are checked here
//!           KeyNeeds::add                    of all products of a session
//! once      client  ClientKeys::generate     then publish: its public keys
//!           server  ServerKeys::receive
//!           server  Product::prepare_within  the model's weights, encoded as far as memory goes
//! each      client  Query::encrypt           once for each value and way of reading it
//! time      server  Query::read, Product::prepare for weights of one inference, Product::answer
//!           client  Product::decrypt         learns the product plus the server's mask
//! ```
//!
//! The server learns nothing. The client learns the sum of product and mask and nothing else about
//! weights or mask: every answer gets a fresh encryption of zero, a mask in every slot that holds
//! no result, and flooding noise (`crate::answer`), and none of that is an option.
//!
//! # Who knows what
//! A user of this module knows relations and bytes. Layouts, chunks and rotations are known to
//! `slotted`, the packings of the paper, and to what is below it. Parameters belong to the product:
//! a session may use several sets ([`KeyNeeds`]).
//!
//! ```
//! use primer_paper_he::product::{
//!     ClientKeys, KeyNeeds, Method, Product, Relation, ServerKeys, Weights,
//! };
//! # use primer_paper_he::error::HeError;
//! # use primer_ring::{matrix::Matrix, modulus, prg::Prg};
//! # let (mut ours, mut theirs) = (Prg::new(&[1; 16]), Prg::new(&[2; 16]));
//! let relation = Relation::Dense { rows: 200, inputs: 3, outputs: 2 };
//! let product = Product::new(&Method::tokens_first(), relation)?;
//! let needs: KeyNeeds = [&product].into_iter().collect();
//!
//! // Once in a session.
//! let client = ClientKeys::generate(&needs, &mut ours);
//! let mut wire = Vec::new();
//! client.publish(&mut ours, |_, bytes| {
//!     wire.push(bytes.to_vec());
//!     Ok::<_, HeError>(())
//! })?;
//! let mut wire = wire.into_iter();
//! let receive = |_, _| Ok::<_, HeError>(wire.next().unwrap());
//! let mut server = ServerKeys::receive(&needs, receive)?;
//!
//! // Once for each product.
//! let x = Matrix::from_fn(200, 3, |t, i| (10 * t + i) as u64);
//! let query = product.queries()[0].encrypt(&client, &x, &mut ours)?;
//!
//! let w = Matrix::from_fn(3, 2, |i, o| (i + 5 * o) as u64);
//! let weights = product.prepare(Weights::Dense(&w))?;
//! let mask = Matrix::from_fn(200, 2, |_, _| modulus::random(&mut theirs));
//! let query = product.queries()[0].read(&query)?;
//! let answer = product.answer(&mut server, &[&query], &weights, &mask, &mut theirs)?;
//!
//! let masked = product.decrypt(&client, &answer)?;
//! let result = modulus::sub(masked.get(7, 1), mask.get(7, 1));
//! assert_eq!(result, 70 * 5 + 71 * 6 + 72 * 7);
//! # Ok::<_, HeError>(())
//! ```

mod keys;
mod method;
mod multipliers;
mod query;
mod relation;
mod slotted;

pub use keys::{ClientKeys, KeyKind, KeyNeeds, ServerKeys, SetNeeds};
pub use method::Method;
pub use primer_rlwe::form::Operand;
pub use query::{Query, Received};
pub use relation::{Relation, Weights};

use crate::counters::Counters;
use crate::error::HeError;
use multipliers::Multiplier;
use primer_ring::matrix::Matrix;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::error::{HeError as Common, agree};
use rand_core::CryptoRng;
use std::fmt;

/// The specification of one product: what is asked, what is answered, with which keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Product {
    method: Method,
    relation: Relation,
    queries: Vec<Query>,
    rotations: Vec<i32>,
    answer_len: usize,
}

/// A server's weights, encoded for one product. Wiped when dropped.
pub struct EncodedWeights {
    relation: Relation,
    method: Method,
    multiplier: Box<dyn Multiplier>,
}

impl Product {
    /// Returns the product of a relation by a method.
    ///
    /// # Errors
    /// If a size is zero or too large, or the worst-case noise does not fit the parameters.
    pub fn new(method: &Method, relation: Relation) -> Result<Self, HeError> {
        relation.check()?;
        let (params, packer) = (method.params(), method.packer);
        packer.check(params, &relation)?;
        let forms = relation.forms().into_iter();
        Ok(Self {
            method: method.clone(),
            relation,
            queries: forms
                .map(|form| Query::new(method, form))
                .collect::<Result<_, _>>()?,
            rotations: packer.rotations(params, &relation)?,
            answer_len: packer.answer_len(params, &relation)?,
        })
    }

    /// Returns a bound of the squared statistical distance between what a client sees of one run of
    /// this product and something that does not depend on the weights. Squares add up over products
    /// and inferences ([`lifetime`]).
    pub fn squared_distance(&self) -> f64 {
        let packer = self.method.packer;
        packer.squared_distance(self.method.params(), &self.relation)
    }

    /// Returns what it computes.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// Returns how it is computed.
    pub fn method(&self) -> &Method {
        &self.method
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
        self.answer_len as u64
    }

    /// Returns the keys that it needs, on its own.
    pub fn keys(&self) -> KeyNeeds {
        std::iter::once(self).collect()
    }

    /// Returns the rotations that it makes.
    fn rotations(&self) -> &[i32] {
        &self.rotations
    }

    /// Encodes weights at the server, such as masks of one inference.
    ///
    /// # Errors
    /// If they are weights of another relation or have other sizes.
    pub fn prepare(&self, weights: Weights<'_>) -> Result<EncodedWeights, HeError> {
        self.relation.check_weights(&weights)?;
        let (params, packer) = (self.method.params(), self.method.packer);
        Ok(self.encoded(packer.prepare(params, &self.relation, &weights)?))
    }

    /// Encodes at the server the small signed weights of a model, for a dense product that is
    /// computed again and again. What they take is taken from `room`, in bytes; if there is too
    /// little, the weights themselves are kept and encoded anew for every product, which then takes
    /// up to twice as long.
    ///
    /// # Errors
    /// If the product is not dense or has other sizes.
    pub fn prepare_within(
        &self,
        weights: &Matrix<i16>,
        room: &mut usize,
    ) -> Result<EncodedWeights, HeError> {
        let Relation::Dense {
            inputs, outputs, ..
        } = self.relation
        else {
            let error = Common::OtherProduct {
                what: "the weights",
                found: "a dense product".into(),
                wanted: self.relation.to_string(),
            };
            return Err(error.into());
        };
        relation::check_size(weights, inputs, outputs)?;
        let (params, packer) = (self.method.params(), self.method.packer);
        let made = packer.prepare_within(params, &self.relation, weights, room)?;
        Ok(self.encoded(made))
    }

    fn encoded(&self, multiplier: Box<dyn Multiplier>) -> EncodedWeights {
        EncodedWeights {
            relation: self.relation,
            method: self.method.clone(),
            multiplier,
        }
    }

    /// Returns the product plus a mask, circuit-private, as it travels: the server's part.
    ///
    /// # Errors
    /// If queries or weights are those of another product, the mask has another size, or the
    /// client's keys lack one that the product needs.
    pub fn answer(
        &self,
        keys: &mut ServerKeys,
        queries: &[&Received],
        weights: &EncodedWeights,
        mask: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u8>, HeError> {
        let (answer, _) = self.answer_counted(keys, queries, weights, mask, rng)?;
        Ok(answer)
    }

    /// Returns the answer, and what it took.
    pub(crate) fn answer_counted(
        &self,
        keys: &mut ServerKeys,
        queries: &[&Received],
        weights: &EncodedWeights,
        mask: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<u8>, Counters), HeError> {
        let queries = self.check_answer(queries, weights)?;
        agree("rows of mask and answer", mask.rows(), self.rows())?;
        agree("columns of mask and answer", mask.cols(), self.cols())?;
        let evaluator = keys.evaluator(self.method.params(), &self.rotations)?;
        weights.multiplier.answer(evaluator, &queries, mask, rng)
    }

    /// Returns the ciphertexts of the queries, if they and the weights are this product's.
    fn check_answer<'a>(
        &self,
        queries: &[&'a Received],
        weights: &EncodedWeights,
    ) -> Result<Vec<&'a [SeededCiphertext]>, Common> {
        if (weights.relation, &weights.method) != (self.relation, &self.method) {
            return Err(Common::OtherProduct {
                what: "the encoded weights",
                found: format!("{}, {:?}", weights.relation, weights.method),
                wanted: format!("{self:?}"),
            });
        }
        agree("queries of the product", queries.len(), self.queries.len())?;
        let received = queries.iter().zip(&self.queries);
        received
            .map(|(received, query)| received.answering(query))
            .collect()
    }

    /// Returns the product plus the server's mask: the client's part.
    ///
    /// # Errors
    /// If the bytes are not an answer to this product, or their noise is beyond its bound: a wrong
    /// key or damaged data.
    pub fn decrypt(&self, keys: &ClientKeys, answer: &[u8]) -> Result<Matrix<u64>, HeError> {
        let secret = keys.secret(self.method.params())?;
        let packer = self.method.packer;
        packer.decrypt(secret, &self.relation, answer)
    }
}

/// Counts the inferences of one client that are within a statistical distance of `2^-40` of
/// something that does not depend on the weights: `products` are all products of some inferences,
/// each as often as it is run.
pub fn lifetime<'a>(products: impl IntoIterator<Item = &'a Product>, inferences: usize) -> f64 {
    let squared: f64 = products.into_iter().map(Product::squared_distance).sum();
    crate::noise::SQUARED_DISTANCE / (squared / inferences as f64)
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}", self.relation, self.method)
    }
}

impl EncodedWeights {
    /// Counts the bytes in memory.
    pub fn memory(&self) -> usize {
        self.multiplier.memory()
    }
}
