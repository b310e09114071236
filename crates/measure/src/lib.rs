//! Measurements that an owner of a model or a machine takes: how right it is, what it costs.
//!
//! [`eval`] measures the accuracy of a model, in float, in the protocol's integers or through the
//! protocol itself, which `secure` runs with both parties in this process; [`task`] knows the
//! data sets and their measures. [`mod@bench`] measures seconds, bytes and memory of private
//! inferences between two processes, and the machine's own figures. [`inspect`] tells what a plan
//! is and what it will cost. [`provenance`] says where a figure comes from.
//!
//! All of it goes through [`Scheme`] and [`bench::Entrant`], of which this crate has one,
//! [`Lean`]. The laboratory, `primer-lab`, brings those of the paper and comparators; this crate
//! knows none of them, and the program `primer` needs none.
//!
//! [`command`] has the arguments and the output that both programs share, [`console`] how they
//! write results, progress and errors. [`choice`] is what one can choose from on a command line,
//! [`usage`] tells wrong use from failure, [`notes`] is how anything is said beside results.
#![forbid(unsafe_code)]

pub mod bench;
pub mod choice;
pub mod command;
pub mod console;
pub mod eval;
mod hinted;
pub mod inspect;
mod lean;
pub mod notes;
pub mod provenance;
pub mod scheme;
mod secure;
pub mod task;
pub mod usage;

pub use hinted::Hinted;
pub use lean::Lean;
pub use scheme::Scheme;

/// Told how far long work is: what is done, how much of it, and of how much. Calls of one kind of
/// work follow each other, though they may come from several threads.
pub type Progress<'a> = &'a (dyn Fn(&'static str, usize, usize) + Sync);
