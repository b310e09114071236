//! Criterion benches of the transforms, one thread: `cargo bench -p primer-lattice`.
//!
//! The comparison with published libraries is in `yardsticks/he`.

use criterion::{Criterion, criterion_group, criterion_main};
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::Prime;
use primer_lattice::simd::Simd;
use std::time::Duration;

fn transforms(c: &mut Criterion) {
    let prime = Prime::largest(1)[0];
    for simd in Simd::available() {
        for n in [4096, 8192, 16384] {
            let ntt = Ntt::new(prime, n, simd);
            let mut a: Vec<u32> = (0..n as u32).collect();
            let mut group = c.benchmark_group(format!("transform {n} {simd:?}"));
            group.bench_function("forward", |b| b.iter(|| ntt.forward(&mut a)));
            group.bench_function("inverse", |b| b.iter(|| ntt.inverse(&mut a)));
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = transforms
}
criterion_main!(benches);
