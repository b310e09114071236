//! What a private BERT computes, independent of who computes it and how.
//!
//! [`function`] defines every non-linear function in integers.
#![forbid(unsafe_code)]

pub mod function;
