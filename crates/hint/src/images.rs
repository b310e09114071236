//! Weights times public elements: what a hint is made of.
//!
//! Coefficient `n` of `V_j = Σ_i w_ij·A_i` is the inner product of column `j` of the weights with
//! coefficient `n` of `X^-f·A_i` for all features. So all `V_j` together are one product of
//! matrices. It is taken modulo p, by the kernel of the online phase, and modulo `2^8`, which
//! together are modulo q.

use crate::params::{BLOCK, DEGREE, Q, ROUND_BITS};
use crate::public::{Name, mask};
use primer_ring::matrix::{Matrix, Packed, Scratch, product_mod};
use primer_ring::modulus::{self, P};
use zeroize::{Zeroize, Zeroizing};

/// Features that are multiplied at once: 32 MB of turned elements.
const AT_ONCE: usize = 1024;
const _: () = {
    assert!(AT_ONCE.is_multiple_of(BLOCK));
    // Sums of low bits times 16-bit weights stay integers.
    assert!((AT_ONCE as u64) << (ROUND_BITS + 15) < P / 2);
    // The multiple of p that joins the two parts is their difference.
    assert!(P % (1 << ROUND_BITS) == 1);
};

/// Returns `V_j` for all outputs, modulo q: `[coefficient][output]`.
pub(crate) fn images(name: &Name, value: u32, weights: &Matrix<i16>) -> Zeroizing<Vec<u64>> {
    let outputs = weights.cols();
    let mut scratch = Scratch::default();
    let mut sums = Zeroizing::new(vec![0; DEGREE * outputs]);
    let parts = weights.data().chunks(AT_ONCE * outputs.max(1));
    for (index, part) in parts.enumerate() {
        let features = part.len() / outputs;
        let part = Packed::new(&Matrix::from_vec(features, outputs, part.to_vec()));
        let [large, small] = turned(name, value, index * AT_ONCE / BLOCK, features);
        let mut large = product_mod(&large, &part, &mut scratch);
        let mut small = product_mod(&small, &part, &mut scratch);
        let pairs = large.data().iter().zip(small.data());
        for (sum, (&x, &low)) in sums.iter_mut().zip(pairs) {
            let low = modulus::to_signed(low) as u64;
            let image = x + P * (low.wrapping_sub(x) & ((1 << ROUND_BITS) - 1));
            let both = *sum + image;
            *sum = both - (Q & u64::from(both >= Q).wrapping_neg());
        }
        large.data_mut().zeroize();
        small.data_mut().zeroize();
    }
    sums
}

/// Returns coefficient `n` of `X^-f·A`, for all `n` and all columns of some blocks, modulo p and
/// modulo `2^ROUND_BITS`.
fn turned(name: &Name, value: u32, first: usize, features: usize) -> [Matrix<u64>; 2] {
    let mut parts = [(); 2].map(|()| Matrix::<u64>::zeros(DEGREE, features));
    let [large, small] = parts.each_mut().map(Matrix::data_mut);
    for block in 0..features.div_ceil(BLOCK) {
        let element = mask(name, value, (first + block) as u32);
        for f in 0..BLOCK.min(features - block * BLOCK) {
            for n in 0..DEGREE {
                let x = match n + f < DEGREE {
                    true => element[n + f],
                    false => (Q - element[n + f - DEGREE]) % Q,
                };
                let at = n * features + block * BLOCK + f;
                large[at] = modulus::reduce(x);
                small[at] = x & ((1 << ROUND_BITS) - 1);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    /// Compares with the definition, for more features than are multiplied at once.
    #[test]
    fn images_are_sums_of_turned_elements() {
        let rng = &mut Prg::new(&[1; 16]);
        let (features, outputs) = (AT_ONCE + 11, 3);
        let mut weights = Matrix::<i16>::zeros(features, outputs);
        weights
            .data_mut()
            .fill_with(|| (rng.next_u32() >> 17) as i16 - (1 << 14));
        let name = [2; 32];
        let found = images(&name, 9, &weights);
        for n in [0, 1, 1000, DEGREE - 3, DEGREE - 1] {
            for j in 0..outputs {
                let mut sum = 0i128;
                for i in 0..features {
                    let element = mask(&name, 9, (i / BLOCK) as u32);
                    let at = n + i % BLOCK;
                    let x = match at < DEGREE {
                        true => i128::from(element[at]),
                        false => -i128::from(element[at - DEGREE]),
                    };
                    sum += i128::from(weights.get(i, j)) * x;
                }
                let expected = sum.rem_euclid(i128::from(Q)) as u64;
                assert_eq!(found[n * outputs + j], expected, "{n} {j}");
            }
        }
    }
}
