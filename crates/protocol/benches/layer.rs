//! One private inference of a BERT-base shape with few layers, over loopback TCP, by step.
//!
//! ```text
//! cargo bench -p primer-protocol --bench layer -- [LAYERS] [TOKENS] [SCHEME] [BUNDLES]
//! ```
#![allow(missing_docs)]

use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_model::text::{Input, TextEncoder};
use primer_net::Options;
use primer_net::pair::{Transport, run_pair_over};
use primer_plan::graph::PaperStep;
use primer_protocol::client;
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, ProtocolError, Reveal, Scheme};
use primer_ring::prg::Prg;
use std::io::{BufReader, Cursor, Seek, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nthe\nof\nand\nfilm\nstory\ngood\nbad";
const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";

/// Where bundles go.
fn sinks<W: Write + Send>(all: &mut [W]) -> Vec<&mut (dyn Write + Send)> {
    let sinks = all.iter_mut();
    sinks.map(|sink| sink as &mut (dyn Write + Send)).collect()
}

fn main() {
    // Cargo adds a flag of its own.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let number = |at: usize, default: usize| {
        arguments
            .get(at)
            .map_or(default, |a| a.parse().expect("a number"))
    };
    let (layers, tokens) = (number(0, 1), number(1, 30));
    let name = arguments.get(2).map_or("fp", String::as_str);
    let scheme = Scheme::ALL
        .into_iter()
        .find(|s| s.name() == name)
        .expect("a scheme");
    let bundles = number(3, 1);
    let shape = synthetic::bert_shape(layers, 768, 12);
    let weights = FloatWeights::fold(&shape, &synthetic::checkpoint(&shape, &[3; 16]));
    let weights = weights.with_form(scheme.recipe().form);
    let text = TextEncoder::from_vocabulary(WORDS.as_bytes(), None).expect("twelve words");
    let scales = calibrate(&weights, &text, TEXT, |_, _| ()).expect("a synthetic model");
    let model = Arc::new(IntModel::quantise(&weights, scales).expect("a synthetic model"));
    let input = Input {
        ids: (0..tokens)
            .map(|t| (t * 977 % shape.vocab) as u32)
            .collect(),
        types: vec![0; tokens],
        length: tokens,
        removed: 0,
        second: vec![None; tokens],
    };
    let started = Instant::now();
    let encoded = ServerModel::for_bundles(
        model.clone(),
        &Program::of(&model, scheme, tokens, Reveal::Outputs).expect("a program"),
        bundles,
    )
    .expect("the weights fit");
    println!(
        "weights encoded once in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let options = Options {
        timeout: Some(Duration::from_secs(600)),
        ..Options::default()
    };
    let (client, _) = run_pair_over::<_, _, ProtocolError>(
        Transport::Tcp,
        &options,
        |channel| {
            let mut session = ClientSession::open(channel, scheme, tokens, Prg::from_os())?;
            let files = (0..bundles).map(|_| tempfile::tempfile());
            let mut files: Vec<_> = files.collect::<Result<_, _>>()?;
            let started = Instant::now();
            let offline_steps = session.prepare_together(channel, &mut sinks(&mut files))?;
            let offline = started.elapsed().as_secs_f64();
            let mut file = files.swap_remove(0);
            file.rewind()?;
            let bundle = client::Bundle::new(BufReader::with_capacity(1 << 20, file));
            let started = Instant::now();
            let answer = session.infer(channel, bundle, &input)?;
            let online = started.elapsed().as_secs_f64();
            let report = channel.meter().report();
            Ok((offline, online, offline_steps, answer.times, report))
        },
        |channel| {
            let program = |_, _| Ok(encoded.program().clone());
            let mut session = ServerSession::accept(channel, program, Prg::from_os())?;
            let mut made = vec![Vec::new(); bundles];
            session.prepare_together(channel, &encoded, &mut sinks(&mut made))?;
            let bundle = server::Bundle::new(Cursor::new(made.swap_remove(0)));
            session.infer(channel, &encoded, bundle)
        },
    )
    .expect("both parties are honest");
    let (offline, online, offline_steps, online_steps, report) = client;
    println!(
        "{} layers, {tokens} tokens, scheme {}, {bundles} bundles together",
        layers,
        scheme.name()
    );
    println!("offline {offline:.2} s, online {online:.3} s");
    for step in PaperStep::ALL {
        println!(
            "  {:<16} offline {:>8.3} s  online {:>8.3} s",
            step.name(),
            offline_steps.seconds(step),
            online_steps.seconds(step)
        );
    }
    for phase in ["setup", "offline", "online"] {
        let traffic = report.under(phase);
        println!("  {phase:<16} {traffic:?}");
    }
}
