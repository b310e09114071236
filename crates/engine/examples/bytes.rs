//! What the bytes of one inference are made of:
//! `cargo run --release -p primer-engine --example bytes -- DIRECTORY TOKENS`.

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
