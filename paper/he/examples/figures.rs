//! Prints the figures of the homomorphic layer:
//! `cargo run --release -p primer-paper-he --example figures [--embedding]`.
//!
//! The table is of dense products, tokens-first, in seconds of processor time, which other work on
//! the machine disturbs less.
//!
//! One thread of a two-core machine (AMD Zen 3, AVX2) that other builds kept busy (load 6 to 12),
//! best of many, from received ciphertexts to finished answers, circuit privacy on:
//!
//! ```text
//! product                          s  prep.  prepared    bytes up  bytes down  rotations  products
//! 30 tokens, 768×768            0.12   0.13     33 MB     553,047     368,679        138     4,608
//! 30 tokens, 768×2304 (QKV)     0.30   0.40     99 MB     553,047   1,105,959        228    13,824
//! 30 tokens, 768×3072           0.39   0.50    132 MB     553,047   1,474,599        273    18,432
//! 30 tokens, 3072×768           0.36   0.49    132 MB   2,212,071     368,679        417    18,432
//! 128 tokens, 768×768           0.36   0.11     33 MB   2,212,071   1,474,599        264    18,432
//! 30 tokens, 384×384            0.06   0.05     11 MB     368,711     245,799         84     1,536
//! 1 token, 768×768              0.11   0.18     44 MB     368,711     245,799        108     3,072
//! 30 tokens, 30522×768 (words)   3.1    6.2    1.3 GB  22,120,359     368,679      3,765   184,320
//! ```

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
