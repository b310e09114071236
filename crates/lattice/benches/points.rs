//! Criterion benches of the products at evaluation points, one thread, one limb:
//! `cargo bench -p primer-lattice --bench points`.
//!
//! Beside them stands double-precision `gemm` on matrices of the same shape, one for each point:
//! what the same sums would cost if no number had to be exact.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use primer_lattice::kernel::points::{PointSums, PointTerms, PointWeights, Points, multiply};
use primer_lattice::prime::Prime;
use primer_lattice::simd::Simd;
use primer_ring::gemm::{self, Layout};
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::time::Duration;

fn points(c: &mut Criterion) {
    let (prime, degree, simd) = (Prime::largest(1)[0], 8192, Simd::detect());
    let mut rng = Prg::new(&[3; 16]);
    // 768 inputs to 768 outputs at 32, 64 and 256 tokens; to 3072 outputs; the embedding.
    for (run, rows, terms) in [
        (32, 48, 48),
        (64, 96, 96),
        (256, 192, 192),
        (32, 192, 48),
        (32, 384, 239),
    ] {
        let points = Points::new(degree, run);
        let mut draw =
            |len: usize| -> Vec<u32> { (0..len).map(|_| rng.next_u32() % prime.value()).collect() };
        let mut weights = PointWeights::zeros(prime, points, rows, terms);
        for block in 0..weights.blocks() {
            let values = draw(weights.block(block).len() * terms * points.count());
            weights.write(simd, block, &values);
        }
        let mut values = draw(degree);
        let mut data = PointTerms::zeros(prime, points, terms);
        for i in 0..2 * terms {
            data.put(simd, i / 2, i % 2, &values);
        }
        let mut sums = PointSums::zeros(points, rows);
        let count = points.count();
        let mut group = c.benchmark_group(format!("{count} points, {rows}x{terms}x{}", 2 * run));
        group.throughput(Throughput::Elements((rows * terms * 2 * degree) as u64));
        group.bench_function("modular", |b| {
            b.iter(|| multiply(simd, &weights, &data, &mut sums, false));
        });
        let a = vec![1.5f64; count * rows * terms];
        let x = vec![2.5f64; 2 * degree * terms];
        let mut out = vec![0.0f64; 2 * degree * rows];
        group.bench_function("double-precision gemm", |b| {
            b.iter(|| {
                for f in 0..count {
                    gemm::f64(
                        &a[f * rows * terms..][..rows * terms],
                        Layout::rows(rows, terms),
                        &x[f * 2 * run * terms..][..2 * run * terms],
                        Layout::rows(terms, 2 * run),
                        &mut out[f * 2 * run * rows..][..2 * run * rows],
                    );
                }
            });
        });
        group.finish();
        let mut group = c.benchmark_group(format!("{count} points, one polynomial"));
        group.bench_function("put", |b| b.iter(|| data.put(simd, terms / 2, 0, &values)));
        group.bench_function("take", |b| b.iter(|| sums.take(rows / 2, 0, &mut values)));
        let block = vec![1; weights.block(0).len() * terms * count];
        group.throughput(Throughput::Elements(block.len() as u64));
        group.bench_function("write of a block of weights", |b| {
            b.iter(|| weights.write(simd, 0, &block));
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = points
}
criterion_main!(benches);
