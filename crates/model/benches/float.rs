//! The float reference on BERT-base, 30 tokens, one thread, against its matrix products alone.
#![allow(missing_docs)]

use primer_model::fold::FloatWeights;
use primer_model::measure::float_speed;
use primer_model::synthetic;

fn main() {
    let shape = synthetic::bert_shape(12, 768, 12);
    let weights = FloatWeights::fold(&shape, &synthetic::checkpoint(&shape, &[1; 16]));
    let speed = float_speed(&weights, 30, 10);
    println!(
        "bert-base, 30 tokens, 1 thread: {:.1} ms ({:.1} GFLOP/s); products alone {:.1} ms; \
         ratio of speeds {:.2}",
        1e3 * speed.seconds,
        speed.gflops(),
        1e3 * speed.products_seconds,
        speed.ratio(),
    );
    assert!(speed.ratio() >= 0.5, "the reference is a fair yardstick");
}
