//! Layer 1 of Primer: homomorphic encryption for one purpose, the product of an encrypted token
//! matrix with weights in the clear.
//!
//! # The relation
//! The client holds a matrix `X` (one row per token, residues modulo the share prime p), the server
//! weights `W`. The client sends `Enc(X)`; the server returns `Enc(X·W + R)` for a mask `R` of its
//! choice. The client learns `X·W + R` and nothing else about `W`; the server learns nothing. In the
//! protocols above `X` is itself a mask, so the product is done before there is any text.
//!
//! # The scheme
//! BFV in residue number form, on 30-bit primes, additive but for products with plaintexts, with
//! rotations of slots by key switching. A walk through the house:
//!
//! * [`params`]: degree, primes, the security table. [`prime`], [`ntt`], [`kernel`], [`poly`]: arithmetic.
//! * [`slots`]: vectors modulo p as plaintexts. [`sample`], [`keys`], [`ciphertext`], [`switch`]: the scheme.
//! * [`packing`]: matrices in slots, features-first and tokens-first. [`evaluate`], [`slotwise`]: products.
//! * [`answer`]: fresh zero, mask and flooding, on every answer. [`noise`], [`budget`]: bounds, and how
//!   much of them is used. [`wire`]: bytes. [`counters`], [`measure`]: cost.
//!
//! Numbers, derivations and byte counts are in `docs/he.md`. Sources: Fan and Vercauteren 2012; Halevi,
//! Polyakov and Shoup 2018 (residue form); Halevi and Shoup 2014 and 2018 (diagonals, hoisting); Bossuat
//! and others 2021 (sums before division); the paper for the packings. Ours: the subring layout of
//! weights, rows as halves of the tokens, automorphism last, flooding after a first modulus switch.

pub mod answer;
pub mod budget;
pub mod ciphertext;
pub mod counters;
pub mod error;
pub mod evaluate;
mod folded;
pub mod kernel;
pub mod keys;
pub mod measure;
pub mod noise;
pub mod ntt;
pub mod packing;
pub mod params;
pub mod poly;
pub mod prime;
pub mod sample;
pub mod simd;
pub mod slots;
pub mod slotwise;
pub mod switch;
pub mod wire;
