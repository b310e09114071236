//! Tests of what is below [`crate::product`]: a client and a server in one thread, and the products
//! by hand.

mod privacy;
mod products;
mod slotwise;
mod wire;

use crate::evaluate::Evaluator;
use crate::keys::GaloisKeys;
use crate::packing::layout::Layout;
use crate::params::{self, Params};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_rlwe::keys::{PublicKey, SecretKey};
use rand_core::Rng;
use std::sync::Arc;

pub(crate) struct Pair {
    pub(crate) params: Arc<Params>,
    pub(crate) secret: SecretKey,
    pub(crate) server: Evaluator,
    pub(crate) rng: Prg,
}

pub(crate) fn pair(layout: &Layout, seed: u8) -> Pair {
    let params = params::products();
    let mut rng = Prg::new(&[seed; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let public = PublicKey::generate(&secret, &mut rng);
    let galois = GaloisKeys::generate(&secret, layout.rotations(), &mut rng);
    // Through the wire, as in a session.
    let public = PublicKey::from_bytes(&params, &public.to_bytes()).unwrap();
    let galois = GaloisKeys::from_bytes(&params, &galois.to_bytes()).unwrap();
    Pair {
        server: Evaluator::new(public, galois).unwrap(),
        params,
        secret,
        rng,
    }
}

pub(crate) fn residues(rng: &mut Prg, rows: usize, cols: usize) -> Matrix<u64> {
    Matrix::from_fn(rows, cols, |_, _| modulus::random(rng))
}

pub(crate) fn weights(rng: &mut Prg, rows: usize, cols: usize) -> Matrix<i16> {
    Matrix::from_fn(rows, cols, |_, _| (rng.next_u32() as i16) >> 1)
}

/// Returns `x·w + mask` modulo p.
pub(crate) fn product(x: &Matrix<u64>, w: &Matrix<u64>, mask: &Matrix<u64>) -> Matrix<u64> {
    Matrix::from_fn(x.rows(), w.cols(), |t, o| {
        let sum = (0..w.rows()).fold(0, |acc, i| {
            acc + u128::from(modulus::mul(x.get(t, i), w.get(i, o)))
        });
        modulus::add(modulus::reduce_wide(sum), mask.get(t, o))
    })
}

pub(crate) fn signed(w: &Matrix<i16>) -> Matrix<u64> {
    w.map(|&v| modulus::from_signed(v.into()))
}
