//! The comparator `gc`: a whole model as a garbled circuit, run on a small shape and extrapolated
//! by its gates.
//!
//! BERT-base takes hundreds of billions of AND gates and terabytes, too many to run. So a
//! small shape is run between two processes as everything else is, and its seconds for each gate,
//! offline and online, are multiplied by the gates of the model that was asked for, which are
//! counted exactly. Of several runs the middle one counts, by the seconds of both phases. A slow
//! link is not measured this way: what it adds does not grow with gates.

use super::check;
use anyhow::{Context, Result, ensure};
use primer_measure::bench::party::{self, Accept, Job, Measured, Outcome, Ready};
use primer_measure::bench::table::{Row, StepRow};
use primer_measure::bench::{Entrant, EntrantResult, Plain, Request, Subject, middle, pair};
use primer_measure::note;
use primer_model::quantise::IntModel;
use primer_paper_gc::{Count, SMALL_TOKENS, client, server, small_shape};
use primer_paper_plan::Form;
use primer_plan::graph::PaperStep;
use primer_ring::prg::Prg;
use primer_wire::{Channel, PhaseBytes};
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The whole model as a garbled circuit (GCFormer).
pub(super) struct Gc;

impl Entrant for Gc {
    fn name(&self) -> &'static str {
        super::Entrant::Gc.name()
    }

    fn bundles(&self, _: usize) -> usize {
        1
    }

    fn check_request(&self, request: &Request) -> Result<()> {
        check::link(self.name(), request)
    }

    fn measure(
        &self,
        request: &Request,
        subject: &Subject,
        plain: &Plain,
    ) -> Result<EntrantResult> {
        measure(request, subject, plain)
    }

    fn serve(&self, job: &Job, _: Option<&Path>, accept: Accept<'_>) -> Result<Outcome> {
        serve(job, || accept(None))
    }

    fn ask(&self, job: &Job, _: &Ready, channel: &mut Channel) -> Result<Outcome> {
        ask(job, channel)
    }
}

/// Makes the model that is run.
fn small() -> Result<(Subject, IntModel)> {
    let subject = Subject::synthetic("small", &small_shape())?;
    let model = subject.quantise(&Form::Separate.weights(&subject.weights))?;
    Ok((subject, model))
}

/// Runs the server of a measurement. It prepares before it accepts.
fn serve(job: &Job, accept: impl FnOnce() -> Result<Channel>) -> Result<Outcome> {
    let model = Arc::new(small()?.1);
    let mut channel = accept()?;
    let mut session = server::Session::accept(&mut channel, model, SMALL_TOKENS, Prg::from_os())?;
    for _ in 0..job.runs {
        let prepared = session.prepare(&mut channel)?;
        session.infer(&mut channel, prepared.material)?;
    }
    Ok(Outcome::default())
}

/// Runs the client of a measurement.
fn ask(job: &Job, channel: &mut Channel) -> Result<Outcome> {
    let started = Instant::now();
    let mut session = client::Session::open(channel, Prg::from_os())?;
    let setup_s = started.elapsed().as_secs_f64();
    let vocab = session.plan().graph().shape.vocab;
    let input = party::input(SMALL_TOKENS, vocab);
    let mut outcome = Outcome {
        setup_bytes: channel.meter().report().under("setup").bytes(),
        setup_s: Some(setup_s),
        ..Outcome::default()
    };
    for _ in 0..job.runs {
        let before = channel.meter().report();
        let mut file = tempfile::tempfile().context("making room for a bundle")?;
        let prepare = || Ok(session.prepare(channel, &mut file)?);
        let offline = party::covered("garbling", prepare, |times| times)?;
        file.rewind()?;
        let bundle = client::Bundle::new(BufReader::with_capacity(1 << 20, file));
        let infer = || Ok(session.infer(channel, bundle, &input)?);
        let answer = party::covered("evaluating", infer, |answer| &answer.times)?;
        let traffic = channel.meter().report().since(&before);
        outcome
            .runs
            .push(Measured::new(&offline, &answer.times, &traffic));
        let reals = answer.reals.iter();
        outcome.outputs = reals.map(|m| m.data().to_vec()).collect();
    }
    Ok(outcome)
}

