//! CKKS in residue number form, on the transforms and samplers of [`primer_lattice`].
//!
//! Cheon, Kim, Kim and Song 2017: approximate fixed-point arithmetic on encrypted vectors. What is
//! here is what a whole inference without interaction needs and nothing more: [`params`] and the
//! scale of every level, the [`embedding`] that makes vectors polynomials, [`keys`],
//! [`ciphertext`]s, and [`evaluate`] with sums, products with plaintexts and ciphertexts, rotations
//! and rescaling. No bootstrapping.

pub mod ciphertext;
pub mod embedding;
pub mod evaluate;
pub mod keys;
pub mod params;
mod switch;
