//! Measurements: the building blocks of this machine, and whole private inferences.
//!
//! [`kernels`] measures transforms, garbling and the like. [`measure`] measures what an inference
//! takes: the seconds of every step, offline and online, bytes, round trips and memory ([`table`]).
//! It starts the two parties as two processes on a core each ([`party`]), connected over TLS as in
//! production, with a link in between that can be slowed down. [`shapes`] names models with random
//! weights, [`entrant`] is what can be measured: [`whole`] makes one of a scheme.

pub mod entrant;
pub mod kernels;
mod pair;
pub mod party;
mod pinned;
pub mod shapes;
mod subject;
pub mod table;
pub mod whole;

pub use entrant::{Entrant, Find};
pub use pair::pair;
pub use subject::Subject;
pub use table::Table;
pub use whole::Whole;

use self::table::Row;
use crate::Lean;
use crate::ensure_usage;
use crate::provenance::Provenance;
use anyhow::{Context, Error, Result};
use primer_model::float::{self, NoObserver};
use primer_net::Link;
use primer_plan::graph::Graph;
use primer_wire::record::Span;
use std::time::Instant;

/// The scheme `lean`, to be measured.
pub static LEAN: Whole = Whole(&Lean);

/// What is measured.
#[derive(Clone)]
pub struct Request {
    /// A shape's name or a model directory.
    pub model: String,
    /// How many layers are run; the rest is extrapolated.
    pub layers: Option<usize>,
    /// Tokens of the input.
    pub tokens: usize,
    /// What is compared, in this order.
    pub entrants: Vec<&'static dyn Entrant>,
    /// The link between the parties.
    pub link: Link,
    /// Runs of which the median is taken.
    pub runs: usize,
    /// Bundles that are prepared together, by schemes that do so.
    pub bundles: usize,
    /// Threads of each party. More than one are not bound to a core.
    pub threads: usize,
    /// Whether both parties take down what they do online from moment to moment.
    pub record: bool,
}

/// What was measured, and what ended it early if something did: hours of finished rows are not lost
/// to a later one.
pub struct Measurement {
    /// What was finished.
    pub table: Table,
    /// The record of the last row, if it was asked for.
    pub recorded: Option<Recorded>,
    /// Why the rest is missing.
    pub stopped: Option<Error>,
}

impl Measurement {
    /// Joins what was finished and what ended it; an error before the first row is all there is.
    fn of(table: Table, filled: Result<Option<Recorded>>) -> Result<Self> {
        let (recorded, stopped) = match filled {
            Err(error) if table.results.is_empty() => return Err(error),
            Err(error) => (None, Some(error)),
            Ok(recorded) => (recorded, None),
        };
        Ok(Self {
            table,
            recorded,
            stopped,
        })
    }
}

/// What was found of one entrant.
pub struct EntrantResult {
    /// Its row.
    pub row: Row,
    /// Whether both parties had a core of their own.
    pub pinned: bool,
    /// What both parties did online, if that was asked for and it can be told.
    pub recorded: Option<Recorded>,
}

/// What both parties did in the online phase of the run that a row tells.
pub struct Recorded {
    /// The steps.
    pub graph: Graph,
    /// What the client did.
    pub client: Vec<Span>,
    /// What the server did.
    pub server: Vec<Span>,
    /// Seconds that the client's steps took.
    pub online_s: f64,
}

/// Runs everything that was asked for, until something fails.
///
/// # Errors
/// If the model, the tokens or a scheme cannot be measured, which is found out before anything is,
/// or nothing was finished.
pub fn measure(request: &Request) -> Result<Measurement> {
    ensure_usage!(request.runs > 0, "at least one run is needed");
    for entrant in &request.entrants {
        entrant.check_request(request)?;
    }
    let subject = Subject::new(request)?;
    for entrant in &request.entrants {
        entrant.check_subject(request, &subject)?;
    }
    let mut table = empty(request, &subject);
    let filled = fill(&mut table, request, subject);
    Measurement::of(table, filled)
}

/// Makes a table without a row.
fn empty(request: &Request, subject: &Subject) -> Table {
    Table {
        model: subject.name.clone(),
        layers: subject.layers,
        layers_measured: subject.weights.shape.layers,
        tokens: request.tokens,
        link: request.link,
        threads_per_party: request.threads,
        pinned: true,
        runs: request.runs,
        results: Vec::new(),
        provenance: Provenance::here(),
    }
}

fn fill(table: &mut Table, request: &Request, subject: Subject) -> Result<Option<Recorded>> {
    let plain = Plain::run(&subject, request.tokens)?;
    rows(table, &request.entrants, |entrant| {
        entrant.measure(request, &subject, &plain)
    })
}

