//! Measurements: the building blocks of this machine, and whole private inferences.
//!
//! [`kernels`] measures transforms, garbling and the like. [`measure`] measures what the paper's tables tell: for each
//! scheme the seconds of every step, offline and online, bytes, round trips and memory ([`table`]), and on request how
//! they grow with layers and tokens ([`growth`]). It starts the two parties as two processes on a core each
//! ([`party`]), connected over TLS as in production, with a link in between that can be slowed down to the paper's.
//! [`shapes`] names the models of the paper, [`entrant`] what is measured: the protocol's schemes and the two systems
//! that the paper compares itself with.

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

pub use entrant::Entrant;
pub use table::Table;

use self::subject::Subject;
use crate::provenance::Provenance;
use anyhow::{Result, ensure};
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
    /// Whether growth is measured as well.
    pub growth: bool,
}

/// A link by its name.
///
/// # Errors
/// If there is no such link.
pub fn link(name: &str) -> Result<Link, String> {
    let found = Link::ALL.into_iter().find(|link| link.name() == name);
    found.ok_or_else(|| format!("there is no link `{name}`; the links are loopback, paper, wan"))
}

/// Runs everything that was asked for.
///
/// # Errors
/// If the model, the tokens or a scheme cannot be measured, or a party fails.
pub fn measure(request: &Request) -> Result<Table> {
    ensure!(request.runs > 0, "at least one run is needed");
    if request.growth {
        growth::check(request)?;
    }
    let subject = Subject::new(request)?;
    let mut table = Table {
        model: subject.name.clone(),
        layers: subject.layers,
        layers_measured: subject.weights.shape.layers,
        tokens: request.tokens,
        link: request.link,
        threads_per_party: 1,
        pinned: true,
        runs: request.runs,
        results: Vec::new(),
        growth: None,
        provenance: Provenance::here(),
    };
    let plain = Plain::run(&subject, request.tokens);
    for &entrant in &request.entrants {
        let (row, pinned) = match entrant {
            Entrant::Scheme(scheme) => scheme::measure(request, &subject, scheme, &plain)?,
            Entrant::Gc => gc::measure(request, &subject, &plain)?,
            Entrant::Fhe => fhe::measure(request, &subject, &plain)?,
        };
        table.pinned &= pinned;
        table.results.push(row);
    }
    drop(subject);
    if request.growth {
        table.growth = Some(growth::measure(request)?);
    }
    Ok(table)
}

/// The float reference of the same model on the same input, on one thread.
struct Plain {
    /// Seconds, stretched to all layers.
    seconds: f64,
    /// What the layers that were run give.
    outputs: Vec<Vec<f64>>,
}

impl Plain {
    fn run(subject: &Subject, tokens: usize) -> Self {
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
        Self {
            seconds: median(seconds) * subject.layers as f64 / shape.layers as f64,
            outputs: reals.collect(),
        }
    }
}

/// The median; of an even number the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn links_by_name() {
        assert_eq!(link("paper"), Ok(Link::Paper));
        assert!(link("moon").unwrap_err().contains("`moon`"));
    }
}
