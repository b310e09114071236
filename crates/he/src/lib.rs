//! Layer 1 of Primer: homomorphic encryption for one purpose, products of an encrypted matrix with
//! one in the clear.
//!
//! # The relation
//! The client holds a matrix `X` (one row per token, residues modulo the share prime p), the server
//! a matrix `W`. The client sends `Enc(X)`, and both end with shares of `X·W`, in one of two ways:
//!
//! * *masked*, as the paper's schemes have it: the server returns `Enc(X·W + R)` for a mask `R` of
//!   its choice. `W` may be a model's weights. The client learns `X·W + R` and, up to a small
//!   statistical distance, nothing else about `W`.
//! * *split*: the server keeps one half of the answer and returns the other, and each rounds its
//!   half to a share. `W` is a mask of the server's. The client learns nothing, whatever it sends.
//!
//! The server learns nothing. In the protocols above `X` is itself a mask, so the product is done
//! before there is any text.
//!
//! # The face
//! [`product`] is all that the protocols use: what is computed, queries, keys, answers, and their
//! bytes. [`params`] are what a product names, [`error`] what can go wrong, [`measure`] what it
//! costs.
//!
//! # The scheme
//! BFV in residue number form, on 30-bit primes, additive but for products with plaintexts, with
//! rotations of slots by key switching. Its arithmetic (primes, transforms, polynomials, samplers,
//! kernels) is [`primer_lattice`]. A walk through the house, from the ground up:
//!
//! * `slots`: vectors modulo p as plaintexts. `keys`, `ciphertext`, `switch`: the scheme.
//! * `packing`: matrices in slots, features-first and tokens-first. `evaluate`, `slotwise`,
//!   `centred`: products.
//! * `split`: products of two secrets without rotations, on parameters without a key-switching
//!   prime; each party ends with a share.
//! * `answer`: fresh zero, mask and flooding, on every masked answer. `noise`, `budget`: bounds,
//!   and how much of them is used. `wire`: bytes. `counters`: what a product took.
//!
//! Numbers, derivations and byte counts are in `paper/docs/he.md` and `docs/rlwe.md`. Sources: Fan
//! and Vercauteren 2012; Halevi, Polyakov and Shoup 2018 (residue form); Halevi and Shoup 2014 and
//! 2018 (diagonals, hoisting); Bossuat and others 2021 (sums before division); Boyle, Kohl and
//! Scholl 2019 (shares by rounding); the paper for the packings. Ours: the subring layout of
//! weights, rows as halves of the tokens, automorphism last, flooding after a first modulus switch.

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
mod slots;
mod slotwise;
mod split;
mod switch;
#[cfg(test)]
mod tests;
mod threads;
mod wire;

#[doc(hidden)]
pub use wire::recoded;
