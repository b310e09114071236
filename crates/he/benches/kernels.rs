//! Criterion benches of the homomorphic layer, one thread: `cargo bench -p primer-he`.
//!
//! The same operations beside published libraries are in `yardsticks/he`.

use criterion::{Criterion, criterion_group, criterion_main};
use primer_he::ciphertext::SeededCiphertext;
use primer_he::evaluate::Evaluator;
use primer_he::keys::{GaloisKeys, PublicKey, SecretKey};
use primer_he::ntt::Ntt;
use primer_he::packing::layout::Layout;
use primer_he::packing::matrix::EncryptedMatrix;
use primer_he::packing::weights::PreparedWeights;
use primer_he::params::Params;
use primer_he::prime::Prime;
use primer_he::simd::Simd;
use primer_he::switch::Rotator;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;
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

fn scheme(c: &mut Criterion) {
    let params = Params::products();
    let mut rng = Prg::new(&[1; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let slots: Vec<u64> = (0..8192).map(|_| modulus::random(&mut rng)).collect();
    let ct = SeededCiphertext::encrypt_slots(&secret, &slots, &mut rng).expand(&params);
    let galois = GaloisKeys::generate(&secret, [1], &mut rng);
    let mut rotator = Rotator::new(&galois);
    c.bench_function("encrypt", |b| {
        b.iter(|| SeededCiphertext::encrypt_slots(&secret, &slots, &mut rng));
    });
    c.bench_function("rotate", |b| b.iter(|| rotator.rotate(&ct, 1).unwrap()));
    c.bench_function("rotation key", |b| {
        b.iter(|| GaloisKeys::generate(&secret, [1], &mut rng));
    });
}

fn products(c: &mut Criterion) {
    let params = Params::products();
    let mut rng = Prg::new(&[2; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let layout = Layout::tokens_first(&params, 30).unwrap();
    let public = PublicKey::generate(&secret, &mut rng);
    let galois = GaloisKeys::generate(&secret, layout.rotations(), &mut rng);
    let mut server = Evaluator::new(public, galois).unwrap();
    let mut group = c.benchmark_group("product of 30 tokens");
    group.sample_size(10);
    for (inputs, outputs) in [(384, 384), (768, 768), (768, 3072), (3072, 768)] {
        let w = Matrix::from_fn(inputs, outputs, |_, _| (rng.next_u32() as i16) >> 1);
        let x = Matrix::from_fn(30, inputs, |_, _| modulus::random(&mut rng));
        let mask = Matrix::from_fn(30, outputs, |_, _| modulus::random(&mut rng));
        let weights = PreparedWeights::dense(&params, &layout, &w).unwrap();
        let chunks = weights.input_chunks();
        let sent = EncryptedMatrix::encrypt(&secret, &layout, chunks, &x, &mut rng).unwrap();
        group.bench_function(format!("{inputs}x{outputs}"), |b| {
            b.iter(|| {
                server
                    .linear(&sent, &weights, Some(&mask), &mut rng)
                    .unwrap()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = transforms, scheme, products
}
criterion_main!(benches);
