//! The homomorphic layer beside `fhe` (BFV) and `tfhe-ntt` (transforms).
//!
//! `cargo test --release` in this folder checks that slots mean the same in both BFV
//! implementations; `cargo bench` measures both in one run. See `paper/docs/he.md`.
#![forbid(unsafe_code)]
