//! The program as people and scripts run it: real processes, real sockets, real signals.
//!
//! One binary with a module for each subject, because linking one takes as long as running many
//! tests: `cargo test -p primer-cli --test program crash` runs those of one module.
#![allow(missing_docs)]

mod access;
mod away;
mod batch;
mod command_line;
mod crash;
mod families;
#[cfg(feature = "fleet")]
mod fleet;
mod gateway;
mod health;
mod hint;
mod hostile;
mod limits;
mod log;
mod manners;
mod measure;
mod pages;
mod service;
mod soak;
mod streams;
mod watching;
