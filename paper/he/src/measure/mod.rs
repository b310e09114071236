//! The figures behind the cost of a product, measured on this machine with one thread unless they
//! say otherwise.
//!
//! [`figures`] is what `primer bench --kernels` prints. [`product`] measures one product of any
//! size through the face that the protocol uses. [`Primitives`] are single operations, to be
//! compared with another library's.

mod primitives;

pub use primitives::{Fresh, Primitives, Rotations, Sealed};

use crate::counters::Counters;
use crate::error::HeError;
use crate::params::{self, Params};
use crate::product::{ClientKeys, Method, Operand, Product, Relation, ServerKeys, Weights};
use primer_lattice::kernel::aligned::Aligned;
use primer_lattice::kernel::weighted::{Runs, weighted};
use primer_ring::matrix::Matrix;
use primer_ring::measure::{best, best_by, wall};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_rlwe::wire::{HEADER, LAYOUT, ciphertext_len};
use rand_core::Rng;
use std::time::Instant;

/// Figures of the homomorphic layer: best of a few repetitions, circuit privacy on.
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
    /// Reading and decryption of one answer to 8192 slots, in microseconds.
    pub decrypt_us: f64,
    /// `Enc(30×768)·W(768×768)` in seconds, tokens-first.
    pub linear_30x768x768_tokens_first_s: f64,
    /// The same, features-first.
    pub linear_30x768x768_features_first_s: f64,
    /// Both products of heads of a BERT-base layer, 30 tokens, weights prepared and products
    /// answered, in seconds, tokens-first.
    pub heads_tokens_first_s: f64,
    /// Rotations of the tokens-first product.
    pub rotations_tokens_first: usize,
    /// Rotations of the features-first product.
    pub rotations_features_first: usize,
}

/// Measures everything, in some ten seconds in a release build.
///
/// # Errors
/// None that the fixed shapes could cause; passed on rather than hidden.
pub fn figures() -> Result<Figures, HeError> {
    let params = params::products();
    let mut rng = Prg::from_os();
    let n = params.degree();
    let slots: Vec<u64> = (0..n).map(|_| modulus::random(&mut rng)).collect();

    let mut limb: Vec<u32> = (0..n).map(|_| rng.next_u32() >> 3).collect();
    let ntt = best(200, || params.ntt(0).forward(&mut limb));

    let primitives = Primitives::new(&params, [1], &mut rng);
    let encrypt = best(50, || drop(primitives.encrypt(&slots, &mut rng)));
    let ciphertext = primitives.expand(&primitives.encrypt(&slots, &mut rng));
    let mut failed = None;
    let mut rotations = primitives.rotations();
    let rotation = best(50, || failed = rotations.rotate(&ciphertext, 1).err());
    failed.map_or(Ok(()), Err)?;

    let dense = (30, 768, 768);
    let clock = || wall(Instant::now());
    let mut dense_by = |method: &Method, repetitions| {
        product(method, dense, usize::MAX, repetitions, clock(), &mut rng)
    };
    let tokens = dense_by(&Method::tokens_first(), 10)?;
    let features = dense_by(&Method::features_first(768), 2)?;
    Ok(Figures {
        ntt_8192_us: ntt * 1e6,
        rotation_ms: rotation * 1e3,
        product_term_us: product_term(&params) * 1e6,
        encrypt_us: encrypt * 1e6,
        decrypt_us: tokens.decrypt_s * 1e6,
        linear_30x768x768_tokens_first_s: tokens.seconds,
        linear_30x768x768_features_first_s: features.seconds,
        heads_tokens_first_s: heads(&Method::tokens_first(), 3, clock(), &mut rng)?,
        rotations_tokens_first: tokens.rotations,
        rotations_features_first: features.rotations,
    })
}

/// One product of random data.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The server's time from received ciphertexts to a finished answer, in seconds.
    pub seconds: f64,
    /// Preparation of the weights, in seconds.
    pub prepare_s: f64,
    /// Bytes of the prepared weights.
    pub prepared_bytes: usize,
    /// Encryption of one ciphertext of a query, as it travels, in seconds.
    pub encrypt_s: f64,
    /// Reading of one, in seconds.
    pub read_s: f64,
    /// Reading, decryption and unpacking of one answer ciphertext, in seconds.
    pub decrypt_s: f64,
    /// Ciphertexts of the query.
    pub inputs: usize,
    /// Ciphertexts of the answer.
    pub answers: usize,
    /// Bytes of the client's ciphertexts.
    pub bytes_up: u64,
    /// Bytes of the server's answers.
    pub bytes_down: u64,
    /// Rotations of ciphertexts.
    pub rotations: usize,
    /// Products of a ciphertext with a plaintext.
    pub products: usize,
}

