//! Criterion benches of the products at evaluation points, one thread, one limb:
//! `cargo bench -p primer-lattice --bench points`.
//!
//! Beside them stands double-precision `gemm` on matrices of the same shape, one for each point:
//! what the same sums would cost if no number had to be exact. These two figures are the best of
//! several runs in processor time, printed before Criterion's figures, which are in wall-clock
//! time.
//!
//! Multiply-adds in G/s, one limb, `N = 8192`, two shared cores, of points × rows × terms × columns
//! (the first line of each shape, one run): 256 × 10 × 10 × 64 (30 tokens) 20.8, `gemm` 18.6; 64 ×
//! 64 × 32 × 256 (scores of 128 tokens) 25.5, 30.7; 128 × 256 × 103 × 128 (turned heads of 512
//! tokens) 26.7, 28.3.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use primer_lattice::kernel::points::{Points, multiply};
use primer_lattice::measure::PointShape;
use primer_lattice::simd::Simd;
use primer_ring::prg::Prg;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns this thread's processor time in seconds, which other work on the machine disturbs less.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn points(c: &mut Criterion) {
    let (degree, simd) = (8192, Simd::detect());
    let mut rng = Prg::new(&[3; 16]);
    // Products of the heads of a BERT-base layer: 30 tokens, 128, and turned heads of 512.
    for (run, rows, terms) in [(32, 10, 10), (128, 64, 32), (64, 256, 103)] {
        let points = Points::new(degree, run);
        let shape = PointShape {
            points,
            rows,
            terms,
        };
        let count = points.count();
        let (mut weights, mut data, mut sums) = shape.random(&mut rng);
        println!(
            "{count} points, {rows}x{terms}x{}: modular {:.1}, double-precision gemm {:.1} G/s",
            2 * run,
            shape.gmac_per_s(&processor, 40, &mut rng),
            shape.double_gmac_per_s(&processor, 40),
        );
        let mut group = c.benchmark_group(format!("{count} points, {rows}x{terms}x{}", 2 * run));
        group.throughput(Throughput::Elements(shape.multiply_adds() as u64));
        group.bench_function("product", |b| {
            b.iter(|| multiply(simd, &weights, &data, &mut sums));
        });
        let half = vec![1; degree];
        group.throughput(Throughput::Elements(16 * degree as u64));
        group.bench_function("put of eight terms", |b| {
            b.iter(|| data.slots().next().unwrap().put(simd, &[[&half[..]; 2]; 8]));
        });
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
