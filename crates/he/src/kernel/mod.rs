//! The loops in which the time goes, each as a safe function over slices.
//!
//! [`elementwise`] holds loops that the compiler vectorises by itself once it may use AVX2;
//! [`inner`] the sum of products of key switching; [`weighted`] the sum of products of rotated
//! ciphertexts with weights; [`permute`] the automorphisms. Vector forms have portable twins, and
//! tests compare them.

pub mod elementwise;
pub mod inner;
pub mod permute;
pub mod weighted;