/// Measures one dense product of a random matrix with random weights (rows, inputs, outputs), by a
/// clock that counts seconds: of the wall, or of the processor on a busy machine. The server has
/// `room` bytes for encoded weights; without room they are encoded when used.
///
/// # Errors
/// If the shape does not fit.
pub fn product(
    method: &Method,
    (rows, inputs, outputs): (usize, usize, usize),
    mut room: usize,
    repetitions: usize,
    clock: impl Fn() -> f64,
    rng: &mut Prg,
) -> Result<Measured, HeError> {
    let relation = Relation::Dense {
        rows,
        inputs,
        outputs,
    };
    let product = Product::new(method, relation)?;
    let (client, mut server) = pair(&product, rng)?;
    let w = Matrix::from_fn(inputs, outputs, |_, _| (rng.next_u32() as i16) >> 1);
    let start = clock();
    let weights = product.prepare_within(&w, &mut room)?;
    let prepare_s = clock() - start;
    let mut random = |rows, cols| Matrix::from_fn(rows, cols, |_, _| modulus::random(rng));
    let (x, mask) = (random(rows, inputs), random(rows, outputs));
    let query = &product.queries()[0];
    let mut asked = query.encrypt(&client, &x, rng);
    let encrypt = best_by(&clock, repetitions, || {
        asked = query.encrypt(&client, &x, rng)
    });
    let asked = asked?;
    let mut received = query.read(&asked);
    let read = best_by(&clock, repetitions, || received = query.read(&asked));
    let query = received?;
    let mut last = Err(HeError::NoiseExhausted { index: 0 });
    let seconds = best_by(&clock, repetitions, || {
        last = product.answer_counted(&mut server, &[&query], &weights, &mask, rng);
    });
    let (answer, counters) = last?;
    let mut decrypted = Ok(());
    let decrypt = best_by(&clock, 10, || {
        decrypted = product.decrypt(&client, &answer).map(drop);
    });
    decrypted?;
    let Counters {
        rotations,
        products,
        answers,
        ..
    } = counters;
    let params = method.params();
    let bytes_up = product.queries()[0].wire_len();
    let ciphertexts = bytes_up as usize - HEADER - LAYOUT;
    let inputs = ciphertexts / ciphertext_len(params);
    Ok(Measured {
        seconds,
        prepare_s,
        prepared_bytes: weights.memory(),
        encrypt_s: encrypt / inputs as f64,
        read_s: read / inputs as f64,
        decrypt_s: decrypt / answers as f64,
        inputs,
        answers,
        bytes_up,
        bytes_down: product.answer_len(),
        rotations,
        products,
    })
}

/// Returns seconds of the server for the products of heads of a BERT-base layer with 30 tokens, two
/// for scores and two for mixing: the weights, which belong to one inference, are prepared, and
/// queries that were read are answered.
///
/// # Errors
/// If the method has no room for them.
pub fn heads(
    method: &Method,
    repetitions: usize,
    clock: impl Fn() -> f64,
    rng: &mut Prg,
) -> Result<f64, HeError> {
    let shape = |operand, rows, inputs, outputs| Relation::Heads {
        heads: 12,
        operand,
        rows,
        inputs,
        outputs,
    };
    let scores = shape(Operand::Columns, 30, 64, 30);
    let turned = shape(Operand::Turned, 64, 30, 30);
    let mixed = shape(Operand::Rows, 30, 30, 64);
    let mut seconds = 0.0;
    for (relation, inputs, outputs, size) in [
        (scores, 64, 30, (30, 768)),
        (scores, 64, 30, (30, 768)),
        (turned, 30, 30, (30, 768)),
        (mixed, 30, 64, (360, 30)),
    ] {
        let product = Product::new(method, relation)?;
        let (client, mut server) = pair(&product, rng)?;
        let mut random = |rows, cols| Matrix::from_fn(rows, cols, |_, _| modulus::random(rng));
        let blocks: Vec<_> = (0..12).map(|_| random(inputs, outputs)).collect();
        let (x, mask) = (
            random(size.0, size.1),
            random(product.rows(), product.cols()),
        );
        let query = &product.queries()[0];
        let query = query.read(&query.encrypt(&client, &x, rng)?)?;
        let mut last = Ok(());
        seconds += best_by(&clock, repetitions, || {
            last = product
                .prepare(Weights::Heads(&blocks))
                .and_then(|weights| {
                    (product.answer(&mut server, &[&query], &weights, &mask, rng)).map(drop)
                });
        });
        last?;
    }
    Ok(seconds)
}

/// Makes both parties' keys for a product.
fn pair(product: &Product, rng: &mut Prg) -> Result<(ClientKeys, ServerKeys), HeError> {
    let needs = product.keys();
    let client = ClientKeys::generate(&needs, rng);
    let mut messages = std::collections::VecDeque::new();
    client.publish(rng, |_, bytes| {
        messages.push_back(bytes.to_vec());
        Ok::<_, HeError>(())
    })?;
    let server = ServerKeys::receive(&needs, |_, _| {
        Ok::<_, HeError>(messages.pop_front().unwrap_or_default())
    })?;
    Ok((client, server))
}

/// Returns the seconds of one term of the sums of a product for 30 tokens, over all primes.
pub fn product_term(params: &Params) -> f64 {
    let (terms, outputs, n) = (96, 48, params.degree());
    let runs = Runs::new(n, 16);
    let mut data = Aligned::zeros(2 * n * terms);
    let data = data.sized(2 * n * terms);
    data.fill(123_456_789);
    let weights = vec![987_654_321; runs.distinct() * outputs * terms];
    let mut out = Aligned::zeros(2 * n * outputs);
    let out = out.sized(2 * n * outputs);
    let (simd, prime) = (params.simd(), params.prime(0));
    let one_prime = best(40, || {
        weighted(simd, prime, runs, data, terms, &weights, out, false);
    });
    one_prime * params.all_primes() as f64 / (terms * outputs) as f64
}
