//! Ciphertexts.
//!
//! A ciphertext `(c0, c1)` modulo `q` encrypts `m` modulo p if `c0 + c1·s = round(q·m/p) + noise`.
//! The client's fresh ciphertexts are symmetric: `c1` is expanded from a seed, so only `c0`
//! travels. The server adds up products of ciphertexts with plaintexts.

use crate::keys;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::poly::{Coefficients, Poly, Values};
use primer_ring::modulus;
use primer_ring::prg::{Prg, Seed};
use zeroize::Zeroizing;

/// Both halves of a ciphertext modulo all data primes, by values.
pub type Halves = [Poly<Values>; 2];

/// A fresh symmetric ciphertext: `c0` and the seed of `c1`.
pub struct SeededCiphertext {
    /// The seed of `c1`.
    pub seed: Seed,
    /// `c0`, modulo all data primes.
    pub c0: Poly<Values>,
}

impl SeededCiphertext {
    /// Returns both halves.
    pub fn expand(&self, params: &Params) -> Halves {
        let c1 = keys::expand(params, params.data_primes(), &mut Prg::new(&self.seed));
        [self.c0.copy(), c1]
    }
}

/// Returns a sum of no products.
pub fn zero(params: &Params) -> Halves {
    std::array::from_fn(|_| Poly::zero(params.basis(), params.data_primes()))
}

/// Adds the product of a ciphertext and a plaintext to a sum.
pub fn add_product(params: &Params, sum: &mut Halves, halves: &Halves, plain: &Poly<Values>) {
    for (sum, half) in sum.iter_mut().zip(halves) {
        for j in 0..params.data_primes() {
            let prime = params.prime(j);
            elementwise::mul_add(
                params.simd(),
                prime,
                sum.limb_mut(j),
                half.limb(j),
                plain.limb(j),
            );
        }
    }
}

/// Returns slot values as a transformed plaintext, lifted to the residues of least absolute value.
pub fn encode(params: &Params, slots: &[u64]) -> Poly<Values> {
    let mut coefficients = Zeroizing::new(vec![0; params.degree()]);
    params.slots().encode(slots, &mut coefficients);
    let signed: Zeroizing<Vec<i64>> = Zeroizing::new(
        coefficients
            .iter()
            .map(|&c| modulus::to_signed(c))
            .collect(),
    );
    let mut out = Poly::<Coefficients>::zero(params.basis(), params.data_primes());
    for j in 0..params.data_primes() {
        let prime = params.prime(j);
        elementwise::lift(
            params.simd(),
            prime,
            out.limb_mut(j),
            &signed,
            prime.shoup(1),
        );
    }
    out.into_values(params.basis())
}
