//! One scheme of the protocol, measured between two processes.
//!
//! Where layers were left out, their seconds, bytes, round trips and gates are those of the layers that were run; the
//! embedding and the head are counted once. The bytes that the channel counted must be those that the program foretells.

use super::pair::pair;
use super::party::{Measured, Outcome, StepSeconds};
use super::subject::Subject;
use super::table::{Bytes, Row, StepRow};
use super::{Entrant, Plain, Request, median};
use anyhow::{Context, Result, ensure};
use primer_plan::graph::PaperStep;
use primer_protocol::cost::{self, Parts};
use primer_protocol::scheme::Prepared;
use primer_protocol::{Program, Reveal, Scheme};

/// Measures one scheme; says also whether both parties had a core of their own.
pub(super) fn measure(
    request: &Request,
    subject: &Subject,
    scheme: Scheme,
    plain: &Plain,
) -> Result<(Row, bool)> {
    let name = scheme.name();
    let layers = subject.weights.shape.layers;
    eprintln!(
        "primer: {}, {layers} layers, {} tokens, scheme {name}: preparing the model",
        subject.name, request.tokens
    );
    let model = subject.quantise(scheme.attention())?;
    let program = Program::new(model.plan(request.tokens)?, scheme, Reveal::Outputs)?;
    let dir = tempfile::tempdir().context("making room for the prepared model")?;
    let path = dir.path().join("model.prepared");
    model.save(&path)?;
    drop(model);
    let (server, client) = pair(request, Entrant::Scheme(scheme), Some(&path))?;
    let parts = cost::parts(&program)?;
    check_counts(&parts, &client.runs)?;
    let more = subject.more_layers();
    let pinned = server.pinned && client.pinned;
    let row = row(scheme, plain, &parts, more, (&server, &client));
    Ok((row, pinned))
}

/// What was counted must be what the program foretells; figures that are extrapolated rest on it.
fn check_counts(parts: &Parts, runs: &[Measured]) -> Result<()> {
    let all = parts.total();
    for run in runs {
        let counted = [
            run.offline_up,
            run.offline_down,
            run.online_up,
            run.online_down,
        ];
        let bytes = &all.bytes;
        let foretold = [
            bytes.offline_up,
            bytes.offline_down,
            bytes.online_up,
            bytes.online_down,
        ];
        ensure!(
            counted == foretold,
            "the channel counted {counted:?} bytes, the program foretells {foretold:?}"
        );
    }
    Ok(())
}

/// Round trips online. What is prepared online takes some that the program does not count, so there the measured
/// number is stretched.
fn rounds(scheme: Scheme, client: &Outcome, of_layers: u64, more: f64) -> u64 {
    let measured = client.runs.first().map_or(0, |run| run.rounds_online);
    let left_out = match scheme.prepared() {
        Prepared::Offline => of_layers,
        Prepared::Online => measured,
    };
    measured + (left_out as f64 * more).round() as u64
}

fn row(
    scheme: Scheme,
    plain: &Plain,
    parts: &Parts,
    more: f64,
    (server, client): (&Outcome, &Outcome),
) -> Row {
    let seconds = |phase: fn(&Measured) -> &Vec<StepSeconds>, step: usize| {
        let one = |run: &Measured| {
            let StepSeconds {
                in_layers, outside, ..
            } = phase(run)[step];
            outside + in_layers * (1.0 + more)
        };
        median(client.runs.iter().map(one).collect())
    };
    let steps: Vec<StepRow> = PaperStep::ALL
        .into_iter()
        .enumerate()
        .map(|(at, step)| StepRow {
            step,
            offline_s: seconds(|run| &run.offline, at),
            online_s: seconds(|run| &run.online, at),
        })
        .collect();
    let count = |layers: u64, all: u64| all + (layers as f64 * more).round() as u64;
    let (layers, all) = (&parts.layers, parts.total());
    let errors = client.outputs.iter().flatten();
    let errors = errors.zip(plain.outputs.iter().flatten());
    let bytes = |f: fn(&primer_stops::Cost) -> u64| count(f(&layers.bytes), f(&all.bytes));
    Row {
        scheme: scheme.name().to_owned(),
        extrapolated: more > 0.0,
        measured_on: None,
        offline_s: steps.iter().map(|s| s.offline_s).sum(),
        online_s: steps.iter().map(|s| s.online_s).sum(),
        plaintext_s: plain.seconds,
        bytes: Bytes {
            offline_up: bytes(|c| c.offline_up),
            offline_down: bytes(|c| c.offline_down),
            online_up: bytes(|c| c.online_up),
            online_down: bytes(|c| c.online_down),
        },
        setup_bytes: client.setup_bytes,
        setup_s: None,
        model_s: None,
        rounds_online: rounds(scheme, client, layers.rounds_online, more),
        peak_rss_client: client.peak_rss,
        peak_rss_server: server.peak_rss,
        and_gates: count(layers.and_gates, all.and_gates),
        max_abs_logit_error: errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        steps,
    }
}
