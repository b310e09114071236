//! Layer 1 of Primer: homomorphic encryption for one purpose, products of two secrets.
//!
//! # The relation
//! The client holds a matrix `X` (one row per token, residues modulo the share prime p), the server
//! a matrix `M`, both secret: masks of one inference. The client sends `Enc(X)`, the server
//! multiplies, keeps one half of the answer and returns the other, and each party rounds its half
//! to a share of the product. Neither learns anything, and what the client is told is pseudorandom
//! even if it does not follow the protocol. All this happens before there is any text.
//!
//! # The face
//! [`product`] is all that the protocols use: what is computed, queries, keys, answers, and their
//! bytes. [`params`] are what a product names, [`error`] what can go wrong, [`measure`] what it
//! costs.
//!
//! # The scheme
//! BFV in residue number form, on 30-bit primes, additive but for products with plaintexts, without
//! rotations. Its arithmetic (primes, transforms, polynomials, samplers, kernels) is
//! [`primer_lattice`]. A walk through the house, from the ground up:
//!
//! * [`params`]: moduli within the security table. [`slots`]: vectors modulo p as plaintexts.
//!   [`keys`], [`ciphertext`]: the scheme.
//! * `split`: products whose answers each party has a half of. [`form`]: how they read the
//!   client's matrices. [`wire`]: bytes.
//!
//! What is public beside the face is there for `paper/he`, which has the paper's own products, with
//! rotations, on the same parameters, keys and messages.
//!
//! Numbers, derivations and byte counts are in `docs/rlwe.md`. Sources: Fan and Vercauteren
//! 2012; Halevi, Polyakov and Shoup 2018 (residue form); Boyle, Kohl and Scholl 2019 (shares by
//! rounding).

#![forbid(unsafe_code)]

pub mod ciphertext;
pub mod error;
pub mod form;
pub mod keys;
pub mod measure;
pub mod params;
pub mod product;
pub mod slots;
mod split;
mod threads;
pub mod wire;
