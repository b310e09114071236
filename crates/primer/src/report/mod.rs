//! Results one can look at: tables and pictures of what was measured, beside the paper's figures.
//!
//! [`records`] reads what `primer bench --json` and `primer eval --json` printed, [`subject`] says which models, lengths and
//! links of it are shown, [`tables`] and [`figures`] arrange it, [`page`] puts both into one file that needs no network.
//! [`paper`] holds the figures of the paper.

pub mod figures;
pub mod grid;
pub mod page;
pub mod paper;
pub mod records;
pub mod subject;
pub mod tables;

pub use records::Records;
