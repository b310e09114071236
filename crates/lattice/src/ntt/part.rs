//! Some coefficients of a polynomial that is given by values.
//!
//! # Which
//! With `Y = X^T`, those of `X^t·Y^(k·o)` for all `t < T` and `o < m`: the results of products
//! without rotations, a few in a hundred of all. A whole inverse transform computes the others for
//! nothing.
//!
//! # How
//! `k` is a power of two `D` times an odd number. After the layers inside the runs of `T` values,
//! each run holds the values of `T` polynomials in `Y` at one point.
//!
//! 1. Runs are taken in another order: the value at `ζ^(e/odd)` in the place of that at `ζ^e`. The
//!    polynomial then has the coefficient of `Y^(k·o)` at `Y^(D·o)`, with its sign, since
//!    `k·o/odd = D·o` modulo `2F`.
//! 2. Of a layer whose lower outputs alone are wanted, only sums are left: each `D` consecutive
//!    runs are added up.
//! 3. Of what is left, all layers are needed that lead to the first `J ≥ m` powers, on each of
//!    `F/(D·J)` blocks; and again only sums of the last ones, so the blocks are added up.
//!
//! For 32 tokens, `k = 23` and `m = 11` that is nine of thirteen layers and some additions.

use super::bit_reverse;

/// Which coefficients of a polynomial are wanted.
pub struct Part {
    pub(super) degree: usize,
    /// `T`.
    pub(super) run: usize,
    /// `k`, and the power of two `D` in it.
    step: usize,
    pub(super) skip: usize,
    /// `m`, and `J`, a power of two.
    count: usize,
    pub(super) kept: usize,
    /// Which run comes in the place of each.
    pub(super) order: Vec<u32>,
}

impl Part {
    /// The coefficients of `X^(t + run·step·o)` for `t < run` and `o < count` of polynomials of a
    /// degree.
    ///
    /// # Panics
    /// If degree and run are not powers of two, or if there are no such coefficients.
    pub fn new(degree: usize, run: usize, step: usize, count: usize) -> Self {
        assert!(degree.is_power_of_two() && run.is_power_of_two());
        assert!(step > 0 && count > 0 && run * step * count <= degree);
        let points = degree / run;
        let skip = 1 << step.trailing_zeros();
        let (log, mask) = (points.trailing_zeros(), 2 * points - 1);
        // Newton's step doubles the number of correct low bits.
        let odd = step / skip;
        let inverse = (0..6).fold(1usize, |x, _| {
            x.wrapping_mul(2usize.wrapping_sub(odd.wrapping_mul(x)))
        });
        let order = (0..points).map(|f| {
            let exponent = (2 * bit_reverse(f, log) + 1).wrapping_mul(inverse) & mask;
            bit_reverse(exponent / 2, log) as u32
        });
        Self {
            degree,
            run,
            step,
            skip,
            count,
            kept: count.next_power_of_two(),
            order: order.collect(),
        }
    }

    /// Numbers that [`super::Ntt::inverse_part`] needs room for.
    pub fn room(&self) -> usize {
        self.degree / self.skip
    }

    /// The definition: takes the coefficients out of all.
    pub(super) fn pick(&self, a: &[u32], out: &mut [u32]) {
        let all = a.chunks_exact(self.run).step_by(self.step);
        for (out, from) in out.chunks_exact_mut(self.run).zip(all).take(self.count) {
            out.copy_from_slice(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ntt;
    use super::*;
    use crate::prime::Prime;
    use crate::simd::Simd;
    use primer_ring::prg::Prg;
    use proptest::prelude::*;
    use rand_core::Rng;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn are_those_of_the_whole(
            log in 6u32..=13,
            run in 0u32..=9,
            step in 1usize..200,
            count in 1usize..100,
            seed in any::<[u8; 16]>(),
        ) {
            let (degree, run) = (1usize << log, 1 << run.min(log));
            let step = step.min(degree / run);
            let count = count.min(degree / run / step);
            let part = Part::new(degree, run, step, count);
            let prime = Prime::largest(4)[count % 4];
            let mut rng = Prg::new(&seed);
            // Input may be lazy by one prime.
            let twice = 2 * prime.value();
            let values: Vec<u32> = (0..degree).map(|_| rng.next_u32() % twice).collect();
            for simd in Simd::available() {
                let ntt = Ntt::new(prime, degree, simd);
                let mut whole = values.clone();
                ntt.inverse(&mut whole);
                let (mut a, mut out) = (values.clone(), vec![7; part.room()]);
                ntt.inverse_part(&part, &mut a, &mut out);
                for o in 0..count {
                    let want = &whole[run * step * o..][..run];
                    prop_assert_eq!(&out[run * o..][..run], want, "{:?} {}", simd, o);
                }
            }
        }
    }

    #[test]
    #[should_panic]
    fn beyond_the_polynomial_there_are_none() {
        Part::new(64, 8, 3, 3);
    }
}
