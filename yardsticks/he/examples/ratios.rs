//! Ours against theirs, taken in turns, best of many: what a busy machine can still tell.
//!
//! `cargo run --release --example ratios` prints microseconds of both and their ratio.
//!
//! On a two-core machine (AMD Zen 3, AVX2) under other load, one thread:
//!
//! | operation | against | ours | theirs | ratio |
//! |---|---|---|---|---|
//! | forward transform, N = 8192 | `tfhe-ntt` 0.7.1 | 12.2 | 13.9 | 1.14 |
//! | inverse transform, N = 8192 | `tfhe-ntt` 0.7.1 | 12.5 | 13.8 | 1.11 |
//! | rotation | `fhe` 0.1.1, 180 bits and a spare prime | 984 | 2,960 | 3.0 |
//! | rotation | `fhe` 0.1.1, 180 bits, no spare prime | 909 | 1,218 | 1.34 |
//! | product term of a long sum | `fhe` 0.1.1, 180 bits (ours: 210 bits) | 8.6 | 48.6 | 5.6 |
//! | sum at evaluation points, a term | `fhe` 0.1.1, both at 120 bits | 4.1 | 36.8 | 8.9 |
//! | encryption of slots | `fhe` 0.1.1, 180 bits | 449 | 1,502 | 3.3 |
//! | decryption to slots | `fhe` 0.1.1, 180 bits | 497 | 1,378 | 2.8 |

use fhe::bfv::{
    BfvParametersBuilder, Ciphertext, Encoding, EvaluationKeyBuilder, Plaintext, dot_product_scalar,
};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use primer_paper_he::measure::{self, Primitives};
use primer_paper_he::params;
use primer_lattice::kernel::points::multiply;
use primer_lattice::measure::PointShape;
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::Prime;
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use std::hint::black_box;
use std::time::Instant;

/// Prints the best times of both, in microseconds per unit.
fn compare(
    name: &str,
    rounds: usize,
    units: [f64; 2],
    mut ours: impl FnMut(),
    mut theirs: impl FnMut(),
) {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..rounds {
        let both: [&mut dyn FnMut(); 2] = [&mut ours, &mut theirs];
        for ((f, best), units) in both.into_iter().zip(&mut best).zip(units) {
            let start = Instant::now();
            f();
            *best = best.min(start.elapsed().as_secs_f64() * 1e6 / units);
        }
    }
    println!(
        "{name}: ours {:.2}, theirs {:.2}, ratio {:.2}",
        best[0],
        best[1],
        best[1] / best[0]
    );
}

/// Compares a term of a long sum without rotations: a ciphertext of 150 bits times a plaintext,
/// 8192 multiply-adds of plaintexts. Ours is the average over the matrix products at all points.
fn terms_without_rotations(slots: &[u64], rng: &mut Prg) {
    let their_params = BfvParametersBuilder::new()
        .set_degree(8192)
        .set_plaintext_modulus(P)
        .set_moduli_sizes(&[50; 3])
        .build_arc()
        .unwrap();
    let their_secret = fhe::bfv::SecretKey::random(&their_params, &mut rand::rng());
    let plain = Plaintext::try_encode(slots, Encoding::simd(), &their_params).unwrap();
    let theirs: Ciphertext = their_secret.try_encrypt(&plain, &mut rand::rng()).unwrap();
    let count = 48;
    let (cts, plains) = (vec![theirs; count], vec![plain; count]);
    let shape = PointShape::heads();
    let (weights, terms, mut sums) = shape.random(rng);
    let simd = Simd::detect();
    compare(
        "term without rotations, fhe with 150 bits",
        200,
        // Five limbs of 30 bits; one is measured.
        [(shape.rows * shape.terms) as f64 / 5.0, count as f64],
        || multiply(simd, &weights, &terms, &mut sums),
        || {
            drop(black_box(
                dot_product_scalar(cts.iter(), plains.iter()).unwrap(),
            ))
        },
    );
    let clock = primer_ring::measure::wall(Instant::now());
    let (mut ours, mut doubles) = (0f64, 0f64);
    for _ in 0..10 {
        ours = ours.max(shape.gmac_per_s(&clock, 20, rng));
        doubles = doubles.max(shape.double_gmac_per_s(&clock, 20));
    }
    println!(
        "matrix products at points, double-precision gemm: ours {ours:.1}, theirs {doubles:.1} \
         G multiply-adds/s, ratio {:.2}",
        ours / doubles
    );
}

