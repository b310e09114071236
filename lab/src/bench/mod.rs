//! Measurements of everything that there is: the paper's schemes and two systems beside `lean`.
//!
//! [`measure`] adds to [`primer_measure::bench::measure`] how cost grows with layers and tokens
//! ([`growth`]), and what both parties do from moment to moment of an online phase ([`timeline`]).
//! [`entrant`] lists what is measured: the schemes and the two systems that the paper compares
//! itself with. [`kernels`] adds the building blocks of the paper's schemes.

mod check;
pub mod entrant;
mod fhe;
mod gc;
pub mod growth;
pub mod kernels;
pub mod timeline;

pub use entrant::{Entrant, Scheme};
pub use growth::Grown;
pub use timeline::Timeline;

use anyhow::{Context, Error, Result};
use primer_measure::bench::{self, Request};

/// What is measured besides a row for each entrant.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// Whether growth is measured.
    pub growth: bool,
    /// Whether what both parties do online is taken down; of one scheme only.
    pub timeline: bool,
}

/// What was measured, and what ended it early if something did.
pub struct Measurement {
    /// What was finished.
    pub grown: Grown,
    /// The online phase of the run that is told, if it was asked for.
    pub timeline: Option<Timeline>,
    /// Why the rest is missing.
    pub stopped: Option<Error>,
}

/// Runs everything that was asked for, until something fails.
///
/// # Errors
/// If the model, the tokens, an entrant or an extra cannot be measured, which is found out before
/// anything is, or nothing was finished.
pub fn measure(request: &Request, extras: Extras) -> Result<Measurement> {
    check::extras(request, extras)?;
    let found = bench::measure(&Request {
        record: extras.timeline,
        ..request.clone()
    })?;
    let (mut stopped, mut growth) = (found.stopped, None);
    if extras.growth && stopped.is_none() {
        match growth::measure(request).context("measuring how cost grows") {
            Ok(found) => growth = Some(found),
            Err(error) => stopped = Some(error),
        }
    }
    let recorded = found.recorded.as_ref();
    let timeline = recorded.map(|recorded| Timeline::of(&found.table, recorded));
    let timeline = match timeline.transpose() {
        Ok(timeline) => timeline,
        Err(error) => {
            stopped = stopped.or(Some(error));
            None
        }
    };
    Ok(Measurement {
        timeline,
        grown: Grown {
            table: found.table,
            growth,
        },
        stopped,
    })
}
