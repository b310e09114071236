//! Prints the figures of the homomorphic layer:
//! `cargo run --release -p primer-paper-he --example figures [--embedding]`.
//!
//! The table is of dense products, tokens-first, in seconds of processor time, which other work on
//! the machine disturbs less.

use primer_paper_he::measure;
use primer_paper_he::product::Method;
use primer_ring::prg::Prg;
use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() -> Result<(), primer_paper_he::error::HeError> {
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
        "tokens  in x out  weights  seconds  prepare s  prepared MB  \
         up bytes  down bytes  rotations  products  ciphertexts up, down  \
         encrypt, read, decrypt us each"
    );
    let method = Method::tokens_first();
    for shape @ (tokens, inputs, outputs) in shapes {
        for (weights, room) in [("kept", usize::MAX), ("streamed", 0)] {
            let m = measure::product(&method, shape, room, 7, processor, &mut rng)?;
            println!(
                "{tokens}  {inputs} x {outputs}  {weights}  {:.4}  {:.3}  {:.1}  \
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
