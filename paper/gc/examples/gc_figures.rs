//! The figures of `paper/docs/comparators.md`: the small shape run, BERT-base counted.
//!
//! ```text
//! cargo run --release -p primer-paper-gc --example gc_figures -- [RUNS]
//! ```
//!
//! One layer of 32 features, 2 heads, 128 in the feed-forward layer, 100 words, 8 tokens, both
//! parties as threads over TLS on loopback, the client's material in a file, two cores of AMD Zen 3
//! at a load of about 8, best of 24 (`-- 24`): 24,284,288 gates, 2.200 s and 781 MB offline, 0.334
//! s and 1.2 kB online. Processor time: server 0.64 s, client 0.73 s and 0.29 s (85 million gates a
//! second).
#![allow(missing_docs)]

use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_net::pair::{Medium, run_pair_over};
use primer_paper_gc::{Count, GcError, SMALL_TOKENS, client, server, small_shape};
use primer_paper_plan::Form;
use primer_plan::graph::PaperStep;
use primer_plan::shape::Shape;
use primer_plan::times::Times;
use primer_ring::prg::Prg;
use primer_testkit::models::twelve_words;
use primer_text::Input;
use primer_wire::Options;
use primer_wire::clock::ThreadClock;
use std::io::{BufReader, BufWriter, Seek};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";
/// Bytes per second of the paper's link.
const LINK: f64 = 100e6;

fn model(shape: &Shape) -> IntModel {
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[3; 16]));
    let weights = Form::Separate.weights(&weights);
    let scales = calibrate(&weights, &twelve_words(), TEXT, |_, _| ()).expect("a synthetic model");
    IntModel::quantise(&weights, scales).expect("a synthetic model")
}

struct Run {
    offline: Times,
    online: Times,
    /// Processor seconds: of the client offline and online, of the server offline.
    work: [f64; 3],
}

fn run(model: &Arc<IntModel>, input: &Input) -> Result<Run, GcError> {
    let options = Options {
        timeout: Some(Duration::from_secs(600)),
        ..Options::default()
    };
    let tokens = input.tokens();
    let (mut run, garbling) = run_pair_over::<_, _, GcError>(
        Medium::Tls,
        &options,
        |channel| {
            let mut session = client::Session::open(channel, Prg::from_os())?;
            let mut file = BufWriter::with_capacity(1 << 20, tempfile::tempfile()?);
            let clock = ThreadClock::start();
            let offline = session.prepare(channel, &mut file)?;
            let storing = clock.elapsed().as_secs_f64();
            let mut file = file.into_inner().expect("a flushed file");
            file.rewind()?;
            let bundle = client::Bundle::new(BufReader::with_capacity(1 << 20, file));
            let clock = ThreadClock::start();
            let answer = session.infer(channel, bundle, input)?;
            let evaluating = clock.elapsed().as_secs_f64();
            let plan = model.plan(tokens)?;
            let mut workspace = Workspace::default();
            let expected = fixed::run(
                &plan,
                model,
                input,
                &mut Truncate::Exact,
                &mut fixed::Errors::None,
                &mut workspace,
            );
            assert!(answer.integers[0].data() == expected.integers[0].data());
            Ok(Run {
                offline,
                online: answer.times,
                work: [storing, evaluating, 0.0],
            })
        },
        |channel| {
            let model = Arc::clone(model);
            let mut session = server::Session::accept(channel, model, tokens, Prg::from_os())?;
            let clock = ThreadClock::start();
            let prepared = session.prepare(channel)?;
            let garbling = clock.elapsed().as_secs_f64();
            session.infer(channel, prepared.material)?;
            Ok(garbling)
        },
    )?;
    run.work[2] = garbling;
    Ok(run)
}

fn seconds(run: &Run) -> f64 {
    run.offline.total() + run.online.total()
}

fn main() {
    let runs = std::env::args()
        .nth(1)
        .map_or(3, |a| a.parse().expect("a number of runs"));
    let small = Arc::new(model(&small_shape()));
    let input = Input {
        ids: (0..SMALL_TOKENS).map(|t| (t * 977 % 100) as u32).collect(),
        types: vec![0; SMALL_TOKENS],
        length: SMALL_TOKENS,
        removed: 0,
        second: vec![None; SMALL_TOKENS],
    };
    let count = Count::of(&small.plan(SMALL_TOKENS).expect("few tokens")).expect("a small plan");
    let all: Vec<Run> = (0..runs)
        .map(|_| run(&small, &input).expect("both parties are honest"))
        .collect();
    let least = |i: usize| all.iter().map(|run| run.work[i]).fold(f64::MAX, f64::min);
    let work = [0, 1, 2].map(least);
    let best = all
        .iter()
        .min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
        .expect("at least one run");
    println!("small shape, {SMALL_TOKENS} tokens, best of {runs}: outputs equal the reference");
    print(&count);
    for step in PaperStep::ALL {
        let (offline, online) = (best.offline.seconds(step), best.online.seconds(step));
        println!(
            "{:>16} {offline:8.3} s offline {online:8.3} s online",
            step.name()
        );
    }
    let count_of_small = count.total().and_gates as f64;
    let rates = [&best.offline, &best.online].map(|t| count_of_small / t.total());
    println!(
        "{:.3} s offline, {:.3} s online: {:.1} and {:.1} million gates a second",
        best.offline.total(),
        best.online.total(),
        rates[0] / 1e6,
        rates[1] / 1e6,
    );

    println!(
        "processor seconds: client {:.3} offline, {:.3} online; server {:.3} offline",
        work[0], work[1], work[2],
    );

    println!("\nBERT-base, 30 tokens, counted");
    let started = Instant::now();
    let base = model(&synthetic::bert_shape(12, 768, 12));
    let plan = base.plan(30).expect("thirty tokens");
    println!(
        "weights and scales in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let started = Instant::now();
    let count = Count::of(&plan).expect("a plan of queries and keys");
    println!("counted in {:.1} s", started.elapsed().as_secs_f64());
    print(&count);
    let gates = count.total().and_gates as f64;
    println!(
        "extrapolated by gates: {:.0} s offline, {:.0} s online; {:.0} s for its bytes at 100 MB/s",
        gates / rates[0],
        gates / rates[1],
        (count.bytes.offline_up + count.bytes.offline_down) as f64 / LINK,
    );
    let scale = gates / count_of_small;
    println!(
        "extrapolated, processor seconds: client {:.0} offline, {:.0} online; server {:.0} offline",
        work[0] * scale,
        work[1] * scale,
        work[2] * scale,
    );
}

fn print(count: &Count) {
    for step in PaperStep::ALL {
        let (layers, outside) = (count.in_layers(step), count.outside_layers(step));
        println!(
            "{:>16} {:>18} gates in layers {:>16} outside, {:>14} given bits",
            step.name(),
            layers.and_gates,
            outside.and_gates,
            layers.garbler_inputs + outside.garbler_inputs,
        );
    }
    let total = count.total();
    println!(
        "{} gates, {} given bits, {} input bits, {} output bits; {:?}; stored {}",
        total.and_gates,
        total.garbler_inputs,
        count.evaluator_inputs,
        count.output_bits,
        count.bytes,
        count.stored(),
    );
}
