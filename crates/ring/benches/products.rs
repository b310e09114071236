//! Criterion benches of the online phase's products, one thread: `cargo bench -p primer-ring`.
//!
//! Beside the kernels in use stand the plain ways of computing the same: two products in double
//! precision for residues by weights, sums of 128 bits for residues by residues.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use primer_ring::matrix::{Matrix, Packed, Scratch, product, product_mod, product_residues};
use primer_ring::modulus::{self, K};
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::time::Duration;

/// Multiplies residues by weights in double precision; halves of 21 bits keep that exact.
fn doubles(left: &Matrix<u64>, right: &Matrix<i16>, scratch: &mut Scratch) -> Matrix<u64> {
    let half = K.div_ceil(2);
    let low = left.map(|v| (v & ((1 << half) - 1)) as i32);
    let high = left.map(|v| (v >> half) as i32);
    let low = product(&low, right, scratch);
    let high = product(&high, right, scratch);
    Matrix::from_fn(left.rows(), right.cols(), |r, c| {
        let high = modulus::mul(modulus::from_signed(high.get(r, c)), 1 << half);
        modulus::add(high, modulus::from_signed(low.get(r, c)))
    })
}

/// Multiplies residues by residues in sums of 128 bits.
fn wide(left: &Matrix<u64>, right: &Matrix<u64>) -> Matrix<u64> {
    let mut out = Matrix::zeros(left.rows(), right.cols());
    let mut sums = vec![0u128; right.cols()];
    for r in 0..left.rows() {
        sums.fill(0);
        for (i, l) in left.row(r).iter().enumerate() {
            for (s, v) in sums.iter_mut().zip(right.row(i)) {
                *s += u128::from(*l) * u128::from(*v);
            }
        }
        for (o, s) in out.row_mut(r).iter_mut().zip(&sums) {
            *o = modulus::reduce_wide(*s);
        }
    }
    out
}

fn products(c: &mut Criterion) {
    let mut rng = Prg::new(&[7; 16]);
    let mut scratch = Scratch::default();
    for (m, k, n) in [
        (30, 768, 768),
        (30, 768, 3072),
        (30, 3072, 768),
        (30, 30522, 768),
        (1, 768, 768),
    ] {
        let x = Matrix::from_fn(m, k, |_, _| modulus::random(&mut rng));
        let w = Matrix::from_fn(k, n, |_, _| (rng.next_u32() as i16) >> 1);
        let packed = Packed::new(&w);
        assert!(doubles(&x, &w, &mut scratch) == product_mod(&x, &packed, &mut scratch));
        let mut group = c.benchmark_group(format!("weights {m}x{k}x{n}"));
        group.throughput(Throughput::Elements((m * k * n) as u64));
        group.bench_function("limbs", |b| {
            b.iter(|| product_mod(&x, &packed, &mut scratch));
        });
        group.bench_function("doubles", |b| b.iter(|| doubles(&x, &w, &mut scratch)));
        group.finish();
    }
    for (m, k, n) in [(30, 64, 30), (30, 30, 64), (30, 768, 30), (128, 64, 128)] {
        let x = Matrix::from_fn(m, k, |_, _| modulus::random(&mut rng));
        let y = Matrix::from_fn(k, n, |_, _| modulus::random(&mut rng));
        assert!(wide(&x, &y) == product_residues(&x, &y));
        let mut group = c.benchmark_group(format!("residues {m}x{k}x{n}"));
        group.bench_function("limbs", |b| b.iter(|| product_residues(&x, &y)));
        group.bench_function("128-bit sums", |b| b.iter(|| wide(&x, &y)));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(300));
    targets = products
}
criterion_main!(benches);
