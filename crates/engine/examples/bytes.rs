//! What the bytes of one inference are made of:
//! `cargo run --release -p primer-engine --example bytes -- DIRECTORY TOKENS`.
//!
//! MiniLM (6 layers, 384 features, 12 heads) on a question of up to 256 tokens, `lean`, in
//! megabytes:
//!
//! | | offline up | offline down | online up | online down |
//! |---|---|---|---|---|
//! | look-ups (powers and activations) | 563 | 548 | 73 | 68 |
//! | products of heads | 225 | 241 | | |
//! | reciprocals, garbled | 242 | 3 | 11 | 0 |
//! | the coarse maximum of two heads of 72, garbled | 212 | 6 | 22 | 0 |
//! | products by rows and of elements | 144 | 117 | | |
//! | requantisations, late ones, lifts | 56 | 39 | 44 | 1 |
//! | correction of the input, secrets of masks | 50 | | | |
//! | roots, garbled | 32 | 0 | 2 | 0 |
//! | opened shares | | | 24 | 64 |
//! | all, the masked input included | 1,524 | 953 | 177 | 134 |
//!
//! Scores are what grows: there are 4.7 million of them, 160 bytes offline each, and the strings of
//! their look-ups are most of what the client keeps: 790 MB in all, where the server keeps 1.3 GB.

use primer_engine::{Program, Reveal, cost};
use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::load::ModelFiles;
use primer_model::quantise::IntModel;
use std::error::Error;
use std::path::Path;

const CALIBRATION: &str = include_str!("../../../models/calibration.txt");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(tokens)) = (arguments.next(), arguments.next()) else {
        return Err("a model's directory and a number of tokens, please".into());
    };
    let loaded = ModelFiles::open(Path::new(&directory))?.load()?;
    let weights = FloatWeights::fold(&loaded.shape, &loaded.checkpoint);
    let scales = calibrate(&weights, &loaded.text, CALIBRATION, |_, _| ())?;
    let model = IntModel::quantise(&weights, scales)?;
    let program = Program::of(&model, tokens.parse()?, Reveal::Outputs)?;
    println!("MB                      offline up     down   online up     down");
    let line = |name: &str, bytes: primer_wire::PhaseBytes| {
        let [a, b, c, d] = [
            bytes.offline_up,
            bytes.offline_down,
            bytes.online_up,
            bytes.online_down,
        ]
        .map(|bytes| bytes as f64 / 1e6);
        println!("{name:<24}{a:>10.2} {b:>8.2} {c:>11.2} {d:>8.2}");
    };
    for (name, bytes) in cost::makeup(&program) {
        line(name, bytes);
    }
    line("all", cost::inference(&program));
    Ok(())
}
