//! One scheme of the protocol, measured between two processes.
//!
//! Where layers were left out, their seconds, bytes, round trips and gates are those of the layers
//! that were run; the embedding and the head are counted once. Bytes and round trips that the
//! channel counted must be those that the program predicts. Of several runs the middle one counts,
//! by the seconds of both phases: all seconds of a row are those of one run.
//!
//! Keys are the same for any number of layers. The seconds of the model are not, and cannot be told
//! apart by layers: they are given where it was run whole.

use super::pair::{bundles, pair};
use super::party::{Measured, Outcome, StepSeconds};
use super::subject::Subject;
use super::table::{Row, StepRow};
use super::timeline::{self, Timeline};
use super::{Entrant, Found, Plain, Request, middle};
use anyhow::{Context, Result, ensure};
use primer::PhaseBytes;
use primer_protocol::cost::{self, Parts};
use primer_protocol::{Program, Reveal, Scheme};

/// Measures one scheme.
pub(super) fn measure(
    request: &Request,
    subject: &Subject,
    scheme: Scheme,
    plain: &Plain,
) -> Result<Found> {
    let name = scheme.name();
    let layers = subject.weights.shape.layers;
    crate::note!(
        "primer: {}, {layers} layers, {} tokens, scheme {name}: preparing the model",
        subject.name,
        request.tokens
    );
    let model = subject.quantise(scheme.recipe().form)?;
    let program = Program::of(&model, scheme, request.tokens, Reveal::Outputs)?;
    let dir = tempfile::tempdir().context("making room for the prepared model")?;
    let path = dir.path().join("model.prepared");
    model.save(&path)?;
    drop(model);
    let entrant = Entrant::Scheme(scheme);
    let (server, client) = pair(request, entrant, Some(&path))?;
    let bundles = bundles(request, entrant);
    let parts = cost::parts_together(&program, bundles)?;
    check_counts(&parts, &client.runs)?;
    let more = subject.more_layers();
    let pinned = server.pinned && client.pinned;
    let mut row = row(scheme, plain, (&parts, bundles), more, (&server, &client))?;
    (row.client_stored_bytes, row.server_stored_bytes) = stored(&program, subject);
    row.hint_bytes = scheme.needs_hint().then(|| {
        let (all, layers) = (program.hint_bytes(), cost::hint_layers(&program));
        all + (layers as f64 * more) as u64
    });
    let timeline = (request.timeline)
        .then(|| of_told_run(request, subject, scheme, (&server, &client)))
        .transpose()?;
    Ok(Found {
        row,
        pinned,
        timeline,
    })
}

/// The timeline of the run that a row tells.
fn of_told_run(
    request: &Request,
    subject: &Subject,
    scheme: Scheme,
    (server, client): (&Outcome, &Outcome),
) -> Result<Timeline> {
    let bundles = bundles(request, Entrant::Scheme(scheme));
    let run = told(&client.runs, subject.more_layers(), bundles)?;
    let lane = |party: &Outcome| {
        let lane = party.lanes.get(run).cloned();
        lane.context("a run has no timeline")
    };
    let about = format!(
        "{}, {} of {} layers, {} tokens, scheme {}, link {}",
        subject.name,
        subject.weights.shape.layers,
        subject.layers,
        request.tokens,
        scheme.name(),
        request.link.name()
    );
    let theirs = lane(client)?;
    timeline::check_total(&theirs, client.runs[run].online_s())?;
    Timeline::new(about, &theirs, &lane(server)?)
}

/// Which run a row tells, by the seconds of both phases of the whole model.
fn told(runs: &[Measured], more: f64, bundles: usize) -> Result<usize> {
    let seconds = |run: &Measured| {
        let offline = run.offline.iter().map(|s| whole(s, more) / bundles as f64);
        let online = run.online.iter().map(|s| whole(s, more));
        offline.chain(online).sum::<f64>()
    };
    let numbers: Vec<usize> = (0..runs.len()).collect();
    middle(&numbers, |number| seconds(&runs[*number])).copied()
}

/// Seconds of a step, stretched to all layers.
fn whole(step: &StepSeconds, more: f64) -> f64 {
    step.outside + step.in_layers * (1.0 + more)
}

/// What a bundle of the whole model takes in each party's store.
fn stored(program: &Program, subject: &Subject) -> (u64, u64) {
    let (all, layers) = (cost::stored(program), cost::stored_layers(program));
    let more = |all: u64, layers: u64| all + (layers as f64 * subject.more_layers()) as u64;
    (
        more(all.client, layers.client),
        more(all.server, layers.server),
    )
}

/// What was counted must be what the program predicts; figures that are extrapolated rest on it.
fn check_counts(parts: &Parts, runs: &[Measured]) -> Result<()> {
    let all = parts.total();
    for run in runs {
        let counted = [
            run.offline_up,
            run.offline_down,
            run.online_up,
            run.online_down,
            run.rounds_online,
        ];
        let bytes = &all.bytes;
        let predicted = [
            bytes.offline_up,
            bytes.offline_down,
            bytes.online_up,
            bytes.online_down,
            all.rounds_online,
        ];
        ensure!(
            counted == predicted,
            "bytes offline up and down, online up and down, and round trips: the channel counted \
             {counted:?}, the program predicts {predicted:?}"
        );
    }
    Ok(())
}

