//! An outgoing ciphertext: a fresh encryption of zero is added to it by values, and both halves
//! become coefficients.
//!
//! Sums, keys and `u` are read once, from outer caches, and the first layers follow while the
//! numbers are in registers, for both halves with the same factors.

use super::Ntt;
use crate::kernel::elementwise;
#[cfg(target_arch = "x86_64")]
use crate::simd::Level;

/// A ciphertext modulo one prime and the encryption of zero `(b·u, a·u + e)`. All numbers are
/// reduced.
pub struct Masked<'a> {
    /// Both halves by values.
    pub halves: [&'a [u32]; 2],
    /// `b` and `a` by values.
    pub keys: [&'a [u32]; 2],
    /// `u` by values, and its quotients as [`elementwise::quotients`] computes them.
    pub u: [&'a [u32]; 2],
    /// `e` by coefficients.
    pub error: &'a [i8],
}

impl Masked<'_> {
    /// Returns the slices that values are read from.
    fn values(&self) -> [&[u32]; 6] {
        let ([c0, c1], [b, a], [u, quotients]) = (self.halves, self.keys, self.u);
        [c0, c1, b, a, u, quotients]
    }
}

impl Ntt {
    /// Computes the coefficients of both halves, reduced: those of the second with the error.
    ///
    /// # Panics
    /// If the slices have other lengths.
    pub fn inverse_masked(&self, masked: &Masked<'_>, first: &mut [u32], second: &mut [u32]) {
        let n = self.degree;
        assert!(masked.values().iter().all(|values| values.len() == n));
        assert!(masked.error.len() == n && first.len() == n && second.len() == n);
        match self.simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => super::avx2::inverse_masked(self, masked, first, second),
            _ => {
                let [u, quotients] = masked.u;
                for (i, out) in [&mut *first, &mut *second].into_iter().enumerate() {
                    let (from, key) = (masked.halves[i], masked.keys[i]);
                    let (simd, prime) = (self.simd, self.prime);
                    elementwise::mul_shoup_onto(simd, prime, out, from, key, u, quotients);
                }
                self.inverse(first);
                self.inverse(second);
                elementwise::add_small(self.simd, self.prime, second, masked.error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::Prime;
    use crate::simd::Simd;
    use primer_ring::prg::Prg;
    use proptest::prelude::*;
    use rand_core::Rng;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn is_a_product_a_sum_and_an_inverse(
            log in 6u32..=13,
            which in 0usize..4,
            seed in any::<[u8; 16]>(),
        ) {
            let n = 1usize << log;
            let prime = Prime::largest(4)[which];
            let mut rng = Prg::new(&seed);
            let q = prime.value();
            // The largest residue now and then.
            let mut draw = || -> Vec<u32> {
                (0..n).map(|_| (rng.next_u32() % (q + q / 8)).min(q - 1)).collect()
            };
            let (c0, c1, b, a, u) = (draw(), draw(), draw(), draw(), draw());
            let error: Vec<i8> = (0..n).map(|i| ((u[i] % 43) as i32 - 21) as i8).collect();
            let plain = Ntt::new(prime, n, Simd::portable());
            let want: [Vec<u32>; 2] = [(&c0, &b), (&c1, &a)].map(|(half, key)| {
                let each = half.iter().zip(key).zip(&u);
                let mut sum: Vec<u32> = each
                    .map(|((&x, &k), &u)| prime.add(x, prime.mul(k, u)))
                    .collect();
                plain.inverse(&mut sum);
                sum
            });
            for simd in Simd::available() {
                let ntt = Ntt::new(prime, n, simd);
                let mut quotients = vec![0; n];
                elementwise::quotients(simd, prime, &mut quotients, &u);
                let masked = Masked {
                    halves: [&c0, &c1],
                    keys: [&b, &a],
                    u: [&u, &quotients],
                    error: &error,
                };
                let (mut first, mut second) = (vec![7; n], vec![7; n]);
                ntt.inverse_masked(&masked, &mut first, &mut second);
                for i in 0..n {
                    let with_error = prime.add(want[1][i], prime.from_signed(error[i].into()));
                    prop_assert_eq!(second[i], with_error);
                }
                prop_assert_eq!(&first, &want[0]);
            }
        }
    }

    #[test]
    fn quotients_are_short_by_one_at_most() {
        for prime in [Prime::largest(1)[0], Prime::largest(6)[5]] {
            let q = prime.value();
            let values: Vec<u32> = (0..5000).chain(q - 5000..q).collect();
            for simd in Simd::available() {
                let mut got = vec![0; values.len()];
                elementwise::quotients(simd, prime, &mut got, &values);
                for (&value, &got) in values.iter().zip(&got) {
                    assert!(prime.shoup(value).quotient.wrapping_sub(got) <= 1);
                }
            }
        }
    }
}
