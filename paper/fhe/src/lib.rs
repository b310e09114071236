//! A comparator: BERT under homomorphic encryption alone, as in THE-X.
//!
//! **Not a way to serve models.** It measures what Primer is compared with: the server computes
//! everything under encryption, the parties speak only at the ends, and every non-linear function
//! is a polynomial. CKKS results carry noise that depends on the weights; nothing here hides it
//! from the client, so there is no circuit privacy.
//!
//! * [`chebyshev`], [`polynomials`], [`fit`], [`watch`]: which polynomials, and what they do to a
//!   model's answers in the clear.
//! * [`arithmetic`], [`packing`], [`evaluation`], [`walk`]: a whole inference as additions,
//!   products and rotations.
//! * [`ckks`]: the scheme. [`setup`], [`wire`], [`client`], [`server`]: two parties. [`cost`]: what
//!   it takes, run or not.
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod chebyshev;
pub mod ckks;
pub mod client;
pub mod cost;
pub mod error;
pub mod evaluation;
pub mod fit;
pub mod packing;
pub mod polynomials;
mod scales;
pub mod server;
pub mod setup;
#[cfg(test)]
mod tests;
pub mod walk;
pub mod watch;
pub mod wire;