fn main() {
    let prime = Prime::largest(1)[0];
    for n in [4096, 8192, 16384] {
        let ours = Ntt::new(prime, n, Simd::detect());
        let theirs = tfhe_ntt::prime32::Plan::try_new(n, prime.value()).unwrap();
        let (mut a, mut b): (Vec<u32>, Vec<u32>) =
            ((0..n as u32).collect(), (0..n as u32).collect());
        compare(
            &format!("forward transform {n}, tfhe-ntt"),
            2000,
            [1.0; 2],
            || ours.forward(&mut a),
            || theirs.fwd(&mut b),
        );
        compare(
            &format!("inverse transform {n}, tfhe-ntt"),
            2000,
            [1.0; 2],
            || ours.inverse(&mut a),
            || theirs.inv(&mut b),
        );
    }

    let params = params::products();
    let mut rng = Prg::new(&[1; 16]);
    let slots: Vec<u64> = (0..8192).map(|_| modulus::random(&mut rng)).collect();
    terms_without_rotations(&slots, &mut rng);
    let scheme = Primitives::new(&params, [1], &mut rng);
    let ours = scheme.expand(&scheme.encrypt(&slots, &mut rng));
    let mut rotations = scheme.rotations();

    // 180 bits of ciphertext modulus as ours, switching keys without a spare prime (70 bits of
    // noise); then with a spare prime, as ours do.
    for (name, sizes, levels) in [
        ("no spare prime", &[60; 3][..], (0, 0)),
        ("spare prime", &[60; 4][..], (1, 0)),
    ] {
        let their_params = BfvParametersBuilder::new()
            .set_degree(8192)
            .set_plaintext_modulus(P)
            .set_moduli_sizes(sizes)
            .build_arc()
            .unwrap();
        let their_secret = fhe::bfv::SecretKey::random(&their_params, &mut rand::rng());
        let encode = || {
            Plaintext::try_encode(&slots, Encoding::simd_at_level(levels.0), &their_params).unwrap()
        };
        let plain = encode();
        let theirs: Ciphertext = their_secret.try_encrypt(&plain, &mut rand::rng()).unwrap();
        let mut builder =
            EvaluationKeyBuilder::new_leveled(&their_secret, levels.0, levels.1).unwrap();
        builder.enable_column_rotation(1).unwrap();
        let their_keys = builder.build(&mut rand::rng()).unwrap();
        compare(
            &format!("rotation, fhe with {name}"),
            200,
            [1.0; 2],
            || drop(black_box(rotations.rotate(&ours, 1).unwrap())),
            || {
                drop(black_box(
                    their_keys.rotates_columns_by(&theirs, 1).unwrap(),
                ))
            },
        );
        if levels.0 > 0 {
            continue;
        }
        // Each side takes the best of many itself, in five turns.
        let terms = 96;
        let (cts, plains) = (vec![theirs.clone(); terms], vec![plain.clone(); terms]);
        let (mut best_ours, mut best_theirs) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..5 {
            best_ours = best_ours.min(measure::product_term(&params) * 1e6);
            for _ in 0..30 {
                let start = Instant::now();
                drop(black_box(
                    dot_product_scalar(cts.iter(), plains.iter()).unwrap(),
                ));
                best_theirs = best_theirs.min(start.elapsed().as_secs_f64() * 1e6 / terms as f64);
            }
        }
        println!(
            "product term, fhe: ours {best_ours:.2}, theirs {best_theirs:.2}, ratio {:.2}",
            best_theirs / best_ours
        );
        compare(
            "encryption of slots, fhe",
            200,
            [1.0; 2],
            || drop(black_box(scheme.encrypt(&slots, &mut rng))),
            || {
                let ct: Ciphertext = their_secret
                    .try_encrypt(&encode(), &mut rand::rng())
                    .unwrap();
                drop(black_box(ct));
            },
        );
        compare(
            "decryption to slots, fhe",
            200,
            [1.0; 2],
            || drop(black_box(scheme.decrypt(&ours).unwrap())),
            || {
                let plain = their_secret.try_decrypt(&theirs).unwrap();
                drop(black_box(
                    Vec::<u64>::try_decode(&plain, Encoding::simd()).unwrap(),
                ));
            },
        );
    }
}
