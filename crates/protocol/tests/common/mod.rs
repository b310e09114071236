//! Models, inputs and a pair of parties for the tests of this crate.
#![allow(dead_code, unreachable_pub)] // Every test file uses a part.

pub mod attack;
pub mod frames;
pub mod relay;

use primer_hint::errors::deviation;
use primer_hint::multipliers::Multipliers;
use primer_hint::public::Name;
use primer_hint::published::Published;
use primer_hint::server::HintSecret;
use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Errors, Outcome, Sign, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_net::Channel;
use primer_net::meter::Report;
use primer_net::pair::run_pair;
use primer_plan::graph::{Form, Graph, Op, Term, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::scales::Scales;
use primer_plan::shape::{Head, Shape};
use primer_plan::weights::IntWeight;
use primer_protocol::client::{self, Answer};
use primer_protocol::hints::Build;
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, ProtocolError, Reveal, Scheme, cost};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_text::{Input, TextEncoder};
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Quantises a model as a scheme wants it, with scales from the calibration text, changed.
fn quantise(
    weights: &FloatWeights,
    text: &TextEncoder,
    scheme: Scheme,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = &weights.with_form(scheme.recipe().form);
    let calibration = std::fs::read_to_string(root().join("models/calibration.txt")).unwrap();
    // A tenth of the text is enough for a test and takes a tenth of the time.
    let lines: Vec<&str> = calibration.lines().step_by(10).collect();
    let mut calibrated = calibrate(weights, text, &lines.join("\n"), |_, _| ()).unwrap();
    change(&weights.graph(1), &mut calibrated.scales);
    Arc::new(IntModel::quantise(weights, calibrated).unwrap())
}

fn load(dir: &Path, scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    let LoadedModel {
        shape,
        checkpoint,
        text,
    } = ModelFiles::open(dir).unwrap().load().unwrap();
    let weights = FloatWeights::fold(&shape, &checkpoint);
    (quantise(&weights, &text, scheme, |_, _| ()), text)
}

/// The embedded model.
pub fn demo(scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    load(&root().join("models/sst2-demo"), scheme)
}

/// One of the random models that the loading tests use, with the embedded model's vocabulary.
pub fn fixture(name: &str, scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    let dir = tempfile::tempdir().unwrap();
    let from = root().join("crates/model/tests/fixtures").join(name);
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        std::fs::copy(from.join(file), dir.path().join(file)).unwrap();
    }
    let vocab = root().join("models/sst2-demo/vocab.txt");
    std::fs::copy(vocab, dir.path().join("vocab.txt")).unwrap();
    load(dir.path(), scheme)
}

/// Where the small copies of other families' checkpoints are.
pub fn families() -> PathBuf {
    root().join("crates/model/tests/fixtures/family")
}

/// The checkpoints themselves, if they lie beside the repository; says so if they do not.
pub fn whole_families() -> Option<PathBuf> {
    let path = root().join("../shared/models/family");
    if !path.exists() {
        eprintln!("skipped: the shared models of families are not there");
        return None;
    }
    Some(path)
}

/// One of them.
pub fn family(dir: &Path, scheme: Scheme) -> (Arc<IntModel>, TextEncoder) {
    load(dir, scheme)
}

/// The words of the small random models.
const WORDS: [&str; 12] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "the", "of", "and", "film", "story", "good", "bad",
];

/// A random model with twelve words: quick even where features come first.
pub fn small(layers: usize, hidden: usize, heads: usize, head: Head) -> Arc<IntModel> {
    small_for(Scheme::Fp, layers, (hidden, heads), head)
}

/// The same for another scheme, of which only the attention matters.
pub fn small_for(scheme: Scheme, layers: usize, size: (usize, usize), head: Head) -> Arc<IntModel> {
    small_with(scheme, layers, size, head, |_, _| ())
}

/// The same with other scales than the calibrated ones.
pub fn small_with(
    scheme: Scheme,
    layers: usize,
    (hidden, heads): (usize, usize),
    head: Head,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let shape = Shape {
        vocab: WORDS.len(),
        positions: 320,
        ffn: 2 * hidden,
        head,
        ..synthetic::bert_shape(layers, hidden, heads)
    };
    synthetic_of(&shape, scheme, change)
}

/// A random model of a shape, with the twelve words.
pub fn synthetic_of(
    shape: &Shape,
    scheme: Scheme,
    change: impl FnOnce(&Graph, &mut Scales),
) -> Arc<IntModel> {
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[7; 16]));
    let text = TextEncoder::from_vocabulary(WORDS.join("\n").as_bytes(), None).unwrap();
    quantise(&weights, &text, scheme, change)
}

