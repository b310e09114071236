//! Sums of products of short polynomials with elements of the packing: where the time goes.

use crate::params::{BLOCK, DEGREE};
use crate::ring::{Limbs, Packing};
use primer_ring::matrix::Matrix;
use zeroize::Zeroizing;

/// Buffers of such sums, wiped when dropped.
pub(crate) struct Room {
    values: Zeroizing<Vec<u32>>,
    sums: Zeroizing<Vec<u64>>,
    limbs: [Zeroizing<Vec<u32>>; 2],
    out: Zeroizing<Vec<u64>>,
}

impl Default for Room {
    fn default() -> Self {
        let limb = || Zeroizing::new(vec![0; DEGREE]);
        Self {
            values: limb(),
            sums: Zeroizing::new(vec![0; DEGREE]),
            limbs: [limb(), limb()],
            out: Zeroizing::new(vec![0; DEGREE]),
        }
    }
}

impl Room {
    /// Returns the coefficients of `Σ short·factor`, below `q'`; factors are given by values, in
    /// Montgomery form.
    pub(crate) fn sum<'a>(
        &mut self,
        ring: &Packing,
        short: impl Iterator<Item = &'a [i16]> + Clone,
        factors: &[Limbs],
    ) -> &[u64] {
        for (limb, out) in self.limbs.iter_mut().enumerate() {
            self.sums.fill(0);
            for (short, factor) in short.clone().zip(factors) {
                ring.values_of_short(limb, short, &mut self.values);
                ring.accumulate(&mut self.sums, &self.values, &factor[limb]);
            }
            ring.finish(limb, &self.sums, out);
        }
        let pairs = self.limbs[0].iter().zip(self.limbs[1].iter());
        for (out, (&a, &b)) in self.out.iter_mut().zip(pairs) {
            *out = ring.join(a, b);
        }
        &self.out
    }
}

/// Writes the coefficients of an element to its columns of all lanes.
pub(crate) fn spread(out: &mut Matrix<u64>, block: usize, values: impl Iterator<Item = u64>) {
    let columns = out.cols();
    for (n, value) in values.enumerate() {
        let column = block * BLOCK + n % BLOCK;
        if column < columns {
            out.data_mut()[n / BLOCK * columns + column] = value;
        }
    }
}
