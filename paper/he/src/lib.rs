//! The homomorphic products of the schemes as published: an encrypted matrix times one in the
//! clear, under a mask.
//!
//! # The relation
//! The client holds a matrix `X` (one row per token, residues modulo the share prime p), the server
//! a matrix `W`, which may be a model's weights. The client sends `Enc(X)`, the server returns
//! `Enc(X·W + R)` for a mask `R` of its choice, and both end with shares of `X·W`. The client
//! learns
//! `X·W + R` and, up to a small statistical distance, nothing else about `W`; the server learns
//! nothing. In the protocols above `X` is itself a mask, so the product is done before there is any
//! text.
//!
//! # The face
//! [`product`] is all that the protocols use: what is computed, queries, keys, answers, and their
//! bytes. [`params`] are what a product names, [`error`] what can go wrong, [`measure`] what it
//! costs.
//!
//! # The scheme
//! BFV in residue number form, additive but for products with plaintexts, as in [`primer_rlwe`],
//! whose parameters, secrets, public keys and messages these are, with rotations of slots by key
//! switching. A walk through the house, from the ground up:
//!
//! * `keys`, `ciphertext`, `switch`: rotation keys, encryption, rotations.
//! * `packing`, `folded`: matrices in slots, features-first and tokens-first. `evaluate`,
//!   `slotwise`, `centred`: products.
//! * `answer`: fresh zero, mask and flooding, on every answer. `noise`, `budget`: bounds, and how
//!   much of them is used. `wire`: bytes. `counters`: what a product took.
//!
//! Numbers, derivations and byte counts are in `paper/docs/he.md`. Sources: Fan and Vercauteren
//! 2012; Halevi, Polyakov and Shoup 2018 (residue form); Halevi and Shoup 2014 and 2018 (diagonals,
//! hoisting); Bossuat and others 2021 (sums before division); the paper for the packings. Ours: the
//! subring layout of weights, rows as halves of the tokens, automorphism last, flooding after a
//! first modulus switch.

#![forbid(unsafe_code)]

mod answer;
#[cfg(test)]
mod budget;
mod centred;
mod ciphertext;
mod counters;
pub mod error;
mod evaluate;
mod folded;
mod keys;
pub mod measure;
mod noise;
mod packing;
pub mod params;
pub mod product;
mod slotwise;
mod switch;
#[cfg(test)]
mod tests;
mod wire;

#[doc(hidden)]
pub use wire::recoded;