/// The smallest model that has every kind of step.
pub fn tiny() -> Arc<IntModel> {
    tiny_for(Scheme::Fp)
}

/// The same for another scheme.
pub fn tiny_for(scheme: Scheme) -> Arc<IntModel> {
    small_for(scheme, 1, (16, 2), classify())
}

/// A head with two labels.
pub fn classify() -> Head {
    Head::classify(vec!["no".into(), "yes".into()])
}

/// A pair of texts over the twelve words, `length` tokens of `tokens`; different seeds give
/// different texts.
pub fn words(tokens: usize, length: usize, seed: usize) -> Input {
    let mut input = Input {
        ids: (0..length)
            .map(|t| [2, 4, 8, 6, 3, 11, 5, 10][(t + seed) % 8])
            .collect(),
        types: (0..length).map(|t| u32::from(2 * t >= length)).collect(),
        length,
        removed: 0,
        second: vec![None; length],
    };
    input.pad_to(tokens, 0);
    input
}

/// A text, or a pair, padded to a number of tokens.
pub fn encode(text: &TextEncoder, first: &str, second: Option<&str>, tokens: usize) -> Input {
    let truncate = primer_text::Truncate::LongestFirst;
    let mut input = text.encode(first, second, tokens, truncate).unwrap();
    input.pad_to(tokens, text.padding());
    input
}

/// A program of a model.
pub fn program(model: &IntModel, tokens: usize, scheme: Scheme, reveal: Reveal) -> Program {
    Program::of(model, scheme, tokens, reveal).unwrap()
}

/// A hint, and what the server multiplies with.
#[derive(Clone)]
pub struct Hinted {
    pub hint: Arc<Published>,
    pub multipliers: Arc<Multipliers>,
}

/// The hint of a model, made once for all tests of a process.
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

/// The same, if the scheme needs it.
pub fn hinted_for(model: &IntModel, scheme: Scheme) -> Option<Hinted> {
    scheme.needs_hint().then(|| hinted(model))
}

/// A program of a model that is bound to its hint, if the scheme needs one.
pub fn bound(model: &IntModel, tokens: usize, scheme: Scheme, reveal: Reveal) -> Program {
    let hinted = hinted_for(model, scheme);
    let identity = hinted.map(|hinted| *hinted.hint.identity());
    let program = program(model, tokens, scheme, reveal);
    program.with_hint(identity.as_ref()).unwrap()
}

/// A model ready to be served.
pub fn served(model: &Arc<IntModel>, program: &Program) -> Result<ServerModel, ProtocolError> {
    let hinted = hinted_for(model, program.scheme());
    let multipliers = hinted.map(|hinted| hinted.multipliers);
    ServerModel::new(model.clone(), program, multipliers)
}

/// Opens a client's session with the hint of a model.
pub fn open(
    channel: &mut Channel,
    model: &IntModel,
    scheme: Scheme,
    tokens: usize,
    rng: Prg,
) -> Result<ClientSession, ProtocolError> {
    let hint = hinted_for(model, scheme).map(|hinted| hinted.hint);
    ClientSession::open(channel, scheme, tokens, hint, rng)
}

/// What a server with this model offers.
pub fn offer(
    model: &IntModel,
    reveal: Reveal,
) -> impl FnOnce(Scheme, usize) -> Result<Program, String> {
    move |scheme, tokens| {
        let program = Program::of(model, scheme, tokens, reveal).map_err(|e| e.to_string())?;
        let hinted = hinted_for(model, scheme);
        let identity = hinted.map(|hinted| *hinted.hint.identity());
        program
            .with_hint(identity.as_ref())
            .map_err(|e| e.to_string())
    }
}

/// The client from the handshake to the answer; `see` gets its share of what enters each stop.
pub fn client(
    channel: &mut Channel,
    model: &IntModel,
    input: &Input,
    scheme: Scheme,
    see: impl FnMut(ValueId, &Matrix<u64>) + Send + 'static,
) -> Result<Answer, ProtocolError> {
    let rng = Prg::new(&[1; 16]);
    let mut session = open(channel, model, scheme, input.tokens(), rng)?;
    session.watch(see);
    let mut bundle = Vec::new();
    session.prepare(channel, &mut bundle)?;
    let stored = cost::stored(session.program()).client;
    assert_eq!(bundle.len() as u64, stored, "{}", scheme.name());
    session.infer(channel, client::Bundle::new(Cursor::new(bundle)), input)
}

