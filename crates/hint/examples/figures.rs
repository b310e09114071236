//! What a hint costs: `cargo run --release -p primer-hint --example figures`.
//!
//! One layer of BERT-base, one thread, random weights whose columns have a length of 2^13:
//! building, a message, the client's masks and shares, the server's shares, all for a batch of 256
//! rows; and the bytes of each.
//!
//! The layer with its residual paths has 8,448 outputs. Best of three runs: building, once, 2.9 s
//! and 10.5 MB of hint; the client's masks, messages and shares with noise 27 + 5 + 64 ms and 1.36
//! MB up; the server's shares 140 ms, nothing down.

use primer_hint::client::Batch;
use primer_hint::params::{LANES, MESSAGE_BYTES, hint_bytes};
use primer_hint::server::{HintSecret, Multiplier, Received};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::hint::black_box;
use std::time::Instant;

/// Features and outputs of the steps that read a value: queries, keys and values with the residual
/// path, the output of attention, and the two halves of the feed-forward part.
const LAYER: [(usize, usize); 4] = [
    (768, 3 * 768 + 768),
    (768, 768),
    (768, 3072 + 768),
    (3072, 768),
];

fn main() {
    let rng = &mut Prg::from_os();
    let name = [1; 32];
    let secret = HintSecret::new(rng.secret_seed());
    let mut totals = [0.0; 5];
    let (mut up, mut once) = (0, 0);
    println!("features outputs    build    masks  message    opens  multiplies (ms)");
    for (value, (features, outputs)) in LAYER.into_iter().enumerate() {
        let mut weights = Matrix::<i16>::zeros(features, outputs);
        let bound = (8192.0 * (3.0 / features as f64).sqrt()) as i16;
        for x in weights.data_mut() {
            *x = (rng.next_u32() % (2 * bound as u32 + 1)) as i16 - bound;
        }
        let value = value as u32;
        let mut seconds = Vec::new();
        let mut start = Instant::now();
        let mut lap = |seconds: &mut Vec<f64>| {
            seconds.push(start.elapsed().as_secs_f64());
            start = Instant::now();
        };
        let built = Multiplier::build(&secret, &name, value, &weights);
        let (multiplier, hint, margin) = built.expect("these weights can have a hint");
        lap(&mut seconds);
        let batch = Batch::new(&name, value, &rng.secret_seed());
        black_box(batch.masks(LANES, features, 1));
        lap(&mut seconds);
        let message = batch.message();
        lap(&mut seconds);
        black_box(batch.shares(LANES, &hint, 1));
        lap(&mut seconds);
        let received = Received::decode(&message).expect("our own message is sound");
        black_box(multiplier.shares(LANES, &received, 1));
        lap(&mut seconds);
        up += MESSAGE_BYTES;
        once += hint_bytes(outputs);
        print!("{features:>8} {outputs:>7}");
        for (total, seconds) in totals.iter_mut().zip(&seconds) {
            *total += seconds;
            print!(" {:>8.1}", 1e3 * seconds);
        }
        println!("  {:.2} bits", margin.modulus_bits());
    }
    print!("together        ");
    for total in totals {
        print!(" {:>8.1}", 1e3 * total);
    }
    println!("\n{once} bytes once, {up} bytes up for each batch");
}
