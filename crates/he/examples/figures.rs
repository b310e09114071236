//! Prints the figures of the homomorphic layer:
//! `cargo run --release -p primer-he --example figures [--embedding]`.
//!
//! The table is in seconds of processor time, which other work on the machine disturbs less.

use primer_he::measure;
use primer_he::product::{Method, WeightSize};
use primer_ring::prg::Prg;
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
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
         up bytes  down bytes  rotations  products  ciphertexts up, down  \
         encrypt, read, decrypt us each"
    );
    let lean = Method::subring(WeightSize::Columns(12_000));
    let methods = [("tokens-first", Method::tokens_first()), ("subring", lean)];
    let cases = shapes
        .iter()
        .flat_map(|shape| methods.iter().map(move |m| (*shape, m)));
    for (shape @ (tokens, inputs, outputs), (name, method)) in cases {
        for (weights, room) in [("kept", usize::MAX), ("streamed", 0)] {
            let m = measure::product(method, shape, (room, 1), 7, processor, &mut rng)?;
            println!(
                "{name}  {tokens}  {inputs} x {outputs}  {weights}  {:.4}  {:.3}  {:.1}  \
                 {}  {}  {}  {}  {}, {}  {:.0}, {:.0}, {:.0}",
                m.seconds,
                m.prepare_s,
                m.prepared_bytes as f64 / 1e6,
                m.bytes_up,
                m.bytes_down,
                m.rotations,
                m.products,
                m.inputs,
                m.answers,
                m.encrypt_s * 1e6,
                m.read_s * 1e6,
                m.decrypt_s * 1e6
            );
        }
    }
    Ok(())
}
