//! The loops that take most of the time, each as a safe function over slices.
//!
//! [`aligned`] holds their buffers, and [`elementwise`] the loops that the compiler vectorises by
//! itself once it may use AVX2; [`inner`] is the sum of products of key switching, [`weighted`] the
//! sum of products of rotated ciphertexts with weights, and [`points`] the matrix products at
//! evaluation points that need no rotation. Vector forms have portable twins, and tests compare
//! them.

pub mod aligned;
pub mod elementwise;
pub mod inner;
pub mod points;
pub mod weighted;