/// Measures one row after the other, until one fails; returns the record of the last.
fn rows(
    table: &mut Table,
    entrants: &[&'static dyn Entrant],
    measure: impl Fn(&'static dyn Entrant) -> Result<EntrantResult>,
) -> Result<Option<Recorded>> {
    let mut last = None;
    for &entrant in entrants {
        let measured = measure(entrant);
        let found = measured.with_context(|| format!("measuring scheme {}", entrant.name()))?;
        table.pinned &= found.pinned;
        table.results.push(found.row);
        last = found.recorded;
    }
    Ok(last)
}

/// The float reference of the same model on the same input, on one thread.
pub struct Plain {
    /// Seconds, stretched to all layers.
    pub seconds: f64,
    /// What the layers that were run give.
    pub outputs: Vec<Vec<f64>>,
}

impl Plain {
    /// Runs it three times; the middle one counts.
    ///
    /// # Errors
    /// None that a loaded model could cause.
    pub fn run(subject: &Subject, tokens: usize) -> Result<Self> {
        let shape = &subject.weights.shape;
        let input = party::input(tokens, shape.vocab);
        let graph = Graph::new(shape, tokens);
        let mut seconds = Vec::new();
        let mut outputs = Vec::new();
        for _ in 0..3 {
            let started = Instant::now();
            outputs = float::run(&graph, &subject.weights, &input, &mut NoObserver);
            seconds.push(started.elapsed().as_secs_f64());
        }
        let reals = outputs.iter();
        let reals = reals.map(|m| m.data().iter().map(|v| f64::from(*v)).collect());
        Ok(Self {
            seconds: middle(&seconds, |s| *s)? * subject.layers as f64 / shape.layers as f64,
            outputs: reals.collect(),
        })
    }
}

/// Returns the run that is reported: the one whose seconds are the median, of an even number of
/// runs the lower of the middle two. Medians of parts, each of another run, would not add up to any
/// run.
///
/// # Errors
/// If there was no run.
pub fn middle<T>(runs: &[T], seconds: impl Fn(&T) -> f64) -> Result<&T> {
    let mut sorted: Vec<&T> = runs.iter().collect();
    sorted.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    let at = sorted.len().saturating_sub(1) / 2;
    sorted.get(at).copied().context("there was no run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::party::{Accept, Job, Outcome, Ready};
    use anyhow::{bail, ensure};
    use primer_model::synthetic::bert_shape;
    use primer_wire::Channel;
    use std::path::Path;

    #[test]
    fn the_middle_run() {
        let middle = |runs: &[f64]| middle(runs, |s| *s).copied();
        assert_eq!(middle(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
        assert_eq!(middle(&[4.0, 1.0, 2.0, 3.0]).unwrap(), 2.0);
        assert_eq!(middle(&[5.0]).unwrap(), 5.0);
        assert!(middle(&[]).is_err());
    }

    /// Entrants that have names and no parties.
    struct Named(&'static str);

    impl Entrant for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn bundles(&self, _: usize) -> usize {
            1
        }

        fn measure(&self, _: &Request, _: &Subject, _: &Plain) -> Result<EntrantResult> {
            Ok(EntrantResult {
                row: row(self.0),
                pinned: self.0 != "second",
                recorded: None,
            })
        }

        fn serve(&self, _: &Job, _: Option<&Path>, _: Accept<'_>) -> Result<Outcome> {
            bail!("it has no server")
        }

        fn ask(&self, _: &Job, _: &Ready, _: &mut Channel) -> Result<Outcome> {
            bail!("it has no client")
        }
    }

    /// Checks that rows that were finished outlive one that fails.
    #[test]
    fn a_failure_keeps_what_was_finished() {
        let request = Request {
            model: "small".to_owned(),
            layers: None,
            tokens: 4,
            entrants: vec![&Named("first"), &Named("second"), &Named("third")],
            link: Link::Loopback,
            runs: 1,
            bundles: 1,
            threads: 1,
            record: false,
        };
        let subject = Subject::synthetic("small", &bert_shape(1, 16, 2)).unwrap();
        let plain = Plain::run(&subject, 4).unwrap();
        let measure = |fails: &str| {
            let mut table = empty(&request, &subject);
            let filled = rows(&mut table, &request.entrants, |entrant| {
                ensure!(entrant.name() != fails, "the server failed");
                entrant.measure(&request, &subject, &plain)
            });
            Measurement::of(table, filled)
        };
        let Measurement { table, stopped, .. } = measure("third").unwrap();
        let schemes: Vec<&str> = table.results.iter().map(|r| &*r.scheme).collect();
        assert_eq!(schemes, ["first", "second"]);
        assert!(!table.pinned, "a party of one row shared its core");
        let why = format!("{:#}", stopped.unwrap());
        assert_eq!(why, "measuring scheme third: the server failed");
        assert!(measure("first").is_err());
        assert!(measure("none").unwrap().stopped.is_none());
    }

    fn row(scheme: &str) -> Row {
        Row {
            scheme: scheme.to_owned(),
            extrapolated: false,
            measured_on: None,
            offline_s: 1.0,
            online_s: 1.0,
            plaintext_s: 1.0,
            bytes: primer::PhaseBytes {
                offline_up: 1,
                offline_down: 1,
                online_up: 1,
                online_down: 1,
            },
            setup_bytes: 1,
            setup_s: None,
            model_s: None,
            hint_bytes: None,
            hint_build_s: None,
            rounds_online: 1,
            bundles: 1,
            client_stored_bytes: 0,
            server_stored_bytes: 0,
            peak_rss_client: 1,
            peak_rss_server: 1,
            and_gates: 1,
            max_abs_logit_error: 0.0,
            in_range: None,
            steps: Vec::new(),
        }
    }
}
