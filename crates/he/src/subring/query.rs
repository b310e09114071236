//! Queries: the client's matrices as polynomials, and their ciphertexts as they travel.
//!
//! A plaintext is rounded at random when it is scaled, so that the noise of a fresh ciphertext has
//! mean zero whatever the plaintext is.

use crate::ciphertext::SeededCiphertext;
use crate::keys::{self, SecretKey};
use crate::params::Params;
use primer_lattice::sample;
use primer_ring::prg::Prg;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Encrypts polynomials that are written one after the other into the same buffer.
pub(crate) fn encrypt(
    secret: &SecretKey,
    count: usize,
    rng: &mut impl CryptoRng,
    mut plain: impl FnMut(usize, &mut [u64]),
) -> Vec<SeededCiphertext> {
    let params = secret.params();
    let limbs = params.data_primes();
    let mut polynomial = Zeroizing::new(vec![0; params.degree()]);
    let ciphertexts = (0..count).map(|index| {
        polynomial.fill(0);
        plain(index, &mut polynomial);
        let seed = keys::draw_seed(rng);
        let a = keys::expand(params, limbs, &mut Prg::new(&seed));
        let mut message = keys::error(params, limbs, rng);
        params.add_dithered(limbs, &polynomial, rng, message.data_mut());
        SeededCiphertext {
            seed,
            c0: secret.mask(&a, message),
        }
    });
    ciphertexts.collect()
}

/// Calls `f` with both halves of one limb after the other, by values. `second` is a buffer.
pub(super) fn each_limb(
    params: &Params,
    ciphertext: &SeededCiphertext,
    second: &mut [u32],
    mut f: impl FnMut(usize, [&[u32]; 2]),
) {
    let mut prg = Prg::new(&ciphertext.seed);
    for limb in 0..params.data_primes() {
        sample::expand(params.prime(limb), &mut prg, second);
        f(limb, [ciphertext.c0.limb(limb), second]);
    }
}
