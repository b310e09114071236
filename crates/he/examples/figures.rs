//! Prints the figures of the homomorphic layer:
//! `cargo run --release -p primer-he --example figures [--embedding]`.
//!
//! The table is in seconds of processor time, which other work on the machine disturbs less.

use primer_he::measure;
use primer_he::product::{Method, WeightSize};
use primer_ring::prg::Prg;

/// Processor time of this process, in seconds; the wall clock where the system does not tell.
fn processor() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let wall = START.get_or_init(std::time::Instant::now).elapsed();
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|s| s.split(' ').next()?.parse::<f64>().ok())
        .map_or(wall.as_secs_f64(), |ns| ns * 1e-9)
}

fn main() -> Result<(), primer_he::error::HeError> {
    println!("{:#?}", measure::figures()?);
    let mut rng = Prg::from_os();
    let mut shapes = vec![
        (30, 768, 768),
        (30, 768, 2304),
        (30, 768, 3072),
        (30, 3072, 768),
        (128, 768, 768),
        (30, 384, 384),
        (1, 768, 768),
        (240, 768, 768),
    ];
    if std::env::args().any(|a| a == "--embedding") {
        shapes.push((30, 30522, 768));
    }
    println!(
        "packing  tokens  in x out  weights  seconds  prepare s  prepared MB  \
         up bytes  down bytes  rotations  products"
    );
    let lean = Method::subring(WeightSize::Columns(12_000));
    let methods = [("tokens-first", Method::tokens_first()), ("subring", lean)];
    let cases = shapes
        .iter()
        .flat_map(|shape| methods.iter().map(move |m| (*shape, m)));
    for (shape @ (tokens, inputs, outputs), (name, method)) in cases {
        for streamed in [false, true] {
            let m = measure::product(method, shape, streamed, 7, processor, &mut rng)?;
            println!(
                "{name}  {tokens}  {inputs} x {outputs}  {}  {:.4}  {:.3}  {:.1}  {}  {}  {}  {}",
                if streamed { "streamed" } else { "kept" },
                m.seconds,
                m.prepare_s,
                m.prepared_bytes as f64 / 1e6,
                m.bytes_up,
                m.bytes_down,
                m.rotations,
                m.products
            );
        }
    }
    Ok(())
}
