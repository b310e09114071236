//! x
pub mod error;
pub mod kernel;
pub mod ntt;
pub mod prime;
pub mod simd;
pub mod slots;
