//! A scheme as an entrant: run whole, or by its first layers, between two processes.
//!
//! Where layers were left out, their seconds, bytes, round trips and gates are those of the layers
//! that were run; the embedding and the head are counted once. Bytes and round trips that the
//! channel counted must be those that the program predicts. Of several runs the middle one counts,
//! by the seconds of both phases: all seconds of a row are those of one run.
//!
//! Keys are the same for any number of layers. The seconds of the model are not, and cannot be told
//! apart by layers: they are given where it was run whole.

use super::entrant::Entrant;
use super::pair::pair;
use super::party::{Accept, Job, Measured, Outcome, Ready, StepSeconds, covered, input};
use super::subject::Subject;
use super::table::{Row, StepRow};
use super::{EntrantResult, Plain, Recorded, Request, middle};
use crate::hinted;
use crate::scheme::{BundleReader, BundleWriter, Cost, Costs, Scheme, ServerEnd};
use anyhow::{Context, Result, ensure};
use primer::PhaseBytes;
use primer_model::quantise::IntModel;
use primer_wire::Channel;
use primer_wire::record::Span;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A scheme that is run whole.
#[derive(Clone, Copy)]
pub struct Whole(pub &'static dyn Scheme);

impl Entrant for Whole {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn bundles(&self, asked: usize) -> usize {
        asked.min(self.0.most_bundles())
    }

    fn measure(
        &self,
        request: &Request,
        subject: &Subject,
        plain: &Plain,
    ) -> Result<EntrantResult> {
        measure(self, self.0, request, subject, plain)
    }

    fn serve(&self, job: &Job, prepared: Option<&Path>, accept: Accept<'_>) -> Result<Outcome> {
        serve(self.0, job, prepared, accept)
    }

    fn ask(&self, job: &Job, server: &Ready, channel: &mut Channel) -> Result<Outcome> {
        ask(self.0, job, server, channel)
    }
}

fn measure(
    entrant: &dyn Entrant,
    scheme: &dyn Scheme,
    request: &Request,
    subject: &Subject,
    plain: &Plain,
) -> Result<EntrantResult> {
    let name = scheme.name();
    let layers = subject.weights.shape.layers;
    crate::note!(
        "primer: {}, {layers} layers, {} tokens, scheme {name}: preparing the model",
        subject.name,
        request.tokens
    );
    let model = subject.quantise(&scheme.weights(&subject.weights))?;
    let bundles = entrant.bundles(request.bundles);
    let costs = scheme.costs(&model, request.tokens, bundles)?;
    let graph = model.plan(request.tokens)?.graph().clone();
    let dir = tempfile::tempdir().context("making room for the prepared model")?;
    let path = dir.path().join("model.prepared");
    model.save(&path)?;
    drop(model);
    let (server, client) = pair(request, entrant, Some(&path))?;
    check_counts(&costs.whole, &client.runs)?;
    let more = subject.more_layers();
    let pinned = server.pinned && client.pinned;
    let row = row(name, plain, (&costs, bundles), more, (&server, &client))?;
    let recorded = (request.record)
        .then(|| {
            let run = told(&client.runs, more, bundles)?;
            let spans = |party: &Outcome| party.spans.get(run).cloned();
            let missing = "a party did not take down what it did";
            anyhow::Ok(Recorded {
                graph,
                client: spans(&client).context(missing)?,
                server: spans(&server).context(missing)?,
                online_s: client.runs[run].online_s(),
            })
        })
        .transpose()?;
    Ok(EntrantResult {
        row,
        pinned,
        recorded,
    })
}

fn serve(
    scheme: &dyn Scheme,
    job: &Job,
    prepared: Option<&Path>,
    accept: Accept<'_>,
) -> Result<Outcome> {
    let path = prepared.context("a server needs a model")?;
    let started = Instant::now();
    let model = IntModel::open_by(scheme.design(), path)
        .with_context(|| format!("loading {}", path.display()))?;
    let read_s = started.elapsed().as_secs_f64();
    let hinted = scheme.hint(&model)?;
    let place = path.with_extension("hint");
    let hint = match &hinted {
        None => None,
        Some(hinted) => {
            hinted.write(&place)?;
            Some((hinted.hint.identity().name, place))
        }
    };
    let started = Instant::now();
    let weights = scheme.server(Arc::new(model), job.tokens, hinted.as_ref())?;
    let model_s = read_s + started.elapsed().as_secs_f64();
    let channel = &mut accept(hint)?;
    let spans = answer(job, &mut *weights.accept(channel)?, channel)?;
    Ok(Outcome {
        spans,
        model_s: Some(model_s),
        hint_build_s: hinted.map(|hinted| hinted.seconds),
        ..Outcome::default()
    })
}

fn answer(job: &Job, session: &mut dyn ServerEnd, channel: &mut Channel) -> Result<Vec<Vec<Span>>> {
    let mut spans = Vec::new();
    session.set_threads(job.threads);
    for _ in 0..job.runs {
        let mut files = files(job.bundles)?;
        session.prepare(channel, &mut sinks(&mut files))?;
        let bundle = source(files)?;
        let infer = |channel: &mut Channel| session.infer(channel, bundle);
        let (_, record) = recorded(job, channel, infer)?;
        spans.extend(record);
    }
    Ok(spans)
}

/// Runs an online phase, and takes down what this party does if that is asked for.
fn recorded<T>(
    job: &Job,
    channel: &mut Channel,
    run: impl FnOnce(&mut Channel) -> Result<T>,
) -> Result<(T, Option<Vec<Span>>)> {
    if !job.record {
        return Ok((run(channel)?, None));
    }
    let recorder = channel.recorder().clone();
    recorder.start();
    let result = run(channel)?;
    Ok((result, Some(recorder.stop())))
}

/// Makes room for bundles.
fn files(bundles: usize) -> Result<Vec<File>> {
    let files = (0..bundles).map(|_| tempfile::tempfile());
    let files: std::io::Result<_> = files.collect();
    files.context("making room for bundles")
}

fn sinks(files: &mut [File]) -> Vec<BundleWriter<'_>> {
    files
        .iter_mut()
        .map(|file| file as BundleWriter<'_>)
        .collect()
}

/// Opens the first of some bundles; the others are given up.
fn source(mut files: Vec<File>) -> Result<BundleReader> {
    let mut file = files.swap_remove(0);
    file.rewind()?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

fn ask(scheme: &dyn Scheme, job: &Job, server: &Ready, channel: &mut Channel) -> Result<Outcome> {
    let hint = server.hint.as_ref();
    let hint = hint
        .map(|(name, path)| hinted::read(path, name))
        .transpose()?;
    let started = Instant::now();
    let mut session = scheme.client(channel, job.tokens, hint)?;
    let setup_s = started.elapsed().as_secs_f64();
    session.set_threads(job.threads);
    let input = input(job.tokens, session.vocabulary());
    let mut outcome = Outcome {
        setup_bytes: channel.meter().report().under("setup").bytes(),
        setup_s: Some(setup_s),
        ..Outcome::default()
    };
    for run in 1..=job.runs {
        let started = Instant::now();
        let before = channel.meter().report();
        let mut files = files(job.bundles)?;
        let prepare = || session.prepare(channel, &mut sinks(&mut files));
        let offline = covered("preparing", prepare, |times| times)?;
        let say = |phase: &str, since: Instant| {
            let seconds = since.elapsed().as_secs_f64();
            crate::note!("primer: run {run} of {}: {phase} {seconds:.1} s", job.runs);
        };
        say("offline", started);
        let bundle = source(files)?;
        let started = Instant::now();
        let infer = |channel: &mut Channel| {
            let infer = || session.infer(channel, bundle, &input);
            covered("inferring", infer, |answer| &answer.times)
        };
        let (answer, record) = recorded(job, channel, infer)?;
        outcome.spans.extend(record);
        say("online", started);
        let traffic = channel.meter().report().since(&before);
        outcome
            .runs
            .push(Measured::new(&offline, &answer.times, &traffic));
        let before = outcome.in_range;
        outcome.in_range = answer.in_range.map(|now| now && before != Some(false));
        let reals = answer.reals.iter();
        outcome.outputs = reals.map(|m| m.data().to_vec()).collect();
    }
    Ok(outcome)
}

/// Returns the number of the run that a row tells, by the seconds of both phases of the whole
/// model.
fn told(runs: &[Measured], more: f64, bundles: usize) -> Result<usize> {
    let seconds = |run: &Measured| {
        let offline = run.offline.iter().map(|s| whole(s, more) / bundles as f64);
        let online = run.online.iter().map(|s| whole(s, more));
        offline.chain(online).sum::<f64>()
    };
    let numbers: Vec<usize> = (0..runs.len()).collect();
    middle(&numbers, |number| seconds(&runs[*number])).copied()
}

/// Returns the seconds of a step, stretched to all layers.
fn whole(step: &StepSeconds, more: f64) -> f64 {
    step.outside + step.in_layers * (1.0 + more)
}

/// Checks that what was counted is what the program predicts: extrapolated figures rest on it.
fn check_counts(all: &Cost, runs: &[Measured]) -> Result<()> {
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
    scheme: &str,
    plain: &Plain,
    (costs, bundles): (&Costs, usize),
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
    let rough = |layers: u64, all: u64| all + (layers as f64 * more) as u64;
    let Costs { whole: all, layers } = costs;
    let errors = client.outputs.iter().flatten();
    let errors = errors.zip(plain.outputs.iter().flatten());
    let bytes = |f: fn(&PhaseBytes) -> u64| count(f(&layers.bytes), f(&all.bytes));
    Ok(Row {
        scheme: scheme.to_owned(),
        extrapolated: more > 0.0,
        measured_on: None,
        bundles,
        client_stored_bytes: rough(layers.client_stored, all.client_stored),
        server_stored_bytes: rough(layers.server_stored, all.server_stored),
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
        hint_bytes: all.hint.map(|hint| rough(layers.hint.unwrap_or(0), hint)),
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

    /// Makes a run of one step from its seconds in layers offline and outside of them online.
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

    /// Makes seven round trips and bytes of 1 to 4: offline bytes and five trips are of layers.
    fn costs() -> Costs {
        let bytes = |offline_up, offline_down, online_up, online_down| PhaseBytes {
            offline_up,
            offline_down,
            online_up,
            online_down,
        };
        let cost = |bytes, rounds_online| Cost {
            bytes,
            rounds_online,
            ..Cost::default()
        };
        Costs {
            whole: cost(bytes(1, 2, 3, 4), 7),
            layers: cost(bytes(1, 2, 0, 0), 5),
        }
    }

    #[test]
    fn counts_that_are_not_predicted_are_refused() {
        assert!(check_counts(&costs().whole, &[run(1.0, 1.0)]).is_ok());
        let mut other = run(1.0, 1.0);
        other.rounds_online = 8;
        let error = check_counts(&costs().whole, &[run(1.0, 1.0), other]).unwrap_err();
        assert!(error.to_string().contains("4, 8]"), "{error}");
        let mut other = run(1.0, 1.0);
        other.online_up = 0;
        assert!(check_counts(&costs().whole, &[other]).is_err());
    }

    /// Checks that the first run is the middle one of the layers that were run, the last of the
    /// whole model.
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
            let costs = (&costs(), bundles);
            row("lean", &plain, costs, more, (&server, &client)).unwrap()
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
