//! x
use criterion::{Criterion, criterion_group, criterion_main};
use primer_he::{ntt::Ntt, prime::Prime, simd::Simd};

fn transforms(c: &mut Criterion) {
    let prime = Prime::largest(1)[0];
    for n in [4096, 8192] {
        let ntt = Ntt::new(prime, n, Simd::detect());
        let mut a: Vec<u32> = (0..n as u32).collect();
        c.bench_function(&format!("ntt {n}"), |b| b.iter(|| ntt.forward(&mut a)));
        c.bench_function(&format!("intt {n}"), |b| b.iter(|| ntt.inverse(&mut a)));
    }
}
criterion_group!(benches, transforms);
criterion_main!(benches);
