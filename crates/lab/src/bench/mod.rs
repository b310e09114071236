//! Measurements: the building blocks of this machine, and whole private inferences.
//!
//! [`kernels`] measures transforms, garbling and the like. [`measure`] measures what the paper's
//! tables tell: for each scheme the seconds of every step, offline and online, bytes, round trips
//! and memory ([`table`]), and on request how they grow with layers and tokens ([`growth`]). It
//! starts the two parties as two processes on a core each ([`party`]), connected over TLS as in
//! production, with a link in between that can be slowed down to the paper's. [`shapes`] names the
//! models of the paper, [`entrant`] what is measured: the protocol's schemes and the two systems
//! that the paper compares itself with. [`timeline`] shows what both parties do from moment to
//! moment of an online phase.

mod check;
pub mod entrant;
mod fhe;
mod gc;
pub mod growth;
pub mod kernels;
mod pair;
pub mod party;
mod pinned;
mod scheme;
pub mod shapes;
mod subject;
pub mod table;
pub mod timeline;

pub use entrant::Entrant;
pub use table::Table;
pub use timeline::Timeline;

use self::subject::Subject;
use self::table::Row;
use crate::provenance::Provenance;
use anyhow::{Context, Error, Result};
use primer_model::float::{self, NoObserver};
use primer_net::Link;
use primer_plan::graph::Graph;
use std::time::Instant;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Request {
    /// A shape's name or a model directory.
    pub model: String,
    /// How many layers are run; the rest is extrapolated.
    pub layers: Option<usize>,
    /// Tokens of the input.
    pub tokens: usize,
    /// What is compared, in this order.
    pub entrants: Vec<Entrant>,
    /// The link between the parties.
    pub link: Link,
    /// Runs of which the median is taken.
    pub runs: usize,
    /// Bundles that are prepared together, by schemes that do so.
    pub bundles: usize,
    /// Threads of each party. More than one are not bound to a core.
    pub threads: usize,
    /// Whether growth is measured as well.
    pub growth: bool,
    /// Whether it is taken down what both parties do from moment to moment; of one scheme only.
    pub timeline: bool,
}

/// What was measured, and what ended it early if something did: hours of finished rows are not lost
/// to a later one.
pub struct Measurement {
    /// What was finished.
    pub table: Table,
    /// The online phase of the run that is told, if it was asked for.
    pub timeline: Option<Timeline>,
    /// Why the rest is missing.
    pub stopped: Option<Error>,
}

impl Measurement {
    /// An error that came before the first row is all there is.
    fn of(table: Table, filled: Result<Option<Timeline>>) -> Result<Self> {
        let (timeline, stopped) = match filled {
            Err(error) if table.results.is_empty() => return Err(error),
            Err(error) => (None, Some(error)),
            Ok(timeline) => (timeline, None),
        };
        Ok(Self {
            table,
            timeline,
            stopped,
        })
    }
}

/// What was found of one entrant.
struct Found {
    row: Row,
    /// Whether both parties had a core of their own.
    pinned: bool,
    timeline: Option<Timeline>,
}

/// Runs everything that was asked for, until something fails.
///
/// # Errors
/// If the model, the tokens or a scheme cannot be measured, which is found out before anything is,
/// or nothing was finished.
pub fn measure(request: &Request) -> Result<Measurement> {
    check::request(request)?;
    let subject = Subject::new(request)?;
    check::subject(request, &subject)?;
    let mut table = empty(request, &subject);
    let filled = fill(&mut table, request, subject);
    Measurement::of(table, filled)
}

/// A table without a row.
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
        growth: None,
        provenance: Provenance::here(),
    }
}

