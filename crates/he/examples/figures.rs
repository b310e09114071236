//! Prints the figures of the homomorphic layer: `cargo run --release -p primer-he --example figures`.

use primer_he::keys::SecretKey;
use primer_he::measure;
use primer_he::packing::layout::Layout;
use primer_he::params::Params;
use primer_ring::prg::Prg;

fn main() -> Result<(), primer_he::error::HeError> {
    println!("{:#?}", measure::figures()?);
    let params = Params::products();
    let mut rng = Prg::from_os();
    let secret = SecretKey::generate(&params, &mut rng);
    for (tokens, inputs, outputs, repetitions) in [
        (30, 768, 768, 5),
        (30, 768, 2304, 3),
        (30, 768, 3072, 3),
        (30, 3072, 768, 3),
        (128, 768, 768, 3),
        (30, 384, 384, 5),
    ] {
        let layout = Layout::tokens_first(&params, tokens)?;
        let figure = measure::linear(
            &params,
            &secret,
            &layout,
            inputs,
            outputs,
            repetitions,
            &mut rng,
        )?;
        println!("{tokens} tokens, {inputs}x{outputs}: {figure:?}");
    }
    if std::env::args().any(|a| a == "--embedding") {
        let layout = Layout::tokens_first(&params, 30)?;
        let figure = measure::linear(&params, &secret, &layout, 30522, 768, 2, &mut rng)?;
        println!("30 tokens, 30522x768: {figure:?}");
    }
    Ok(())
}
