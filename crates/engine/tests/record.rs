//! A record of an online phase: its steps follow each other without a gap, and are the seconds that
//! the clock tells.
#![allow(missing_docs)]

mod common;

use common::{offer, open, served, tiny, words};
use primer_engine::session::direct;
use primer_engine::times::Times;
use primer_engine::{ProtocolError, Reveal, client, server};
use primer_net::pair::{Medium, run_pair_over};
use primer_plan::graph::Graph;
use primer_ring::prg::Prg;
use primer_wire::pair::test_options;
use primer_wire::record::{Doing, Span};
use std::io::Cursor;
use std::time::Duration;

/// Returns the spans of the steps, which have to be those of a graph.
fn steps(spans: &[Span], graph: &Graph) -> Vec<Span> {
    let of_step = |span: &&Span| match span.doing {
        Doing::Step(number) => {
            let mut outputs = graph.steps.iter().map(|step| step.output().index());
            assert!(outputs.any(|output| output == number as usize), "{number}");
            true
        }
        _ => false,
    };
    spans.iter().filter(of_step).copied().collect()
}

fn check(spans: &[Span], times: &Times, graph: &Graph) {
    let steps = steps(spans, graph);
    assert!(steps.len() > graph.steps.len(), "steps are loaded, and run");
    assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from));
    let recorded = steps[steps.len() - 1].to - steps[0].from;
    let told = Duration::from_secs_f64(times.total());
    assert!(
        recorded.abs_diff(told) < Duration::from_millis(5),
        "{recorded:?} and {told:?}"
    );
    // Both parties wait, receive and send within steps. A party that is scheduled late enough finds
    // everything there already and never waits, so that is asked of both together.
    for doing in [Doing::Waiting, Doing::Receiving, Doing::Sending] {
        let mut of_kind = spans.iter().filter(|span| span.doing == doing);
        let within = |span: &Span| {
            let mut steps = steps.iter();
            steps.any(|step| step.from <= span.from && span.to <= step.to)
        };
        assert!(
            doing == Doing::Waiting || of_kind.clone().count() > 0,
            "{doing:?}"
        );
        assert!(of_kind.all(within), "{doing:?}");
    }
}

#[test]
fn the_record_of_an_online_phase_is_its_clock() {
    let (model, input) = (tiny(), words(4, 4, 1));
    let result = run_pair_over::<_, _, ProtocolError>(
        Medium::Tls,
        &test_options(),
        |channel| {
            let mut session = open(channel, &model, 4, Prg::new(&[1; 16]))?;
            let mut bundle = Vec::new();
            session.prepare(channel, &mut bundle)?;
            let bundle = client::Bundle::new(Cursor::new(bundle));
            channel.recorder().start();
            let answer = session.infer(channel, bundle, &input)?;
            Ok((channel.recorder().stop(), answer.times))
        },
        |channel| {
            let offer = offer(&model, Reveal::Outputs);
            let mut session = direct::accept(channel, offer, Prg::new(&[2; 16]))?;
            let served = served(&model, session.program())?;
            let mut bundle = Vec::new();
            session.prepare(channel, &served, &mut bundle)?;
            let bundle = server::Bundle::new(Cursor::new(bundle));
            channel.recorder().start();
            let times = server::infer(channel, &served, bundle)?;
            Ok((channel.recorder().stop(), times))
        },
    );
    let (theirs, ours) = result.unwrap();
    let plan = model.plan(4).unwrap();
    let waits = |spans: &[Span]| spans.iter().any(|span| span.doing == Doing::Waiting);
    assert!(waits(&theirs.0) || waits(&ours.0), "neither party waits");
    for (spans, times) in [theirs, ours] {
        check(&spans, &times, plan.graph());
    }
}
