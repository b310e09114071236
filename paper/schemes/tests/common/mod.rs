//! Models, inputs and a pair of parties for the tests of this crate.
#![allow(dead_code, unreachable_pub, unused_imports)] // Every test file uses a part.

pub mod attack;

pub use primer_testkit::files::families;
pub use primer_testkit::models::{classify, encode, rounded, words};
pub use primer_testkit::{frames, relay};

use primer_engine::Reveal;
use primer_model::fixed::{self, Errors, Outcome, Truncate, Workspace};
use primer_model::quantise::IntModel;
use primer_paper::client::{self, Answer};
use primer_paper::server::{self, ServerModel};
use primer_paper::session::{ClientSession, ServerSession};
use primer_paper::{Program, ProtocolError, Scheme, cost};
use primer_plan::graph::ValueId;
use primer_plan::shape::Head;
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_testkit::files::shared;
use primer_testkit::models;
use primer_text::{Input, TextEncoder};
use primer_wire::Channel;
use primer_wire::meter::Report;
use primer_wire::run_pair;
use std::collections::HashMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The client's share of what goes into each stop.
pub type Shares = HashMap<ValueId, Vec<u64>>;

/// Everything that one inference left behind.
pub struct Run {
    pub answer: Answer,
    /// The client's shares of stops.
    pub seen: Shares,
    pub client: Report,
    pub server: Report,
}

/// Loads the embedded model.
pub fn demo(scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    models::demo(|weights| scheme.recipe().form.weights(weights))
}

/// Loads one of the random models that the loading tests use, with the embedded model's vocabulary.
pub fn fixture(name: &str, scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    models::fixture(name, |weights| scheme.recipe().form.weights(weights))
}

/// Returns the checkpoints of other families, if they lie beside the repository.
pub fn whole_families() -> Option<PathBuf> {
    shared("models/family")
}

/// Loads one of them.
pub fn family(dir: &Path, scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    models::load(dir, |weights| scheme.recipe().form.weights(weights))
}

/// Makes a random model with twelve words: quick even where features come first.
pub fn small(layers: usize, hidden: usize, heads: usize, head: Head) -> Arc<IntModel> {
    small_for(Scheme::Fp, layers, (hidden, heads), head)
}

/// Makes the same for another scheme, of which only the attention matters.
pub fn small_for(scheme: Scheme, layers: usize, size: (usize, usize), head: Head) -> Arc<IntModel> {
    models::random(&models::shape(layers, size, head), |weights| {
        scheme.recipe().form.weights(weights)
    })
}

/// Makes the smallest model that has every kind of step.
pub fn tiny() -> Arc<IntModel> {
    tiny_for(Scheme::Fp)
}

/// Makes the same for another scheme.
pub fn tiny_for(scheme: Scheme) -> Arc<IntModel> {
    models::tiny(|weights| scheme.recipe().form.weights(weights))
}

/// Compiles a model.
pub fn program(model: &IntModel, tokens: usize, scheme: Scheme, reveal: Reveal) -> Program {
    Program::of(model, scheme, tokens, reveal).unwrap()
}

/// Makes a model ready to be served.
pub fn served(model: &Arc<IntModel>, program: &Program) -> Result<ServerModel, ProtocolError> {
    ServerModel::new(model.clone(), program)
}

/// Returns what a server with this model offers.
pub fn offer(
    model: &IntModel,
    reveal: Reveal,
) -> impl FnOnce(Scheme, usize) -> Result<Program, String> {
    move |scheme, tokens| Program::of(model, scheme, tokens, reveal).map_err(|e| e.to_string())
}

/// Runs the client from the handshake to the answer; `see` gets its share of what enters each stop.
pub fn client(
    channel: &mut Channel,
    input: &Input,
    scheme: Scheme,
    see: impl FnMut(ValueId, &Matrix<u64>) + Send + 'static,
) -> Result<Answer, ProtocolError> {
    let rng = Prg::new(&[1; 16]);
    let mut session = ClientSession::open(channel, scheme, input.tokens(), rng)?;
    session.watch(see);
    let mut bundle = Vec::new();
    session.prepare(channel, &mut bundle)?;
    let stored = cost::stored(session.program()).client;
    assert_eq!(bundle.len() as u64, stored, "{}", scheme.name());
    session.infer(channel, client::Bundle::new(Cursor::new(bundle)), input)
}

