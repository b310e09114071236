//! What a private encoder computes, independent of the parties and of the protocol.
//!
//! A model's [`shape`] is compiled into a [`graph`] of steps ([`encoder`] knows their order and
//! nothing else does; it says of every value and weight what it is, its [`role`]). Where there is
//! more than one way to compute the same, it asks a [`design`]; the product has one. Ranges
//! observed on a calibration text give every value and weight a scale ([`assign`], [`scales`]);
//! graph and scales together are the [`plan`], which both parties hold and compare by fingerprint.
//! [`function`] defines every non-linear function in integers, [`count`] tells what a graph costs,
//! [`weights`] how an engine is lent the integers of a model.
#![forbid(unsafe_code)]

pub mod assign;
pub mod count;
pub mod design;
pub mod encoder;
pub mod function;
pub mod graph;
pub mod plan;
pub mod role;
pub mod scales;
pub mod shape;
mod step;
pub mod times;
pub mod weights;
