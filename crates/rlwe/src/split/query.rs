//! Queries: the client's matrices as polynomials, and their ciphertexts as they travel.
//!
//! A plaintext is rounded at random when it is scaled, so that the noise of a fresh ciphertext has
//! mean zero for every plaintext. A ciphertext is made limb by limb in the same few buffers,
//! and each limb of `c0 = e + round(q·m/p) - a·s` goes straight into the message.

use super::workspace::sized;
use crate::keys::{self, SecretKey};
use crate::threads;
use crate::wire;
use primer_lattice::kernel::elementwise;
use primer_lattice::sample;
use primer_ring::prg::Prg;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// The buffers of an encryption, wiped when dropped.
#[derive(Default)]
struct Buffers {
    /// A plaintext, and what the writer of plaintexts works with.
    plain: Vec<u64>,
    work: Vec<u64>,
    /// What is subtracted when the plaintext is scaled.
    rest: Vec<i64>,
    error: Vec<i8>,
    /// One limb each.
    message: Vec<u32>,
    uniform: Vec<u32>,
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.plain.zeroize();
        self.work.zeroize();
        self.rest.zeroize();
        self.error.zeroize();
        self.message.zeroize();
    }
}

/// Encrypts polynomials into their bytes. `plain` is told which, and is given a polynomial of zeros
/// to write, and another one to work with.
pub(super) fn encrypt(
    secret: &SecretKey,
    threads: usize,
    rng: &mut impl CryptoRng,
    out: &mut [u8],
    plain: impl Fn(usize, &mut [u64], &mut [u64]) + Sync,
) {
    let params = secret.params();
    let len = wire::ciphertext_len(params);
    let each = threads::share(out.len() / len, threads);
    let parts = out.chunks_mut(each * len).enumerate().collect();
    threads::each_random(parts, rng, |(part, out): (_, &mut [u8]), mut rng| {
        let mut buffers = Buffers::default();
        for (i, out) in out.chunks_exact_mut(len).enumerate() {
            let polynomial = sized(&mut buffers.plain, params.degree());
            polynomial.fill(0);
            let work = sized(&mut buffers.work, params.degree());
            plain(part * each + i, polynomial, work);
            encrypt_one(secret, &mut buffers, &mut rng, out);
        }
    });
}

/// Encrypts the plaintext in the buffers.
fn encrypt_one(
    secret: &SecretKey,
    buffers: &mut Buffers,
    rng: &mut impl CryptoRng,
    out: &mut [u8],
) {
    let params = &**secret.params();
    let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
    let seed = keys::draw_seed(rng);
    let mut prg = Prg::new(&seed);
    let error = sized(&mut buffers.error, n);
    sample::fill_error(simd, rng, error);
    let rest = sized(&mut buffers.rest, buffers.plain.len());
    params.dither(limbs, &buffers.plain, rng, rest);
    let message = sized(&mut buffers.message, n);
    let uniform = sized(&mut buffers.uniform, n);
    let mut writer = wire::CiphertextWriter::new(&seed, out);
    for limb in 0..limbs {
        let prime = params.prime(limb);
        elementwise::from_small(simd, prime, message, error);
        params.add_scaled(limb, rest, message);
        params.ntt(limb).forward(message);
        sample::expand(prime, &mut prg, uniform);
        elementwise::mul_sub(simd, prime, message, uniform, secret.values().limb(limb));
        writer.limb(message);
    }
}
