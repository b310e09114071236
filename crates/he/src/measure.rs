//! The figures behind the cost of a product, measured on this machine with one thread.

use crate::ciphertext::SeededCiphertext;
use crate::counters::Counters;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::kernel::aligned::Aligned;
use crate::kernel::weighted::{Runs, weighted};
use crate::keys::{GaloisKeys, PublicKey, SecretKey};
use crate::packing::layout::Layout;
use crate::packing::matrix::EncryptedMatrix;
use crate::packing::weights::PreparedWeights;
use crate::params::Params;
use crate::switch::Rotator;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::time::Instant;

/// Figures of the homomorphic layer: best of a few repetitions, one thread, circuit privacy on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// One forward transform of length 8192 modulo one prime, in microseconds.
    pub ntt_8192_us: f64,
    /// One rotation of a ciphertext on its own, in milliseconds.
    pub rotation_ms: f64,
    /// One product of a ciphertext with a prepared weight, summed up, in microseconds.
    pub product_term_us: f64,
    /// One symmetric encryption of 8192 slots, in microseconds.
    pub encrypt_us: f64,
    /// Decryption of one answer to 8192 slots, in microseconds.
    pub decrypt_us: f64,
    /// `Enc(30×768)·W(768×768)` in seconds, tokens-first.
    pub linear_30x768x768_tokens_first_s: f64,
    /// The same, features-first.
    pub linear_30x768x768_features_first_s: f64,
    /// Rotations of the tokens-first product.
    pub rotations_tokens_first: usize,
    /// Rotations of the features-first product.
    pub rotations_features_first: usize,
}

/// The best time of some repetitions, in seconds of the wall clock.
fn best(repetitions: usize, f: impl FnMut()) -> f64 {
    let origin = Instant::now();
    best_by(&wall(origin), repetitions, f)
}

/// The wall clock, in seconds.
fn wall(origin: Instant) -> impl Fn() -> f64 {
    move || origin.elapsed().as_secs_f64()
}

/// The best time of some repetitions by a given clock.
fn best_by(clock: &impl Fn() -> f64, repetitions: usize, mut f: impl FnMut()) -> f64 {
    (0..repetitions)
        .map(|_| {
            let start = clock();
            f();
            clock() - start
        })
        .fold(f64::INFINITY, f64::min)
}

/// Measures everything, in some ten seconds in a release build.
///
/// # Errors
/// None that the fixed shapes could cause; passed on rather than hidden.
pub fn figures() -> Result<Figures, HeError> {
    let params = Params::products();
    let mut rng = Prg::from_os();
    let n = params.degree();
    let secret = SecretKey::generate(&params, &mut rng);
    let slots: Vec<u64> = (0..n).map(|_| modulus::random(&mut rng)).collect();

    let mut limb: Vec<u32> = (0..n).map(|_| rng.next_u32() >> 3).collect();
    let ntt = best(200, || params.ntt(0).forward(&mut limb));

    let encrypt = best(50, || {
        SeededCiphertext::encrypt_slots(&secret, &slots, &mut rng);
    });
    let ciphertext = SeededCiphertext::encrypt_slots(&secret, &slots, &mut rng).expand(&params);
    let galois = GaloisKeys::generate(&secret, [1], &mut rng);
    let mut failed = None;
    let mut rotator = Rotator::new(&galois);
    let rotation = best(50, || failed = rotator.rotate(&ciphertext, 1).err());
    failed.map_or(Ok(()), Err)?;

    let tokens = linear(
        &params,
        &secret,
        &Layout::tokens_first(&params, 30)?,
        768,
        768,
        false,
        10,
        wall(Instant::now()),
        &mut rng,
    )?;
    let features = linear(
        &params,
        &secret,
        &Layout::features_first(&params, 30, 768)?,
        768,
        768,
        false,
        2,
        wall(Instant::now()),
        &mut rng,
    )?;
    Ok(Figures {
        ntt_8192_us: ntt * 1e6,
        rotation_ms: rotation * 1e3,
        product_term_us: product_term(&params) * 1e6,
        encrypt_us: encrypt * 1e6,
        decrypt_us: tokens.decrypt_s * 1e6,
        linear_30x768x768_tokens_first_s: tokens.seconds,
        linear_30x768x768_features_first_s: features.seconds,
        rotations_tokens_first: tokens.counters.rotations,
        rotations_features_first: features.counters.rotations,
    })
}

