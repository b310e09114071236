//! Hugging Face BERTs: from a `save_pretrained` directory to integers.
//!
//! [`load`] reads the directory and refuses by name what it cannot use. [`fold`] rewrites the
//! weights into those of the plan's graph. Two references walk that graph: [`float`] in single
//! precision, the yardstick of accuracy and of speed, and [`fixed`] in integers, exactly as the
//! private protocol does. Between them are [`calibrate`] (the ranges that occur), [`quantise`]
//! (integer weights) and [`prepared`] (the result on disk). There is no cryptography here.

pub mod calibrate;
pub mod fixed;
pub mod float;
pub mod fold;
pub mod load;
pub mod measure;
pub mod prepared;
pub mod quantise;
pub mod synthetic;
