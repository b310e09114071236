//! Ours and theirs in one run, one thread. Ratios are what counts.

use criterion::{Criterion, criterion_group, criterion_main};
use fhe::bfv::{
    BfvParametersBuilder, Encoding, EvaluationKeyBuilder, Plaintext, dot_product_scalar,
};
use fhe_traits::{FheDecrypter, FheEncoder, FheEncrypter};
use primer_paper_he::measure::Primitives;
use primer_paper_he::params;
use primer_lattice::kernel::weighted::{Runs, weighted};
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::Prime;
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use std::time::{Duration, Instant};

fn transforms(c: &mut Criterion) {
    let prime = Prime::largest(1)[0];
    for n in [4096, 8192, 16384] {
        let ours = Ntt::new(prime, n, Simd::detect());
        let theirs = tfhe_ntt::prime32::Plan::try_new(n, prime.value()).unwrap();
        let mut a: Vec<u32> = (0..n as u32).collect();
        let mut group = c.benchmark_group(format!("transform {n}"));
        group.bench_function("forward, ours", |b| b.iter(|| ours.forward(&mut a)));
        group.bench_function("forward, tfhe-ntt", |b| b.iter(|| theirs.fwd(&mut a)));
        group.bench_function("inverse, ours", |b| b.iter(|| ours.inverse(&mut a)));
        group.bench_function("inverse, tfhe-ntt", |b| b.iter(|| theirs.inv(&mut a)));
        group.finish();
    }
}

fn scheme(c: &mut Criterion) {
    let params = params::products();
    let mut rng = Prg::new(&[1; 16]);
    let slots: Vec<u64> = (0..8192).map(|_| modulus::random(&mut rng)).collect();
    let scheme = Primitives::new(&params, [1], &mut rng);
    let ours = scheme.expand(&scheme.encrypt(&slots, &mut rng));

    // The same degree, plaintext modulus and 180 bits of ciphertext modulus.
    let their_params = BfvParametersBuilder::new()
        .set_degree(8192)
        .set_plaintext_modulus(P)
        .set_moduli_sizes(&[60, 60, 60])
        .build_arc()
        .unwrap();
    let their_secret = fhe::bfv::SecretKey::random(&their_params, &mut rand::rng());
    let encode = || Plaintext::try_encode(&slots, Encoding::simd(), &their_params).unwrap();
    let plain = encode();
    let theirs: fhe::bfv::Ciphertext = their_secret.try_encrypt(&plain, &mut rand::rng()).unwrap();
    let mut builder = EvaluationKeyBuilder::new(&their_secret).unwrap();
    builder.enable_column_rotation(1).unwrap();
    let their_keys = builder.build(&mut rand::rng()).unwrap();

    let mut rotations = scheme.rotations();
    let mut group = c.benchmark_group("rotation");
    group.bench_function("ours", |b| b.iter(|| rotations.rotate(&ours, 1).unwrap()));
    group.bench_function("fhe", |b| {
        b.iter(|| their_keys.rotates_columns_by(&theirs, 1).unwrap())
    });
    group.finish();

    // Time per term of a long sum of ciphertexts times plaintexts.
    let mut group = c.benchmark_group("product term");
    let (terms, outputs) = (96usize, 16usize);
    group.bench_function("ours", |b| {
        let (runs, primes) = (Runs::new(8192, 16), Prime::largest(params.all_primes()));
        let data = vec![123_456_789; 2 * 8192 * terms];
        let weights = vec![987_654_321; runs.distinct() * outputs * terms];
        let mut out = vec![0; 2 * 8192 * outputs];
        b.iter_custom(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                for &prime in &primes {
                    weighted(
                        Simd::detect(),
                        prime,
                        runs,
                        &data,
                        terms,
                        &weights,
                        &mut out,
                        false,
                    );
                }
            }
            start.elapsed() / (terms * outputs) as u32
        });
    });
    group.bench_function("fhe", |b| {
        let cts = vec![theirs.clone(); terms];
        let plains = vec![plain.clone(); terms];
        b.iter_custom(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                std::hint::black_box(dot_product_scalar(cts.iter(), plains.iter()).unwrap());
            }
            start.elapsed() / terms as u32
        });
    });
    group.finish();

    let mut group = c.benchmark_group("encrypt slots");
    group.bench_function("ours", |b| b.iter(|| scheme.encrypt(&slots, &mut rng)));
    group.bench_function("fhe", |b| {
        b.iter(|| -> fhe::bfv::Ciphertext {
            their_secret
                .try_encrypt(&encode(), &mut rand::rng())
                .unwrap()
        });
    });
    group.finish();
    let mut group = c.benchmark_group("decrypt to slots");
    group.bench_function("ours", |b| b.iter(|| scheme.decrypt(&ours).unwrap()));
    group.bench_function("fhe", |b| {
        b.iter(|| their_secret.try_decrypt(&theirs).unwrap())
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = transforms, scheme
}
criterion_main!(benches);
