//! The comparator `fhe`: homomorphic encryption alone, run on a small shape and extrapolated from
//! counts of operations.
//!
//! A small model is run on ciphertexts between two processes. What its operations cost is predicted
//! from the parts that they are made of, measured on this machine; the ratio of what the run took
//! to what was predicted corrects the prediction for the model that was asked for, whose operations
//! are counted exactly.
//!
//! There is no bootstrapping here, and a model of many layers is too deep for any ring that one
//! would run. Its figure is the kindest that can be defended: every layer in the ring that one
//! layer needs, as if ciphertexts could be refreshed in between for nothing. What the model would
//! take as one deep computation is said beside it.
//!
//! Its seconds are the server's processor time, since the server does nearly all of the work: the
//! client's own and the link's are not in them.

use super::check;
use anyhow::{Context, Result};
use primer_measure::bench::party::{self, Accept, Job, Measured, Outcome, Ready};
use primer_measure::bench::table::{Row, StepRow};
use primer_measure::bench::{Entrant, EntrantResult, Plain, Request, Subject, middle, pair};
use primer_measure::note;
use primer_model::synthetic;
use primer_paper_fhe::cost::{Estimate, Ring, Units};
use primer_paper_fhe::fit::fit;
use primer_paper_fhe::polynomials::Degrees;
use primer_paper_fhe::setup::Setup;
use primer_paper_fhe::{client, server, wire};
use primer_paper_plan::Form;
use primer_plan::graph::PaperStep;
use primer_plan::shape::Shape;
use primer_plan::times::Times;
use primer_ring::prg::Prg;
use primer_text::Input;
use primer_wire::{Channel, PhaseBytes};
use std::path::Path;

/// Homomorphic encryption alone (THE-X).
pub(super) struct Fhe;