/// Sees nothing.
pub fn blind(_: ValueId, _: &Matrix<u64>) {}

/// The server from the handshake to its last message.
pub fn server(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    reveal: Reveal,
) -> Result<(), ProtocolError> {
    server_with(channel, model, reveal, Prg::new(&[2; 16]), &mut blind)
}

/// The same with other randomness; `see` gets its shares of linear steps.
pub fn server_with(
    channel: &mut Channel,
    model: &Arc<IntModel>,
    reveal: Reveal,
    rng: Prg,
    see: &mut (dyn FnMut(ValueId, &Matrix<u64>) + Send),
) -> Result<(), ProtocolError> {
    let mut session = ServerSession::accept(channel, offer(model, reveal), rng)?;
    let encoded = served(model, session.program())?;
    let mut bundle = Vec::new();
    session.prepare(channel, &encoded, &mut bundle)?;
    let stored = cost::stored(session.program()).server;
    assert_eq!(bundle.len() as u64, stored);
    let bundle = server::Bundle::new(Cursor::new(bundle));
    match session.program().scheme() {
        Scheme::Base => session.infer(channel, &encoded, bundle)?,
        _ => server::infer_watched(channel, &encoded, bundle, see)?,
    };
    Ok(())
}

/// Both parties over the relay: what each sent, the traffic of each, and the answer.
pub fn logged(
    model: &Arc<IntModel>,
    input: &Input,
    scheme: Scheme,
) -> ([relay::Log; 2], [Report; 2], Answer) {
    let ((answer, report), theirs, logs) = relay::run(
        None,
        |channel| {
            let answer = client(channel, model, input, scheme, blind).unwrap();
            (answer, channel.meter().report())
        },
        |channel| {
            server(channel, model, Reveal::Outputs).unwrap();
            channel.meter().report()
        },
    );
    (logs, [report, theirs], answer)
}

/// Both parties in memory.
pub fn infer(model: &Arc<IntModel>, input: &Input, scheme: Scheme) -> Run {
    infer_revealing(model, input, scheme, Reveal::Outputs)
}

/// Both parties in memory, the client learning no more than the server says.
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
    let mut server_shares = Shares::new();
    let mut linear = |id: ValueId, share: &Matrix<u64>| {
        server_shares.insert(id, share.data().to_vec());
    };
    let result = run_pair::<_, _, ProtocolError>(
        |channel| {
            let answer = client(channel, model, input, scheme, see)?;
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

/// The fixed-point reference, its low bits dropped as the client's shares say and, where linear
/// steps are silent, with the errors of their products, which must be as small as they should be.
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
    let mut errors = match plan.graph().form {
        Form::LookedUp => Errors::Seen {
            signs: &signs,
            sums: &mut sums,
        },
        Form::Separate | Form::Merged => Errors::None,
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
    if !squares.is_empty() {
        // Errors of one row have the roundings of its mask in common: not as many as there are.
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        let width = 0.2 + 0.3 / (input.tokens() as f64).powi(2);
        assert!((mean - 1.0).abs() < width, "{mean}");
    }
    found
}

/// The deviation of the error of each column of a linear step's result.
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

/// The fixed-point reference with everything rounded to nearest.
pub fn rounded(model: &IntModel, input: &Input) -> Vec<Matrix<f64>> {
    let plan = model.plan(input.tokens()).unwrap();
    let mut workspace = Workspace::default();
    let (mut truncate, mut errors) = (Truncate::Exact, Errors::None);
    fixed::run(
        &plan,
        model,
        input,
        &mut truncate,
        &mut errors,
        &mut workspace,
    )
    .reals
}

/// Runs a scheme and checks every output against the reference, bit for bit, and what the client
/// is told of ranges.
pub fn check(model: &Arc<IntModel>, input: &Input, scheme: Scheme) -> Run {
    let run = infer(model, input, scheme);
    let expected = reference(model, input, &run.seen);
    let in_range = expected.flags.map(|flags| flags == 0);
    assert_eq!(run.answer.in_range, in_range, "{}", scheme.name());
    let expected = expected.integers;
    assert_eq!(run.answer.integers.len(), expected.len());
    for (found, expected) in run.answer.integers.iter().zip(&expected) {
        assert_eq!(found.data(), expected.data(), "{}", scheme.name());
    }
    run
}
