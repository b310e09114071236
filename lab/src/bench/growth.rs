//! How cost grows: with layers at one length, and with tokens on one layer.
//!
//! Nothing here is extrapolated: a point is a model of that many layers, run whole, with its
//! embedding and head. Of several runs the middle one counts, as in the table. A scheme goes as far
//! with tokens as its messages stay below [`MOST_BYTES`]: scores grow with the square of the
//! length, and what they cost differs between schemes by more than a factor of ten.

use super::Scheme;
use anyhow::Result;
use primer_measure::bench::table::{Row, Table};
use primer_measure::bench::{Plain, Request, Subject, shapes};
use primer_measure::{ensure_usage, note};
use primer_wire::PhaseBytes;
use serde::{Deserialize, Serialize};

/// Layers that are measured.
pub const LAYERS: [usize; 3] = [1, 2, 4];
/// Tokens that are measured, on one layer.
pub const TOKENS: [usize; 7] = [8, 16, 30, 64, 128, 256, 512];
/// A point of more bytes is not run.
pub const MOST_BYTES: u64 = 8_000_000_000;

/// A table, and how cost grows if that was measured: what `bench --json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Grown {
    /// The table.
    #[serde(flatten)]
    pub table: Table,
    /// Cost against layers and tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// Cost against layers and against tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Growth {
    /// At the tokens of the table.
    pub layers: Vec<Point>,
    /// On one layer.
    pub tokens: Vec<Point>,
}

/// One model of one length under one scheme.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// The scheme.
    pub scheme: String,
    /// Layers, all of them run.
    pub layers: usize,
    /// Tokens of the input.
    pub tokens: usize,
    /// Seconds offline.
    pub offline_s: f64,
    /// Seconds online.
    pub online_s: f64,
    /// Bytes of one inference.
    pub bytes: PhaseBytes,
    /// Round trips online.
    pub rounds_online: u64,
    /// AND gates.
    pub and_gates: u64,
}

impl Point {
    fn of(row: &Row, layers: usize, tokens: usize) -> Self {
        Self {
            scheme: row.scheme.clone(),
            layers,
            tokens,
            offline_s: row.offline_s,
            online_s: row.online_s,
            bytes: row.bytes,
            rounds_online: row.rounds_online,
            and_gates: row.and_gates,
        }
    }
}

/// Refuses before the long work what could not be measured after it.
pub(super) fn check(request: &Request) -> Result<()> {
    let (model, most) = (&request.model, LAYERS[LAYERS.len() - 1]);
    let layers = shapes::layers(model);
    ensure_usage!(
        layers.is_some(),
        "--growth is for the shapes with random weights; {model} has the layers it has"
    );
    let mut entrants = request.entrants.iter().map(|entrant| entrant.name());
    let comparator = entrants.find(|name| name.parse::<Scheme>().is_err());
    ensure_usage!(
        comparator.is_none(),
        "--growth is for schemes that are run whole, not for the comparator {}",
        comparator.unwrap_or_default()
    );
    ensure_usage!(
        layers >= Some(most),
        "--growth measures up to {most} layers, and {model} has {}",
        layers.unwrap_or(0)
    );
    Ok(())
}

/// Runs every point.
pub(super) fn measure(request: &Request) -> Result<Growth> {
    let mut growth = Growth {
        layers: Vec::new(),
        tokens: Vec::new(),
    };
    for layers in LAYERS {
        growth
            .layers
            .extend(points(request, layers, request.tokens)?);
    }
    for tokens in TOKENS {
        let known = growth.layers.iter();
        let known = known.filter(|p| (p.layers, p.tokens) == (1, tokens));
        let known: Vec<Point> = known.cloned().collect();
        if known.is_empty() {
            growth.tokens.extend(points(request, 1, tokens)?);
        } else {
            growth.tokens.extend(known);
        }
    }
    Ok(growth)
}

/// Measures the schemes of the request at one size. A table of so few layers tells what was run
/// and, in a model of more layers, what is extrapolated; here the former counts.
fn points(request: &Request, layers: usize, tokens: usize) -> Result<Vec<Point>> {
    let part = Request {
        layers: Some(layers),
        tokens,
        ..request.clone()
    };
    let subject = Subject::whole(&part)?;
    let plain = Plain::run(&subject, tokens)?;
    let mut points = Vec::new();
    for entrant in &request.entrants {
        let Ok(scheme) = entrant.name().parse::<Scheme>() else {
            // Checked before: comparators are not run whole.
            continue;
        };
        let bytes = predicted(&subject, scheme, tokens)?;
        if bytes > MOST_BYTES {
            note!(
                "primer: {}, {tokens} tokens, scheme {}: not run, its messages would have {:.0} GB",
                subject.name,
                scheme.name(),
                bytes as f64 / 1e9
            );
            continue;
        }
        let row = entrant.measure(&part, &subject, &plain)?.row;
        points.push(Point::of(&row, layers, tokens));
    }
    Ok(points)
}

/// Returns the bytes of one inference, which a program tells without running.
fn predicted(subject: &Subject, scheme: Scheme, tokens: usize) -> Result<u64> {
    let scheme = scheme.scheme();
    let model = subject.quantise(&scheme.weights(&subject.weights))?;
    Ok(scheme.costs(&model, tokens, 1)?.whole.bytes.total())
}
