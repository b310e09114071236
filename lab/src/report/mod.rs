//! Results one can look at: tables and pictures of what was measured, beside the paper's figures.
//!
//! [`records`] reads what `primer bench --json` and `primer eval --json` printed, [`subject`] says
//! which models, lengths and links of it are shown, [`tables`] and [`figures`] arrange it, [`page`]
//! puts both into one file that needs no network. [`paper`] holds the figures of the paper,
//! [`peer`] names other systems that were measured on the same machine, [`hosts`] reads what
//! crossed a link between two network namespaces.
//!
//! Schemes and comparators are listed by `answer` alone, which picks a few for the first table and
//! picture; all others go through [`Entrant::all`](crate::bench::Entrant::all), and tests hold that
//! each has a place in every one of them.

mod answer;
pub mod figures;
#[cfg(test)]
mod fixtures;
pub mod grid;
pub mod hosts;
pub mod page;
pub mod paper;
pub mod peer;
pub mod records;
pub mod subject;
pub mod tables;

pub use records::Records;

/// Returns each once, in the order of their first appearance.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}
