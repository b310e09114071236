//! Stops between two parties.

mod client_garbled;
mod client_garbled_faults;
mod client_garbled_views;
mod conformance;
mod counted;
mod faults;
mod flags;
mod garbled;
mod late;
mod lift;
mod lookup;
mod lookup_faults;
mod lookup_views;
mod parties;
mod requantise;