impl Entrant for Fhe {
    fn name(&self) -> &'static str {
        super::Entrant::Fhe.name()
    }

    fn bundles(&self, _: usize) -> usize {
        1
    }

    fn check_request(&self, request: &Request) -> Result<()> {
        check::link(self.name(), request)
    }

    fn check_subject(&self, request: &Request, subject: &Subject) -> Result<()> {
        check_shape(request, subject)
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

const TOKENS: usize = 8;
const DEGREES: Degrees = Degrees::MIDDLE;

/// Returns one layer of width 32 with two heads: all kinds of steps, in the largest ring that is
/// run.
fn small_shape() -> Shape {
    Shape {
        vocab: 126,
        positions: 16,
        ..synthetic::bert_shape(1, 32, 2)
    }
}

fn setup() -> Result<Setup> {
    Ok(Setup::new(&small_shape(), TOKENS, &DEGREES)?)
}

/// Makes texts that the polynomials are fitted to.
fn texts(vocab: usize) -> Vec<Input> {
    let one = |salt: usize| {
        let mut input = party::input(TOKENS, vocab);
        input.length = TOKENS - salt % 3;
        for (t, id) in input.ids.iter_mut().enumerate() {
            *id = ((7 * t + 5 * salt + 1) % vocab) as u32;
        }
        input
    };
    (0..32).map(one).collect()
}

/// Runs the server of a measurement. It prepares before it accepts.
fn serve(job: &Job, accept: impl FnOnce() -> Result<Channel>) -> Result<Outcome> {
    let setup = setup()?;
    let subject = Subject::synthetic("small", &small_shape())?;
    let inputs = texts(subject.weights.shape.vocab);
    let weights = Form::Separate.weights(&subject.weights);
    let polynomials = fit(&weights, &inputs, &DEGREES, |_, _| ());
    let mut channel = accept()?;
    let mut outcome = Outcome::default();
    for _ in 0..job.runs {
        let before = channel.meter().report();
        let done = server::run(&mut channel, &setup, &weights, &polynomials)?;
        let traffic = channel.meter().report().since(&before);
        let nothing = Times::default();
        outcome
            .runs
            .push(Measured::new(&nothing, &done.times, &traffic));
    }
    Ok(outcome)
}

/// Runs the client of a measurement.
fn ask(job: &Job, channel: &mut Channel) -> Result<Outcome> {
    let setup = setup()?;
    let input = party::input(TOKENS, setup.graph.shape.vocab);
    let mut outcome = Outcome::default();
    for run in 1..=job.runs {
        let answer = client::run(channel, &setup, &input, &mut Prg::from_os())?;
        note!(
            "primer: run {run} of {}: keys {:.1} s, online {:.1} s",
            job.runs,
            answer.keys,
            answer.online
        );
        outcome.outputs = vec![answer.logits];
    }
    Ok(outcome)
}

/// Tells what that many layers of the model of the request would take.
fn estimate(
    request: &Request,
    subject: &Subject,
    layers: usize,
    units: &Units,
) -> Result<Estimate> {
    let shape = Shape {
        layers,
        ..subject.weights.shape.clone()
    };
    Ok(Estimate::of(&shape, request.tokens, &DEGREES, units)?)
}

/// Refuses before the long work what could not be estimated after it.
fn check_shape(request: &Request, subject: &Subject) -> Result<()> {
    let nothing = Units {
        transform: 0.0,
        embedding: 0.0,
        pass: 0.0,
        term: 0.0,
        inner: 0.0,
    };
    for layers in [1, subject.layers] {
        estimate(request, subject, layers, &nothing)
            .with_context(|| format!("{} cannot be measured under scheme fhe", subject.name))?;
    }
    Ok(())
}

/// Runs the small shape and extrapolates to the model of the request.
fn measure(request: &Request, subject: &Subject, plain: &Plain) -> Result<EntrantResult> {
    note!("primer: {}, scheme fhe: measuring operations", subject.name);
    let setup = setup()?;
    let units = Units::measure(&setup.params);
    let ring = Ring::of(&setup.params);
    let predicted: f64 = units.total(&ring, &setup.counted.count).values().sum();
    let (server, client) = pair(request, &Fhe, None)?;
    let took = middle(&server.runs, Measured::online_s)?.online_s();
    let estimate = |layers: usize| estimate(request, subject, layers, &units);
    let (one, deep) = (estimate(1)?, estimate(subject.layers)?);
    let correction = took / predicted;
    let steps = PaperStep::ALL.into_iter().map(|step| {
        let places = one.seconds.iter().filter(|(place, _)| place.step == step);
        let seconds = places.map(|(place, seconds)| match place.in_layer {
            true => seconds * subject.layers as f64,
            false => *seconds,
        });
        StepRow {
            step,
            offline_s: 0.0,
            online_s: correction * seconds.sum::<f64>(),
        }
    });
    let steps: Vec<StepRow> = steps.collect();
    let small = Subject::synthetic("small", &small_shape())?;
    let expected = Plain::run(&small, TOKENS)?;
    let errors = client.outputs.iter().flatten();
    let errors = errors.zip(expected.outputs.iter().flatten());
    let answer = wire::answer_bytes(&setup.params) * (one.ring.degree / ring.degree);
    let row = Row {
        scheme: Fhe.name().to_owned(),
        extrapolated: true,
        measured_on: Some(format!(
            "1 layer of {}, {TOKENS} tokens, {} levels at degree 2^{}: {took:.1} s of the server's \
             processor time (predicted {predicted:.1} s); refreshing between layers is counted as \
             free, as one computation ({} levels, degree 2^{}) it would take {:.0} thousand \
             seconds",
            small_shape().hidden,
            ring.levels,
            ring.degree.ilog2(),
            deep.ring.levels,
            deep.ring.degree.ilog2(),
            correction * deep.total() / 1000.0,
        )),
        offline_s: 0.0,
        online_s: steps.iter().map(|s| s.online_s).sum(),
        plaintext_s: plain.seconds,
        bytes: PhaseBytes {
            offline_up: 0,
            offline_down: 0,
            online_up: one.input_bytes() as u64,
            online_down: answer as u64,
        },
        setup_bytes: one.key_bytes() as u64,
        // Those of the run belong to its own ring, which is another than the model's.
        setup_s: None,
        model_s: None,
        hint_bytes: None,
        hint_build_s: None,
        rounds_online: 1,
        bundles: 1,
        client_stored_bytes: 0,
        server_stored_bytes: 0,
        peak_rss_client: client.peak_rss,
        peak_rss_server: server.peak_rss,
        and_gates: 0,
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