fn row(
    scheme: Scheme,
    plain: &Plain,
    (parts, bundles): (&Parts, usize),
    more: f64,
    (server, client): (&Outcome, &Outcome),
) -> Result<Row> {
    let run = &client.runs[told(&client.runs, more, bundles)?];
    let phases = run.offline.iter().zip(&run.online);
    let steps = phases.map(|(before, during)| StepRow {
        step: before.step,
        offline_s: whole(before, more) / bundles as f64,
        online_s: whole(during, more),
    });
    let steps: Vec<StepRow> = steps.collect();
    let count = |layers: u64, all: u64| all + (layers as f64 * more).round() as u64;
    let (layers, all) = (&parts.layers, parts.total());
    let errors = client.outputs.iter().flatten();
    let errors = errors.zip(plain.outputs.iter().flatten());
    let bytes = |f: fn(&PhaseBytes) -> u64| count(f(&layers.bytes), f(&all.bytes));
    Ok(Row {
        scheme: scheme.name().to_owned(),
        extrapolated: more > 0.0,
        measured_on: None,
        bundles,
        client_stored_bytes: 0,
        server_stored_bytes: 0,
        offline_s: steps.iter().map(|s| s.offline_s).sum(),
        online_s: steps.iter().map(|s| s.online_s).sum(),
        plaintext_s: plain.seconds,
        bytes: PhaseBytes {
            offline_up: bytes(|c| c.offline_up).div_ceil(bundles as u64),
            offline_down: bytes(|c| c.offline_down).div_ceil(bundles as u64),
            online_up: bytes(|c| c.online_up),
            online_down: bytes(|c| c.online_down),
        },
        setup_bytes: client.setup_bytes,
        setup_s: client.setup_s,
        model_s: server.model_s.filter(|_| more == 0.0),
        hint_bytes: None,
        hint_build_s: server.hint_build_s.filter(|_| more == 0.0),
        rounds_online: count(layers.rounds_online, all.rounds_online),
        peak_rss_client: client.peak_rss,
        peak_rss_server: server.peak_rss,
        and_gates: count(layers.and_gates, all.and_gates),
        max_abs_logit_error: errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        in_range: client.in_range,
        steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_plan::graph::PaperStep;

    /// A run of one step: so many seconds in layers offline and outside of them online.
    fn run(offline: f64, online: f64) -> Measured {
        let one = |in_layers, outside| StepSeconds {
            step: PaperStep::Others,
            in_layers,
            outside,
        };
        Measured {
            offline: vec![one(offline, 0.0)],
            online: vec![one(0.0, online)],
            offline_up: 1,
            offline_down: 2,
            online_up: 3,
            online_down: 4,
            rounds_online: 7,
        }
    }

    fn parts() -> Parts {
        let mut parts = Parts::default();
        parts.layers.bytes.offline_up = 1;
        parts.layers.bytes.offline_down = 2;
        parts.outside.bytes.online_up = 3;
        parts.outside.bytes.online_down = 4;
        parts.layers.rounds_online = 5;
        parts.outside.rounds_online = 2;
        parts
    }

    #[test]
    fn counts_that_are_not_predicted_are_refused() {
        assert!(check_counts(&parts(), &[run(1.0, 1.0)]).is_ok());
        let mut other = run(1.0, 1.0);
        other.rounds_online = 8;
        let error = check_counts(&parts(), &[run(1.0, 1.0), other]).unwrap_err();
        assert!(error.to_string().contains("4, 8]"), "{error}");
        let mut other = run(1.0, 1.0);
        other.online_up = 0;
        assert!(check_counts(&parts(), &[other]).is_err());
    }

    /// The first run is the middle one of the layers that were run, the last of the whole model.
    #[test]
    fn a_row_is_of_one_run_and_stretches_layers_only() {
        let plain = Plain {
            seconds: 1.0,
            outputs: Vec::new(),
        };
        let client = Outcome {
            runs: vec![run(1.0, 4.0), run(3.0, 1.0), run(2.0, 8.0)],
            setup_s: Some(0.5),
            ..Outcome::default()
        };
        let server = Outcome {
            model_s: Some(6.0),
            ..Outcome::default()
        };
        let of = |more, bundles| {
            let parts = (&parts(), bundles);
            row(Scheme::Base, &plain, parts, more, (&server, &client)).unwrap()
        };
        let row = |more| of(more, 1);
        let whole = row(0.0);
        assert_eq!((whole.offline_s, whole.online_s), (1.0, 4.0));
        assert_eq!((whole.rounds_online, whole.extrapolated), (7, false));
        assert_eq!((whole.setup_s, whole.model_s), (Some(0.5), Some(6.0)));
        let part = row(11.0);
        assert_eq!((part.offline_s, part.online_s), (24.0, 8.0));
        assert_eq!((part.rounds_online, part.extrapolated), (62, true));
        assert_eq!((part.setup_s, part.model_s), (Some(0.5), None));
        assert_eq!((part.bytes.offline_up, part.bytes.online_up), (12, 3));
        // Of four bundles prepared together one is told, and another run is the middle one.
        let shared = of(11.0, 4);
        assert_eq!((shared.offline_s, shared.online_s), (9.0, 1.0));
        assert_eq!((shared.bytes.offline_up, shared.bytes.online_up), (3, 3));
    }
}
