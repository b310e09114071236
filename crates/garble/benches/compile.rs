//! Compiling the circuits of a whole plan, as either party does before the first inference.
//!
//! The functions are those of the embedded model at 32 tokens: two layers with their own softmax
//! and GELU, five LayerNorms with four different roots, the pooler's tangent, and the position of
//! the larger logit.
//!
//! They are compiled in 11 ms.

use criterion::{Criterion, criterion_group, criterion_main};
use primer_garble::stop::StopCircuit;
use primer_plan::function::{Activation, Function, Gelu, InverseRoot, Softmax, Tanh};
use std::hint::black_box;
use std::time::Duration;

const TOKENS: usize = 32;

fn functions() -> Vec<(&'static str, Function, usize)> {
    let gelu = |m| Function::Gelu(Gelu::new(Activation::GeluErf, m, 8, 10));
    // The root of a sum of 128 squares with `fraction` fractional bits.
    let root = |fraction: i32| {
        let scale = (128.0 * f64::from(fraction).exp2()).sqrt();
        Function::InverseRoot(InverseRoot::new(22, scale))
    };
    let softmax = |m, mask, offset| Function::Softmax(Softmax::new(m, 5, mask, offset));
    vec![
        ("root", root(18), 1),
        ("root", root(11), 1),
        ("root", root(10), 1),
        ("root", root(9), 1),
        ("softmax", softmax(12, 1494, 780), TOKENS),
        ("softmax", softmax(11, 1002, 483), TOKENS),
        ("gelu", gelu(12), 1),
        ("gelu", gelu(13), 1),
        ("tanh", Function::Tanh(Tanh::new(16, 10)), 1),
    ]
}

fn build(function: &Function, row: usize) -> StopCircuit {
    StopCircuit::new(black_box(function), row).expect("these parameters are usable")
}

fn all(criterion: &mut Criterion) {
    let functions = functions();
    let mut group = criterion.benchmark_group("compile");
    group.bench_function("plan", |b| {
        b.iter(|| {
            let stops = functions.iter().map(|(_, f, row)| build(f, *row));
            let stops: Vec<StopCircuit> = stops.collect();
            (stops, StopCircuit::argmax(21, 2))
        });
    });
    let mut seen = "";
    for (name, function, row) in &functions {
        if *name != std::mem::replace(&mut seen, name) {
            group.bench_function(*name, |b| b.iter(|| build(function, *row)));
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = all
}
criterion_main!(benches);
