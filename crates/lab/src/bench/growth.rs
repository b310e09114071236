//! How cost grows: with layers at one length, and with tokens on one layer.
//!
//! Nothing here is extrapolated: a point is a model of that many layers, run whole, with its
//! embedding and head. Of several runs the middle one counts, as in the table. A scheme goes as far
//! with tokens as its messages stay below [`MOST_BYTES`]: scores grow with the square of the
//! length, and what they cost differs between schemes by more than a factor of ten.

use super::table::Row;
use super::{Request, shapes};
use crate::usage::ensure_usage;
use anyhow::Result;
use primer::PhaseBytes;
use primer_protocol::{Program, Reveal, Scheme, cost};
use serde::{Deserialize, Serialize};

/// Layers that are measured.
pub const LAYERS: [usize; 3] = [1, 2, 4];
/// Tokens that are measured, on one layer.
pub const TOKENS: [usize; 7] = [8, 16, 30, 64, 128, 256, 512];
/// A point of more bytes is not run.
pub const MOST_BYTES: u64 = 8_000_000_000;

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
    let comparator = request.entrants.iter().find(|e| e.is_comparator());
    ensure_usage!(
        comparator.is_none(),
        "--growth is for schemes that are run whole, not for the comparator {}",
        comparator.map_or("", |c| c.name())
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

/// The schemes of the request at one size. A table of so few layers tells what was run and, in a
/// model of more layers, what is extrapolated; here the former counts.
fn points(request: &Request, layers: usize, tokens: usize) -> Result<Vec<Point>> {
    let part = Request {
        layers: Some(layers),
        tokens,
        growth: false,
        timeline: false,
        ..request.clone()
    };
    let subject = super::Subject::whole(&part)?;
    let plain = super::Plain::run(&subject, tokens)?;
    let mut points = Vec::new();
    for entrant in &request.entrants {
        let super::Entrant::Scheme(scheme) = *entrant else {
            // Checked before: comparators are not run whole.
            continue;
        };
        let bytes = predicted(&subject, scheme, tokens)?;
        if bytes > MOST_BYTES {
            crate::note!(
                "primer: {}, {tokens} tokens, scheme {}: not run, its messages would have {:.0} GB",
                subject.name,
                scheme.name(),
                bytes as f64 / 1e9
            );
            continue;
        }
        let row = super::scheme::measure(&part, &subject, scheme, &plain)?.row;
        points.push(Point::of(&row, layers, tokens));
    }
    Ok(points)
}

/// The bytes of one inference, which a program tells without running.
fn predicted(subject: &super::Subject, scheme: Scheme, tokens: usize) -> Result<u64> {
    let model = subject.quantise(scheme.recipe().form)?;
    let program = Program::of(&model, scheme, tokens, Reveal::Outputs)?;
    Ok(cost::parts_together(&program, 1)?.total().bytes.total())
}
