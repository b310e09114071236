//! Stops between two parties.

mod conformance;
mod faults;
mod garbled;
mod late;
mod layer;
mod lookup;
mod lookup_faults;
mod lookup_views;
mod parties;
mod requantise;