fn fill(table: &mut Table, request: &Request, subject: Subject) -> Result<Option<Timeline>> {
    let plain = Plain::run(&subject, request.tokens)?;
    let timeline = rows(table, &request.entrants, |entrant| match entrant {
        Entrant::Scheme(scheme) => scheme::measure(request, &subject, scheme, &plain),
        Entrant::Gc => gc::measure(request, &subject, &plain),
        Entrant::Fhe => fhe::measure(request, &subject, &plain),
    })?;
    drop(subject);
    if request.growth {
        let growth = growth::measure(request).context("measuring how cost grows");
        table.growth = Some(growth?);
    }
    Ok(timeline)
}

/// Measures one row after the other, until one fails; returns the timeline of the last.
fn rows(
    table: &mut Table,
    entrants: &[Entrant],
    measure: impl Fn(Entrant) -> Result<Found>,
) -> Result<Option<Timeline>> {
    let mut last = None;
    for &entrant in entrants {
        let measured = measure(entrant);
        let found = measured.with_context(|| format!("measuring scheme {}", entrant.name()))?;
        table.pinned &= found.pinned;
        table.results.push(found.row);
        last = found.timeline;
    }
    Ok(last)
}

/// The float reference of the same model on the same input, on one thread.
struct Plain {
    /// Seconds, stretched to all layers.
    seconds: f64,
    /// What the layers that were run give.
    outputs: Vec<Vec<f64>>,
}

impl Plain {
    fn run(subject: &Subject, tokens: usize) -> Result<Self> {
        let shape = &subject.weights.shape;
        let input = party::input(tokens, shape.vocab);
        let graph = Graph::bert(shape, tokens);
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

/// The run that is reported: the one whose seconds are the median, of an even number of runs the
/// lower of the middle two. Medians of parts, each of another run, would not add up to any run.
fn middle<T>(runs: &[T], seconds: impl Fn(&T) -> f64) -> Result<&T> {
    let mut sorted: Vec<&T> = runs.iter().collect();
    sorted.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    let at = sorted.len().saturating_sub(1) / 2;
    sorted.get(at).copied().context("there was no run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use primer_model::synthetic::bert_shape;
    use primer_protocol::Scheme;

    #[test]
    fn the_middle_run() {
        let middle = |runs: &[f64]| middle(runs, |s| *s).copied();
        assert_eq!(middle(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
        assert_eq!(middle(&[4.0, 1.0, 2.0, 3.0]).unwrap(), 2.0);
        assert_eq!(middle(&[5.0]).unwrap(), 5.0);
        assert!(middle(&[]).is_err());
    }

    /// Rows that were finished outlive one that fails.
    #[test]
    fn a_failure_keeps_what_was_finished() {
        let request = Request {
            model: "small".to_owned(),
            layers: None,
            tokens: 4,
            entrants: vec![Entrant::Scheme(Scheme::Fp), Entrant::Gc, Entrant::Fhe],
            link: Link::Loopback,
            runs: 1,
            bundles: 1,
            threads: 1,
            growth: false,
            timeline: false,
        };
        let subject = Subject::synthetic("small", &bert_shape(1, 16, 2)).unwrap();
        let measure = |fails: Entrant| {
            let mut table = empty(&request, &subject);
            let filled = rows(&mut table, &request.entrants, |entrant| match entrant {
                one if one == fails => bail!("the server failed"),
                one => Ok(Found {
                    row: row(one.name()),
                    pinned: one != Entrant::Gc,
                    timeline: None,
                }),
            });
            Measurement::of(table, filled)
        };
        let Measurement { table, stopped, .. } = measure(Entrant::Fhe).unwrap();
        let schemes: Vec<&str> = table.results.iter().map(|r| &*r.scheme).collect();
        assert_eq!(schemes, ["fp", "gc"]);
        assert!(!table.pinned, "a party of one row shared its core");
        let why = format!("{:#}", stopped.unwrap());
        assert_eq!(why, "measuring scheme fhe: the server failed");
        assert!(measure(Entrant::Scheme(Scheme::Fp)).is_err());
        assert!(
            measure(Entrant::Scheme(Scheme::Base))
                .unwrap()
                .stopped
                .is_none()
        );
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
