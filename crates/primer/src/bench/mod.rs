//! Measurements: the building blocks of this machine, and whole private inferences.
//!
//! [`kernels`] measures transforms, garbling and the like. [`tables`] measures what the paper's tables tell: for each
//! scheme the seconds of every step, offline and online, bytes, round trips and memory. It starts the two parties as
//! two processes on a core each ([`party`]), connected over TLS as in production, with a link in between that can
//! be slowed down to the paper's. [`shapes`] names the models of the paper.

pub mod kernels;
pub mod party;
mod pinned;
pub mod shapes;
pub mod tables;
