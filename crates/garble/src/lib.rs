//! Garbled circuits.
pub mod circuit;
pub mod clear;
mod engine;
pub mod evaluator;
pub mod garbler;
mod label;
pub mod measure;
pub mod stop;

pub use engine::{Backend, Label};
pub use label::{LABEL_BYTES, Offset};