/// One product of random data.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    /// The server's time from received ciphertexts to finished answers, in seconds.
    pub seconds: f64,
    /// Preparation of the weights, in seconds.
    pub prepare_s: f64,
    /// Bytes of the prepared weights.
    pub prepared_bytes: usize,
    /// Decryption and unpacking of one answer ciphertext, in seconds.
    pub decrypt_s: f64,
    /// Bytes of the client's ciphertexts.
    pub bytes_up: usize,
    /// Bytes of the server's answers.
    pub bytes_down: usize,
    /// What was done.
    pub counters: Counters,
}

/// Measures one masked product of a random matrix with random weights, kept encoded or encoded when used, by a clock that counts
/// seconds: of the wall, or of the processor on a busy machine.
///
/// # Errors
/// If the shape does not fit.
pub fn linear(
    params: &std::sync::Arc<Params>,
    secret: &SecretKey,
    layout: &Layout,
    inputs: usize,
    outputs: usize,
    streamed: bool,
    repetitions: usize,
    clock: impl Fn() -> f64,
    rng: &mut Prg,
) -> Result<Linear, HeError> {
    let public = PublicKey::generate(secret, rng);
    let galois = GaloisKeys::generate(secret, layout.rotations(), rng);
    let mut server = Evaluator::new(public, galois)?;
    let w = Matrix::from_fn(inputs, outputs, |_, _| (rng.next_u32() as i16) >> 1);
    let start = clock();
    let weights = if streamed {
        PreparedWeights::streamed(params, layout, w)?
    } else {
        PreparedWeights::dense(params, layout, &w)?
    };
    let prepare_s = clock() - start;
    let mut random = |rows, cols| Matrix::from_fn(rows, cols, |_, _| modulus::random(rng));
    let x = random(layout.tokens(), inputs);
    let mask = random(layout.tokens(), outputs);
    let input = EncryptedMatrix::encrypt(secret, layout, weights.input_chunks(), &x, rng)?;
    let mut last = Err(HeError::NoiseExhausted { index: 0 });
    let seconds = best_by(&clock, repetitions, || {
        last = server.linear(&input, &weights, Some(&mask), rng)
    });
    let (answer, counters) = last?;
    let mut decrypted = Ok(());
    let decrypt = best(10, || decrypted = answer.decrypt(secret).map(|_| ()));
    decrypted?;
    Ok(Linear {
        seconds,
        prepare_s,
        prepared_bytes: weights.memory(),
        decrypt_s: decrypt / counters.answers as f64,
        bytes_up: input.to_bytes(params).len(),
        bytes_down: answer.to_bytes(params).len(),
        counters,
    })
}

/// One term of the sums of a product for 30 tokens, over all primes, in seconds.
pub fn product_term(params: &Params) -> f64 {
    let (terms, outputs, n) = (96, 48, params.degree());
    let runs = Runs::new(n, 16);
    let mut data = Aligned::zeros(2 * n * terms);
    let data = data.sized(2 * n * terms);
    data.fill(123_456_789);
    let weights = vec![987_654_321; runs.distinct() * outputs * terms];
    let mut out = Aligned::zeros(2 * n * outputs);
    let out = out.sized(2 * n * outputs);
    let one_prime = best(40, || {
        let prime = params.prime(0);
        weighted(
            params.simd(),
            prime,
            runs,
            data,
            terms,
            &weights,
            out,
            false,
        );
    });
    one_prime * params.all_primes() as f64 / (terms * outputs) as f64
}