/// Runs the small shape and extrapolates to the model of the request.
fn measure(request: &Request, subject: &Subject, plain: &Plain) -> Result<EntrantResult> {
    note!("primer: {}, scheme gc: counting its gates", subject.name);
    let weights = Form::Separate.weights(&subject.weights);
    let whole = Count::of(&subject.plan(&weights, request.tokens)?)?;
    let (small, model) = small()?;
    let ran = Count::of(&model.plan(SMALL_TOKENS)?)?;
    let (server, client) = pair(request, &Gc, None)?;
    let predicted = ran.bytes;
    let predicted = [
        predicted.offline_up,
        predicted.offline_down,
        predicted.online_up,
        predicted.online_down,
    ];
    for run in &client.runs {
        let counted = [
            run.offline_up,
            run.offline_down,
            run.online_up,
            run.online_down,
        ];
        ensure!(
            counted == predicted,
            "bytes offline up and down, online up and down: the channel counted {counted:?}, the \
             circuit predicts {predicted:?}"
        );
    }
    let gates = ran.total().and_gates;
    let run = middle(&client.runs, Measured::total_s)?;
    let (offline, online) = (run.offline_s(), run.online_s());
    let more = subject.more_layers();
    let all = |layers: u64, outside: u64| outside + (layers as f64 * (1.0 + more)).round() as u64;
    let of_step = |step| {
        let (layers, outside) = (whole.in_layers(step), whole.outside_layers(step));
        all(layers.and_gates, outside.and_gates)
    };
    let steps = PaperStep::ALL.into_iter().map(|step| {
        let part = of_step(step) as f64 / gates as f64;
        StepRow {
            step,
            offline_s: offline * part,
            online_s: online * part,
        }
    });
    let steps: Vec<StepRow> = steps.collect();
    let left_out: u64 = PaperStep::ALL
        .into_iter()
        .map(|step| whole.in_layers(step).garbled_bytes)
        .sum();
    let errors = client.outputs.iter().flatten();
    let expected = Plain::run(&small, SMALL_TOKENS)?;
    let errors = errors.zip(expected.outputs.iter().flatten());
    let shape = &small.weights.shape;
    let row = Row {
        scheme: Gc.name().to_owned(),
        extrapolated: true,
        measured_on: Some(format!(
            "{} layer of {}, {} tokens: {:.1} million AND gates in {offline:.2} s offline, \
             {online:.2} s online",
            shape.layers,
            shape.hidden,
            SMALL_TOKENS,
            gates as f64 / 1e6,
        )),
        offline_s: steps.iter().map(|s| s.offline_s).sum(),
        online_s: steps.iter().map(|s| s.online_s).sum(),
        plaintext_s: plain.seconds,
        bytes: PhaseBytes {
            offline_up: whole.bytes.offline_up,
            offline_down: whole.bytes.offline_down + (left_out as f64 * more).round() as u64,
            online_up: whole.bytes.online_up,
            online_down: whole.bytes.online_down,
        },
        setup_bytes: client.setup_bytes,
        // The plan and the base transfers: the latter are the same for every model.
        setup_s: client.setup_s,
        // The small model's would say nothing of another.
        model_s: None,
        hint_bytes: None,
        hint_build_s: None,
        rounds_online: whole.rounds_online,
        bundles: 1,
        client_stored_bytes: 0,
        server_stored_bytes: 0,
        peak_rss_client: client.peak_rss,
        peak_rss_server: server.peak_rss,
        and_gates: PaperStep::ALL.into_iter().map(of_step).sum(),
        max_abs_logit_error: errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        in_range: None,
        steps,
    };
    Ok(EntrantResult {
        row,
        pinned: server.pinned && client.pinned,
        recorded: None,
    })
}