/// Sees nothing.
pub fn blind(_: ValueId, _: &Matrix<u64>) {}

/// Runs the server from the handshake to its last message.
pub fn server(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    reveal: Reveal,
) -> Result<(), ProtocolError> {
    let rng = Prg::new(&[2; 16]);
    let mut session = ServerSession::accept(channel, offer(model, reveal), rng)?;
    let encoded = served(model, session.program())?;
    let mut bundle = Vec::new();
    session.prepare(channel, &encoded, &mut bundle)?;
    let stored = cost::stored(session.program()).server;
    assert_eq!(bundle.len() as u64, stored);
    let bundle = server::Bundle::new(Cursor::new(bundle));
    session.infer(channel, &encoded, bundle)?;
    Ok(())
}

/// Runs both parties over the relay. Returns what each sent, the traffic of each, and the answer.
pub fn logged(
    model: &Arc<IntModel>,
    input: &Input,
    scheme: Scheme,
) -> ([relay::Log; 2], [Report; 2], Answer) {
    let ((answer, report), theirs, logs) = relay::run(
        None,
        |channel| {
            let answer = client(channel, input, scheme, blind).unwrap();
            (answer, channel.meter().report())
        },
        |channel| {
            server(channel, model, Reveal::Outputs).unwrap();
            channel.meter().report()
        },
    );
    (logs, [report, theirs], answer)
}

/// Runs both parties in memory.
pub fn infer(model: &Arc<IntModel>, input: &Input, scheme: Scheme) -> Run {
    infer_revealing(model, input, scheme, Reveal::Outputs)
}

/// Runs both parties in memory, the client learning no more than the server says.
pub fn infer_revealing(
    model: &Arc<IntModel>,
    input: &Input,
    scheme: Scheme,
    reveal: Reveal,
) -> Run {
    let shares = Arc::new(Mutex::new(Shares::new()));
    let seen = Arc::clone(&shares);
    let see = move |id: ValueId, share: &Matrix<u64>| {
        seen.lock().unwrap().insert(id, share.data().to_vec());
    };
    let result = run_pair::<_, _, ProtocolError>(
        |channel| {
            let answer = client(channel, input, scheme, see)?;
            Ok((answer, channel.meter().report()))
        },
        |channel| {
            server(channel, model, reveal)?;
            Ok(channel.meter().report())
        },
    );
    let ((answer, client), server) = result.unwrap();
    let shares = std::mem::take(&mut *shares.lock().unwrap());
    Run {
        answer,
        seen: shares,
        client,
        server,
    }
}

/// Runs the fixed-point reference, its low bits dropped as the client's shares say.
pub fn reference(model: &IntModel, input: &Input, shares: &Shares) -> Outcome {
    let plan = model.plan(input.tokens()).unwrap();
    let mut given = |id: ValueId, index: usize| shares[&id][index];
    let mut truncate = Truncate::Shares(&mut given);
    let (mut errors, mut workspace) = (Errors::None, Workspace::default());
    fixed::run(
        &plan,
        model,
        input,
        &mut truncate,
        &mut errors,
        &mut workspace,
    )
}

/// Runs a scheme and checks every output against the reference, bit for bit.
pub fn check(model: &Arc<IntModel>, input: &Input, scheme: Scheme) -> Run {
    let run = infer(model, input, scheme);
    let expected = reference(model, input, &run.seen);
    let expected = expected.integers;
    assert_eq!(run.answer.integers.len(), expected.len());
    for (found, expected) in run.answer.integers.iter().zip(&expected) {
        assert_eq!(found.data(), expected.data(), "{}", scheme.name());
    }
    run
}
