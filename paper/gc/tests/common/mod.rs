//! Models, inputs and both parties in one process.
#![allow(dead_code, unreachable_pub)] // Every test file uses a part.

use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_paper_gc::{Count, GcError, client, server};
use primer_paper_plan::Form;
use primer_plan::plan::Plan;
use primer_plan::shape::{Head, Shape};
use primer_ring::prg::Prg;
use primer_testkit::models::twelve_words;
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::meter::Report;
use primer_wire::run_pair;
use std::io::{BufReader, BufWriter, Seek};
use std::sync::Arc;

const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";

/// Returns the smallest shape that has every kind of step but the pooler, whose table takes longest
/// to build.
pub fn tiny() -> Shape {
    Shape {
        head: Head::Span,
        ..classifier()
    }
}

/// Returns the smallest shape that has every kind of step.
pub fn classifier() -> Shape {
    Shape {
        vocab: 12,
        positions: 16,
        ffn: 12,
        ..synthetic::bert_shape(1, 8, 2)
    }
}

fn quantised(shape: &Shape, form: Form) -> IntModel {
    // Wide enough for the calibration text, whose positions the model has to have.
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[7; 16]));
    let weights = form.weights(&weights);
    let scales = calibrate(&weights, &twelve_words(), TEXT, |_, _| ()).unwrap();
    IntModel::quantise(&weights, scales).unwrap()
}

/// Makes a model with random weights.
pub fn model(shape: &Shape) -> Arc<IntModel> {
    Arc::new(quantised(shape, Form::Separate))
}

/// Makes a plan without queries and keys.
pub fn merged(shape: &Shape) -> Plan {
    quantised(shape, Form::Merged).plan(2).unwrap()
}

/// Makes an input of which the first `length` tokens are not padding.
pub fn input(tokens: usize, length: usize, vocab: usize) -> Input {
    Input {
        ids: (0..tokens)
            .map(|t| ((t * 977 + 5) % vocab) as u32)
            .collect(),
        types: vec![0; tokens],
        length,
        removed: 0,
        second: vec![None; tokens],
    }
}

/// Runs the server from the handshake to its last message.
pub fn serve(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    tokens: usize,
) -> Result<(u64, u64), GcError> {
    let rng = Prg::new(&[2; 16]);
    let mut session = server::Session::accept(channel, Arc::clone(model), tokens, rng)?;
    let prepared = session.prepare(channel)?;
    let passed = (prepared.and_gates, prepared.garbler_inputs);
    session.infer(channel, prepared.material)?;
    Ok(passed)
}

/// Runs the client from the handshake to the answer, its material in a file.
pub fn ask(
    channel: &mut Channel,
    input: &Input,
) -> Result<(client::GarbledAnswer, Count, u64), GcError> {
    let mut session = client::Session::open(channel, Prg::new(&[1; 16]))?;
    let mut file = BufWriter::new(tempfile::tempfile()?);
    session.prepare(channel, &mut file)?;
    let mut file = file.into_inner().expect("a flushed file");
    let stored = file.stream_position()?;
    file.rewind()?;
    let bundle = client::Bundle::new(BufReader::new(file));
    let answer = session.infer(channel, bundle, input)?;
    Ok((answer, session.count(), stored))
}

/// What one inference left behind.
pub struct Run {
    pub answer: client::GarbledAnswer,
    pub count: Count,
    pub traffic: Report,
}

/// Runs both parties and compares outputs, gates and bytes.
pub fn check(model: &Arc<IntModel>, input: &Input) -> Run {
    let tokens = input.tokens();
    let result = run_pair::<_, _, GcError>(
        |channel| {
            let (answer, count, stored) = ask(channel, input)?;
            Ok((answer, count, stored, channel.meter().report()))
        },
        |channel| serve(channel, model, tokens),
    );
    let ((answer, count, stored, traffic), (garbled, given)) = result.unwrap();
    let plan = model.plan(tokens).unwrap();
    let mut workspace = Workspace::default();
    let expected = fixed::run(
        &plan,
        model,
        input,
        &mut Truncate::Exact,
        &mut fixed::Errors::None,
        &mut workspace,
    );
    // Results may use their spare bit, which nothing else has.
    let graph = plan.graph();
    let spare = |name: &str| {
        let mut stops = graph
            .steps
            .iter()
            .filter(|step| graph.outputs.contains(&step.output()));
        stops.any(|step| graph.value(step.inputs()[0]).name == name)
    };
    let mut wide = expected.out_of_range.iter();
    assert!(wide.all(|v| spare(&v.value)), "{:?}", expected.out_of_range);
    assert_eq!(answer.integers.len(), expected.integers.len());
    for (found, wanted) in answer.integers.iter().zip(&expected.integers) {
        assert_eq!(found.data(), wanted.data());
    }
    assert!(
        answer
            .integers
            .iter()
            .any(|m| m.data().iter().any(|v| *v != 0))
    );
    // What passed is what was counted.
    assert_eq!(count, Count::of(&plan).unwrap());
    let total = count.total();
    assert_eq!(
        (garbled, answer.and_gates),
        (total.and_gates, total.and_gates)
    );
    assert_eq!(given, total.garbler_inputs);
    let (offline, online) = (traffic.under("offline"), traffic.under("online"));
    assert_eq!(offline.bytes_sent, count.bytes.offline_up);
    assert_eq!(offline.bytes_received, count.bytes.offline_down);
    assert_eq!(online.bytes_sent, count.bytes.online_up);
    assert_eq!(online.bytes_received, count.bytes.online_down);
    assert_eq!(
        (offline.rounds, online.rounds),
        (count.rounds_offline, count.rounds_online)
    );
    assert_eq!(stored, count.stored());
    Run {
        answer,
        count,
        traffic,
    }
}
