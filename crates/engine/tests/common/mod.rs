//! Models, inputs and a pair of parties for the tests of this crate.
#![allow(dead_code, unreachable_pub, unused_imports)] // Every test file uses a part.

pub mod attack;

pub use primer_testkit::files::families;
pub use primer_testkit::models::{classify, encode, rounded, words};
pub use primer_testkit::{frames, relay};

use primer_engine::client::{self, Answer};
use primer_engine::hints::Build;
use primer_engine::server::{self, ServerModel};
use primer_engine::session::{ClientSession, direct};
use primer_engine::{Program, ProtocolError, Reveal, cost};
use primer_hint::errors::deviation;
use primer_hint::multipliers::Multipliers;
use primer_hint::public::Name;
use primer_hint::published::Published;
use primer_hint::server::HintSecret;
use primer_model::fixed::{self, Errors, Outcome, Sign, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_plan::graph::{Graph, Op, Term, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::scales::Scales;
use primer_plan::shape::{Head, Shape};
use primer_plan::weights::IntWeight;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_testkit::files::shared;
use primer_testkit::models;
use primer_text::{Input, TextEncoder};
use primer_wire::Channel;
use primer_wire::meter::Report;
use primer_wire::pair::run_pair;
use std::collections::HashMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The client's share of what goes into each stop.
pub type Shares = HashMap<ValueId, Vec<u64>>;

/// What was seen of one inference: the client's shares of stops and of silent steps, the server's
/// of linear steps.
#[derive(Default)]
pub struct Seen {
    pub client: Shares,
    pub server: Shares,
}

/// Everything that one inference left behind.
pub struct Run {
    pub answer: Answer,
    pub seen: Seen,
    pub client: Report,
    pub server: Report,
}

/// Loads the embedded model.
pub fn demo() -> (Arc<IntModel>, TextEncoder) {
    models::demo(FloatWeights::clone)
}

/// Loads one of the random models that the loading tests use, with the embedded model's vocabulary.
pub fn fixture(name: &str) -> (Arc<IntModel>, TextEncoder) {
    models::fixture(name, FloatWeights::clone)
}

/// Returns the checkpoints of other families, if they lie beside the repository.
pub fn whole_families() -> Option<PathBuf> {
    shared("models/family")
}

/// Loads one of them.
pub fn family(dir: &Path) -> (Arc<IntModel>, TextEncoder) {
    models::load(dir, FloatWeights::clone)
}

/// Makes a random model with twelve words.
pub fn small(layers: usize, size: (usize, usize), head: Head) -> Arc<IntModel> {
    small_with(layers, size, head, |_, _| ())
}

/// Makes the same with other scales than the calibrated ones.
pub fn small_with(
    layers: usize,
    size: (usize, usize),
    head: Head,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    models::random_with(
        &models::shape(layers, size, head),
        FloatWeights::clone,
        change,
    )
}

/// Makes a random model of a shape, with the twelve words.
pub fn synthetic_of(shape: &Shape) -> Arc<IntModel> {
    models::random(shape, FloatWeights::clone)
}

/// Makes the smallest model that has every kind of step.
pub fn tiny() -> Arc<IntModel> {
    models::tiny(FloatWeights::clone)
}

/// Compiles a model.
pub fn program(model: &IntModel, tokens: usize, reveal: Reveal) -> Program {
    Program::of(model, tokens, reveal).unwrap()
}

/// A hint, and what the server multiplies with.
#[derive(Clone)]
pub struct Hinted {
    pub hint: Arc<Published>,
    pub multipliers: Arc<Multipliers>,
}

/// Returns the hint of a model, made once for all tests of a process.
pub fn hinted(model: &IntModel) -> Hinted {
    static MADE: Mutex<Vec<(Name, Hinted)>> = Mutex::new(Vec::new());
    let secret = HintSecret::new([6; 32]);
    let build = Build::new(model, &secret).unwrap();
    let mut made = MADE.lock().unwrap();
    if let Some((_, found)) = made.iter().find(|(name, _)| name == build.name()) {
        return found.clone();
    }
    let (hint, multipliers) = build.in_memory(|_, _| ()).unwrap();
    let found = Hinted {
        hint: Arc::new(hint),
        multipliers: Arc::new(multipliers),
    };
    made.push((*build.name(), found.clone()));
    found
}

/// Compiles a model and binds the program to its hint.
pub fn bound(model: &IntModel, tokens: usize, reveal: Reveal) -> Program {
    let hinted = hinted(model);
    let program = program(model, tokens, reveal);
    program.with_hint(hinted.hint.identity()).unwrap()
}

/// Makes a model ready to be served.
pub fn served(model: &Arc<IntModel>, program: &Program) -> Result<ServerModel, ProtocolError> {
    ServerModel::new(model.clone(), program, Some(hinted(model).multipliers))
}

/// Opens a client's session with the hint of a model.
pub fn open(
    channel: &mut Channel,
    model: &IntModel,
    tokens: usize,
    rng: Prg,
) -> Result<ClientSession, ProtocolError> {
    direct::open(channel, tokens, hinted(model).hint, rng)
}

/// Returns what a server with this model offers.
pub fn offer(
    model: &IntModel,
    reveal: Reveal,
) -> impl FnOnce(usize) -> Result<Program, ProtocolError> {
    move |tokens| Program::of(model, tokens, reveal)?.with_hint(hinted(model).hint.identity())
}

/// Runs the client from the handshake to the answer; `see` gets its share of what enters each stop.
pub fn client(
    channel: &mut Channel,
    model: &IntModel,
    input: &Input,
    see: impl FnMut(ValueId, &Matrix<u64>) + Send + 'static,
) -> Result<Answer, ProtocolError> {
    let rng = Prg::new(&[1; 16]);
    let mut session = open(channel, model, input.tokens(), rng)?;
    session.watch(see);
    let mut bundle = Vec::new();
    session.prepare(channel, &mut bundle)?;
    let stored = cost::stored(session.program()).client;
    assert_eq!(bundle.len() as u64, stored);
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
    server_with(channel, model, reveal, Prg::new(&[2; 16]), &mut blind)
}

/// Does the same with other randomness; `see` gets its shares of linear steps.
pub fn server_with(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    reveal: Reveal,
    rng: Prg,
    see: &mut (dyn FnMut(ValueId, &Matrix<u64>) + Send),
) -> Result<(), ProtocolError> {
    let mut session = direct::accept(channel, offer(model, reveal), rng)?;
    let encoded = served(model, session.program())?;
    let mut bundle = Vec::new();
    session.prepare(channel, &encoded, &mut bundle)?;
    let stored = cost::stored(session.program()).server;
    assert_eq!(bundle.len() as u64, stored);
    let bundle = server::Bundle::new(Cursor::new(bundle));
    server::infer_watched(channel, &encoded, bundle, see)?;
    Ok(())
}

/// Runs both parties over the relay. Returns what each sent, the traffic of each, and the answer.
pub fn logged(model: &Arc<IntModel>, input: &Input) -> ([relay::Log; 2], [Report; 2], Answer) {
    let ((answer, report), theirs, logs) = relay::run(
        None,
        |channel| {
            let answer = client(channel, model, input, blind).unwrap();
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
pub fn infer(model: &Arc<IntModel>, input: &Input) -> Run {
    infer_revealing(model, input, Reveal::Outputs)
}

/// Runs both parties in memory, the client learning no more than the server says.
pub fn infer_revealing(model: &Arc<IntModel>, input: &Input, reveal: Reveal) -> Run {
    let shares = Arc::new(Mutex::new(Shares::new()));
    let seen = Arc::clone(&shares);
    let see = move |id: ValueId, share: &Matrix<u64>| {
        seen.lock().unwrap().insert(id, share.data().to_vec());
    };
    let mut server_shares = Shares::new();
    let mut linear = |id: ValueId, share: &Matrix<u64>| {
        server_shares.insert(id, share.data().to_vec());
    };
    let result = run_pair::<_, _, ProtocolError>(
        |channel| {
            let answer = client(channel, model, input, see)?;
            Ok((answer, channel.meter().report()))
        },
        |channel| {
            server_with(channel, model, reveal, Prg::new(&[2; 16]), &mut linear)?;
            Ok(channel.meter().report())
        },
    );
    let ((answer, client), server) = result.unwrap();
    let shares = std::mem::take(&mut *shares.lock().unwrap());
    Run {
        answer,
        seen: Seen {
            client: shares,
            server: server_shares,
        },
        client,
        server,
    }
}

/// Runs the fixed-point reference, its low bits dropped as the client's shares say, with the errors
/// of the products of linear steps, which must be as small as they should be.
pub fn reference(model: &IntModel, input: &Input, run: &Seen) -> Outcome {
    let plan = model.plan(input.tokens()).unwrap();
    let shares = &run.client;
    let mut given = |id: ValueId, index: usize| shares[&id][index];
    let mut truncate = Truncate::Shares(&mut given);
    let mut squares = Vec::new();
    let found = |id: ValueId| {
        let both = shares[&id].iter().zip(&run.server[&id]);
        let sums = both.map(|(a, b)| modulus::to_signed(modulus::add(*a, *b)));
        sums.collect::<Vec<i64>>()
    };
    // A row and its negative are further apart than what a product errs by.
    let signs = |id: ValueId, embedded: &Matrix<i64>| -> Vec<Sign> {
        let found = found(id);
        let rows = found.chunks(embedded.cols()).enumerate();
        let sign = |(t, row): (usize, &[i64])| {
            let pairs = row.iter().zip(embedded.row(t));
            match pairs.map(|(a, b)| *a as f64 * *b as f64).sum::<f64>() < 0.0 {
                true => Sign::Minus,
                false => Sign::Plus,
            }
        };
        rows.map(sign).collect()
    };
    let mut sums = |id: ValueId, sum: &mut Matrix<i64>| {
        let deviations = deviations(&plan, model, id);
        let columns = sum.cols();
        for (i, (x, found)) in sum.data_mut().iter_mut().zip(found(id)).enumerate() {
            let off = modulus::sub(modulus::from_signed(found), modulus::from_signed(*x));
            let off = modulus::to_signed(off);
            let error = off as f64 / deviations[i % columns];
            assert!(
                error.abs() < 7.0,
                "{}: {error}",
                plan.graph().value(id).name
            );
            squares.push(error * error);
            *x += off;
        }
    };
    let mut errors = Errors::Seen {
        signs: &signs,
        sums: &mut sums,
    };
    let mut workspace = Workspace::default();
    let found = fixed::run(
        &plan,
        model,
        input,
        &mut truncate,
        &mut errors,
        &mut workspace,
    );
    // Errors of one row have the roundings of its mask in common: not as many as there are.
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    let width = 0.2 + 0.3 / (input.tokens() as f64).powi(2);
    assert!((mean - 1.0).abs() < width, "{mean}");
    found
}

/// Computes the deviation of the error of each column of a linear step's result.
fn deviations(plan: &Plan, model: &IntModel, output: ValueId) -> Vec<f64> {
    let graph = plan.graph();
    let terms: Vec<(WeightId, u32)> = match &graph.maker(output).op {
        Op::Embed { table, .. } => {
            let shift = plan.shift(plan.weight_scale(*table).fraction(), output);
            vec![(*table, shift - plan.one_hot_bits(*table, output))]
        }
        Op::Linear { terms, .. } => {
            let shift = |term: &Term| plan.shift(plan.term_fractions(term).0, output);
            terms
                .iter()
                .map(|term| (term.weight, shift(term)))
                .collect()
        }
        _ => unreachable!("only linear steps err"),
    };
    let of = |column: usize| {
        let parts = terms.iter().map(|&(weight, shift)| {
            let square = match &model.weights()[weight.index()] {
                IntWeight::Dense(w) => {
                    let column = (0..w.rows()).map(|i| f64::from(w.get(i, column)).powi(2));
                    column.sum::<f64>()
                }
                IntWeight::Diagonal { gain, mean } => {
                    let means = mean.iter().map(|h| f64::from(*h).powi(2)).sum::<f64>();
                    let own = f64::from(gain[column]) - f64::from(mean[column]);
                    means - f64::from(mean[column]).powi(2) + own * own
                }
                IntWeight::Bias(_) => unreachable!("a bias is not a term"),
            };
            (deviation(square.sqrt()) * f64::from(shift).exp2()).powi(2)
        });
        parts.sum::<f64>().sqrt()
    };
    (0..graph.value(output).cols).map(of).collect()
}

/// Runs an inference and checks every output against the reference, bit for bit, and what the
/// client is told of ranges.
pub fn check(model: &Arc<IntModel>, input: &Input) -> Run {
    let run = infer(model, input);
    let expected = reference(model, input, &run.seen);
    let in_range = expected.flags.map(|flags| flags == 0);
    assert_eq!(run.answer.in_range, in_range);
    let expected = expected.integers;
    assert_eq!(run.answer.integers.len(), expected.len());
    for (found, expected) in run.answer.integers.iter().zip(&expected) {
        assert_eq!(found.data(), expected.data());
    }
    run
}
