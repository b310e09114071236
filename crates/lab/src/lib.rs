//! The laboratory: what Primer costs and how right it is, measured, and shown beside the paper.
//!
//! [`eval`] measures the accuracy of a model, in float, in the protocol's integers or through the
//! protocol itself, which `secure` runs with both parties in this process; [`task`] knows the
//! data sets and their measures. [`mod@bench`] measures seconds, bytes and memory of private
//! inferences and of the comparators. [`report`] shows what was measured, with pictures by
//! [`plot`]; [`provenance`] says where a figure comes from.
//!
//! Nothing here is needed to serve a model or to ask a server. The command line stands above:
//! [`choice`] is what it lets one choose from, [`usage`] tells wrong use from failure, [`Progress`]
//! is how it learns how far long work is, and [`notes`] is how anything is said beside results.
#![forbid(unsafe_code)]

pub mod bench;
pub mod choice;
pub mod eval;
mod hinted;
pub mod notes;
pub mod plot;
pub mod provenance;
pub mod report;
mod secure;
pub mod task;
pub mod usage;

/// Told how far long work is: what is done, how much of it, and of how much. Calls of one kind of
/// work follow each other, though they may come from several threads.
pub type Progress<'a> = &'a (dyn Fn(&'static str, usize, usize) + Sync);
