//! Circuit privacy: what the client can see of an answer does not depend on the weights.

use super::{pair, residues};
use crate::packing::layout::Layout;
use crate::packing::matrix::EncryptedMatrix;
use crate::packing::weights::PreparedWeights;
use crate::params;
use primer_lattice::sample::{FLOOD_TERM_BITS, FLOOD_TERMS};
use primer_ring::matrix::Matrix;

/// Returns the largest distance between the empirical distributions of two samples (Kolmogorov,
/// Smirnov).
pub(super) fn distance(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (mut i, mut worst) = (0, 0.0f64);
    for (j, x) in b.iter().enumerate() {
        while i < a.len() && a[i] <= *x {
            i += 1;
        }
        worst = worst.max((i as f64 / a.len() as f64 - (j + 1) as f64 / b.len() as f64).abs());
    }
    worst
}

#[test]
fn noise_does_not_tell_weights_apart() {
    let params = params::products();
    let layout = Layout::tokens_first(&params, 256).unwrap();
    let mut p = pair(&layout, 1);
    let x = residues(&mut p.rng, 256, 32);
    // The extremes: all zero, and the largest weights everywhere.
    let zero = PreparedWeights::dense(&params, &layout, &Matrix::zeros(32, 32)).unwrap();
    let full = PreparedWeights::dense(
        &params,
        &layout,
        &Matrix::from_fn(32, 32, |r, c| {
            if (r + c) % 3 == 0 {
                i16::MIN / 2
            } else {
                i16::MAX / 2
            }
        }),
    )
    .unwrap();
    let sent =
        EncryptedMatrix::encrypt(&p.secret, &layout, zero.input_chunks(), &x, &mut p.rng).unwrap();
    let answers = 20;
    let mut noises = [&zero, &full].map(|weights| {
        let mut noise = Vec::new();
        let mut halves: Vec<Vec<u8>> = Vec::new();
        for _ in 0..answers {
            let mask = residues(&mut p.rng, 256, 32);
            let (answer, _) = p
                .server
                .linear(&sent, weights, Some(&mask), &mut p.rng)
                .unwrap();
            noise.extend(answer.answers.iter().flat_map(|a| a.noise(&p.secret)));
            halves.push(answer.to_bytes(&params));
        }
        // The same question never gets the same ciphertext: both halves are fresh.
        for (i, a) in halves.iter().enumerate() {
            for b in &halves[..i] {
                let same = a.iter().zip(b).skip(64).filter(|(x, y)| x == y).count();
                assert!(same < a.len() / 128, "{same} bytes of {} agree", a.len());
            }
        }
        noise
    });
    // The flood seen at the answer's modulus, two primes below: the right mean and width.
    let width = f64::from(FLOOD_TERM_BITS - 60).exp2() * (FLOOD_TERMS as f64 / 3.0).sqrt();
    for noise in &noises {
        let mean = noise.iter().sum::<f64>() / noise.len() as f64;
        let deviation = (noise.iter().map(|x| x * x).sum::<f64>() / noise.len() as f64).sqrt();
        assert!(mean.abs() < width / 50.0, "{mean}");
        assert!((deviation / width - 1.0).abs() < 0.02, "{deviation}");
    }
    let [a, b] = &mut noises;
    let n = a.len() as f64;
    assert!(n >= 8192.0 * answers as f64);
    // Equal distributions exceed this distance with probability 2e-8.
    let limit = (-(1e-8f64).ln() / 2.0).sqrt() * (2.0 / n).sqrt();
    let found = distance(a, b);
    assert!(found < limit, "{found} of {limit}");
    // The test would see a shift of a twentieth of the flood's deviation.
    let mut shifted: Vec<f64> = a.iter().map(|x| x + width / 20.0).collect();
    assert!(distance(&mut shifted, b) > limit);
}
