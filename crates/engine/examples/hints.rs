//! What the hint of a model is made of, how long it takes, and how much its shares may tell:
//! `cargo run --release -p primer-engine --example hints -- DIRECTORY`.

use primer_engine::hints::Build;
use primer_hint::server::HintSecret;
use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::load::ModelFiles;
use primer_model::quantise::IntModel;
use primer_ring::prg::Prg;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const CALIBRATION: &str = include_str!("../../../models/calibration.txt");

fn main() -> Result<(), Box<dyn Error>> {
    let Some(directory) = std::env::args().nth(1) else {
        return Err("a model's directory, please".into());
    };
    let loaded = ModelFiles::open(Path::new(&directory))?.load()?;
    let weights = FloatWeights::fold(&loaded.shape, &loaded.checkpoint);
    let scales = calibrate(&weights, &loaded.text, CALIBRATION, |_, _| ())?;
    let model = IntModel::quantise(&weights, scales)?;
    let secret = HintSecret::new(Prg::from_os().secret_seed());
    let build = Build::new(&model, &secret)?;
    println!("value features outputs   errors      key   secret   dither  modulus bits  seconds");
    let mut seconds = 0.0;
    for (index, entry) in build.contents().entries().iter().enumerate() {
        let started = Instant::now();
        let (_, _, margin) = build.entry(index)?;
        let took = started.elapsed().as_secs_f64();
        seconds += took;
        println!(
            "{:>5} {:>8} {:>7} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>13.2} {took:>8.2}",
            entry.value,
            entry.features,
            entry.outputs,
            margin.errors,
            margin.key,
            margin.secret,
            margin.dither,
            margin.modulus_bits(),
        );
    }
    println!("{} bytes in {seconds:.1} s", build.contents().bytes());
    Ok(())
}
