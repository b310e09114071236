//! Layer 1 of Primer: garbled circuits, with no input or output of their own.
//!
//! A garbled circuit lets one party, the *evaluator*, compute a function without seeing its inputs.
//! The *garbler* gives every wire two 128-bit labels, one for each value of its bit, that differ by
//! one secret offset Δ; the evaluator holds one of each pair and cannot tell which. XOR of bits is
//! then XOR of labels; an AND gate takes two ciphertexts (half-gates), by which the evaluator gets
//! from the labels of two inputs to the label of their product.
//!
//! Here one party garbles thousands of instances of small circuits. So everything is arranged
//! around *eight instances side by side*: a wire is eight labels, and an operation works on all of
//! them.
//!
//! * [`circuit`]: building circuits with few AND gates, and the compact list that the interpreters
//!   read.
//! * [`stop`]: the circuits of every non-linear function of the plan, from shares in a ring to a
//!   masked share modulo p.
//! * [`clear`], [`garbler`], [`evaluator`]: the interpreters. Garbled bytes stream to any
//!   [`std::io::Write`] and from any [`std::io::Read`].
//! * `engine`: the arithmetic of labels with VAES, with AES-NI, and without either.
//! * [`measure`]: what this machine achieves.
//!
//! The hash, its security and the cost of every function are on the page `docs/garbling.md`.
//! Sources: free XOR (Kolesnikov and Schneider, ICALP 2008), half-gates (Zahur, Rosulek and Evans,
//! Eurocrypt 2015), re-keyed hashing (Guo, Katz, Wang, Weng and Yu, CRYPTO 2020), projections as in
//! the arithmetic garbling of Ball, Malkin and Rosulek (CCS 2016), here from GF(2) labels only.

pub mod circuit;
pub mod clear;
mod engine;
pub mod evaluator;
pub mod garbler;
mod label;
pub mod measure;
pub mod stop;
mod workspace;

pub use engine::{Backend, Label};
pub use label::{LABEL_BYTES, Offset};
