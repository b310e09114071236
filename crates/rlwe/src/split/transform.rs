//! Transforms of the subring: polynomials in `Y` to their values at `F` points.
//!
//! The points come in the order in which the transform of the whole ring has them, so value `f`
//! belongs to values `fT..(f+1)T` of a ciphertext.

use crate::params::Params;
use primer_lattice::ntt::{MIN_DEGREE, Ntt};
use zeroize::Zeroizing;

/// The transforms of all primes, for one number of points.
pub(super) struct Transforms {
    points: usize,
    ntts: Vec<Ntt>,
}

impl Transforms {
    pub(super) fn new(params: &Params, points: usize) -> Self {
        let primes = (0..params.data_primes()).map(|i| params.prime(i));
        let ntt = |prime| Ntt::new(prime, points.max(MIN_DEGREE), params.simd());
        Self {
            points,
            ntts: primes.map(ntt).collect(),
        }
    }

    /// Turns residues of coefficients into values, in place, modulo one prime.
    pub(super) fn forward(&self, limb: usize, values: &mut [u32]) {
        debug_assert_eq!(values.len(), self.points);
        let ntt = &self.ntts[limb];
        if self.points == ntt.degree() {
            return ntt.forward(values);
        }
        // Fewer points than the smallest transform has: the same polynomial in a root of `Y`, which
        // has each value several times in a row.
        let step = ntt.degree() / self.points;
        let mut spread = Zeroizing::new([0; MIN_DEGREE]);
        for (to, from) in spread.chunks_exact_mut(step).zip(&*values) {
            to[0] = *from;
        }
        ntt.forward(&mut spread[..]);
        for (from, to) in spread.chunks_exact(step).zip(values) {
            *to = from[0];
        }
    }
}
