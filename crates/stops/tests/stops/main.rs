//! Stops between two parties.

mod conformance;
mod faults;
mod garbled;
mod layer;
mod parties;
mod requantise;
