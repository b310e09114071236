//! The arithmetic under Primer's lattice cryptography: polynomials modulo `X^N + 1` and several
//! 30-bit primes, fast, and nothing about encryption.
//!
//! # Why several small primes
//! A lattice scheme computes with polynomials whose coefficients are integers modulo a large `q`,
//! of 180 bits and more. If `q` is a product of primes, such an integer is determined by its
//! residues modulo each (the residue number system), and sums and products are taken prime by
//! prime. Primes of 30 bits let one vector register hold eight residues and one 64-bit sum hold
//! eight unreduced products. A polynomial modulo one prime is called a *limb*.
//!
//! # Why two forms
//! A product of polynomials costs `N²` steps by coefficients and `N` by values at `N` roots of
//! unity, so ciphertexts, keys and weights are kept by values; rounding and size are only visible
//! in coefficients. A transform leads from one form to the other and back in `N·log N` steps.
//!
//! # The modules
//! * [`prime`]: numbers modulo one prime. [`ntt`]: the transform. [`simd`]: which instructions
//!   there are.
//! * [`basis`]: primes that belong together, with their transforms. [`poly`]: polynomials over a
//!   basis, their form in the type.
//! * [`automorphism`]: `X -> X^g`, which rotates slots. [`sample`]: secrets, errors, flooding
//!   noise.
//! * [`kernel`]: the loops that take most of the time. [`measure`]: how fast the newest of them is.
//!
//! BFV (`primer-rlwe`, `primer-paper-he`) and the CKKS comparator stand on this crate. Sources:
//! Harvey 2014 (butterflies), Shoup (fixed factors), Montgomery 1985 (sums of products), Halevi,
//! Polyakov and Shoup 2018 (residue form).

// What only the vector kernels need is not there without them.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

pub mod automorphism;
pub mod basis;
pub mod kernel;
pub mod measure;
pub mod ntt;
pub mod poly;
pub mod prime;
pub mod sample;
pub mod simd;
