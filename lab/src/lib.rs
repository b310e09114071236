//! The laboratory: all schemes and comparators, measured, and shown beside the paper.
//!
//! [`mod@bench`] measures what `primer bench` measures ([`primer_measure::bench`]) of the paper's
//! schemes and of two comparators, and what only an article shows: how cost grows, and what both
//! parties do from moment to moment. [`eval`] adds a comparator to what
//! [`primer_measure::eval`] evaluates. [`report`] shows what was measured beside the paper's
//! figures, with pictures by [`plot`]. [`paper`] is where the paper's schemes come in.
//!
//! Nothing here is needed to serve a model or to ask a server, and nothing of it is in the program
//! `primer`. The program `primer-lab` stands above.
#![forbid(unsafe_code)]

pub mod bench;
pub mod eval;
pub mod paper;
pub mod plot;
pub mod report;
