//! Whole services in one process: servers and clients as the library has them, over real sockets.
//!
//! One binary with a module for each subject, because linking one takes as long as running many
//! tests: `cargo test -p primer --test service hostile` runs those of one module. What only a
//! process can show is tested with the program, in `crates/cli/tests`.
#![allow(missing_docs)]

mod away;
mod cheating;
mod hostile;
mod keys;
mod many;
mod peer;
mod places;
mod probes;
mod slow;
mod web;
