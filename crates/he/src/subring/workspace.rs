//! Memory that is kept from one product to the next.

use crate::params::Params;
use primer_lattice::kernel::points::{PointSums, PointTerms, Points};
use zeroize::Zeroize;

/// Buffers of a server's products. What is in them depends on weights and is wiped.
#[derive(Default)]
pub(crate) struct Workspace {
    /// For each prime, the ciphertexts of a query.
    pub(super) terms: Vec<PointTerms>,
    /// For each prime, some rows of the results.
    pub(super) sums: Vec<PointSums>,
    pub(super) scratch: Scratch,
}

/// Buffers of a few polynomials.
#[derive(Default)]
pub(super) struct Scratch {
    /// One limb each.
    pub(super) limb: Vec<u32>,
    pub(super) small: Vec<u32>,
    /// All limbs of some coefficients, and of a polynomial.
    pub(super) first: Vec<u32>,
    pub(super) second: Vec<u32>,
    pub(super) fractions: Vec<u64>,
}

impl Workspace {
    /// Room for the ciphertexts of a query.
    pub(super) fn terms(&mut self, params: &Params, points: Points, terms: usize) {
        let primes = (0..params.data_primes()).map(|i| params.prime(i));
        if self.terms.len() == params.data_primes() {
            let buffers = self.terms.iter_mut().zip(primes);
            buffers.for_each(|(buffer, prime)| buffer.reuse(prime, points, terms));
        } else {
            let make = |prime| PointTerms::zeros(prime, points, terms);
            self.terms = primes.map(make).collect();
        }
    }

    /// Room for some rows of results.
    pub(super) fn sums(&mut self, params: &Params, points: Points, rows: usize) {
        if self.sums.len() == params.data_primes() {
            self.sums
                .iter_mut()
                .for_each(|sums| sums.reuse(points, rows));
        } else {
            let make = |_| PointSums::zeros(points, rows);
            self.sums = (0..params.data_primes()).map(make).collect();
        }
    }
}

/// The first `len` numbers of a buffer, which grows if it has to.
pub(super) fn sized<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for buffer in [
            &mut self.limb,
            &mut self.small,
            &mut self.first,
            &mut self.second,
        ] {
            buffer.zeroize();
        }
        self.fractions.zeroize();
    }
}
