//! The negacyclic number-theoretic transform modulo one 30-bit prime.
//!
//! It maps a polynomial modulo `X^N + 1` to its values at the `N` primitive `2N`-th roots of unity,
//! where products are element-wise. With `ψ` such a root, output `i` is the value at
//! `ψ^(2·brv(i)+1)`, `brv` reversing `log N` bits: neither direction has to reorder anything.
//! Two facts follow from this order and are used throughout the crate:
//!
//! * a polynomial in `X^R` has the same value at `R` consecutive outputs (weights are stored once
//!   per run of `R`);
//! * an automorphism `X -> X^g` moves whole groups of eight consecutive outputs and permutes inside
//!   each (rotations are block moves).
//!
//! Butterflies are Harvey's, with Shoup factors: values stay below `4q < 2^32` between layers and
//! are reduced once at the end. The AVX2 form does two layers per pass over memory and the last
//! five in registers.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod masked;
mod portable;

pub use masked::Masked;

use crate::prime::{Prime, Shoup};
use crate::simd::{Level, Simd};

/// The smallest degree: one layer and a final block of the vector form.
pub const MIN_DEGREE: usize = 64;
/// The largest degree. Beyond 16,384 the prime must have a root of that order; see
/// [`Prime::falling`].
pub const MAX_DEGREE: usize = 1 << 17;

/// Tables of one transform.
pub struct Ntt {
    prime: Prime,
    degree: usize,
    simd: Simd,
    /// `ψ^brv(i)` at index `i`, for the forward layers.
    roots: Roots,
    /// `ψ^-brv(i)` at index `i`.
    inverse_roots: Roots,
    /// `1/N`, and `1/N` times the factor of the last inverse layer.
    scale: Shoup,
    scale_last: Shoup,
    /// The factors of the last three forward layers in the order in which vectors use them.
    tail: Vec<u32>,
    inverse_tail: Vec<u32>,
}

/// Factors and their Shoup quotients, in separate vectors: they are loaded separately.
struct Roots {
    values: Vec<u32>,
    quotients: Vec<u32>,
}

impl Roots {
    fn new(prime: Prime, root: u32, degree: usize) -> Self {
        let log = degree.trailing_zeros();
        let mut values = vec![0; degree];
        let mut power = 1;
        for i in 0..degree {
            values[bit_reverse(i, log)] = power;
            power = prime.mul(power, root);
        }
        let quotients = values.iter().map(|&v| prime.shoup(v).quotient).collect();
        Self { values, quotients }
    }

    fn get(&self, i: usize) -> Shoup {
        Shoup {
            value: self.values[i],
            quotient: self.quotients[i],
        }
    }

    /// Returns the factors of the layers of stride 4, 2 and 1 for each 16 coefficients as 8-lane
    /// vectors, values then quotients: the lane order is that of the shuffles in the vector form.
    fn tail(&self, degree: usize) -> Vec<u32> {
        let mut tail = Vec::with_capacity(degree * 3);
        for pair in 0..degree / 16 {
            let groups = |per_eight: usize, lanes: [usize; 4]| {
                [0, 1].into_iter().flat_map(move |half| {
                    let first = degree / 8 * per_eight + (2 * pair + half) * per_eight;
                    lanes.map(|lane| first + lane)
                })
            };
            for (per_eight, lanes) in [(1, [0; 4]), (2, [0, 0, 1, 1]), (4, [0, 2, 1, 3])] {
                tail.extend(groups(per_eight, lanes).map(|i| self.values[i]));
                tail.extend(groups(per_eight, lanes).map(|i| self.quotients[i]));
            }
        }
        tail
    }
}

/// Returns the low `bits` bits of `i`, reversed.
pub fn bit_reverse(i: usize, bits: u32) -> usize {
    if bits == 0 {
        return 0;
    }
    i.reverse_bits() >> (usize::BITS - bits)
}

impl Ntt {
    /// Makes a transform of a power-of-two degree with the root of the largest transform of this
    /// prime, raised as needed, so that the transforms of different degrees fit each other.
    ///
    /// # Panics
    /// If the degree is not a power of two between [`MIN_DEGREE`] and [`MAX_DEGREE`], or the prime
    /// has no root for it.
    pub fn new(prime: Prime, degree: usize, simd: Simd) -> Self {
        assert!(degree.is_power_of_two() && (MIN_DEGREE..=MAX_DEGREE).contains(&degree));
        // All roots of a prime are powers of one non-residue, so this one is that of the largest
        // transform, raised.
        let psi = prime.root_of_unity(degree.trailing_zeros() + 1);
        let roots = Roots::new(prime, psi, degree);
        let inverse_roots = Roots::new(prime, prime.invert(psi), degree);
        Self::from_roots(prime, simd, roots, inverse_roots)
    }

    /// Makes the layers after the first that lead to the first half of the outputs of a transform
    /// of twice the degree.
    ///
    /// # Panics
    /// If the degree is not a power of two between 16 and 8,192.
    pub fn first_half(prime: Prime, degree: usize, simd: Simd) -> Self {
        assert!(degree >= MIN_DEGREE / 4);
        // The vector form starts at a degree of its own.
        let simd = if degree < MIN_DEGREE {
            Simd::portable()
        } else {
            simd
        };
        let whole = Self::new(prime, (2 * degree).max(MIN_DEGREE), Simd::portable());
        // The half starts at node 2 of the tree of groups. Where the tree is that of a larger
        // transform, its upper part is the same.
        let half = |roots: &Roots| {
            let node = |k: usize| k.checked_ilog2().map_or(0, |log| k + (1 << log));
            Roots {
                values: (0..degree).map(|k| roots.values[node(k)]).collect(),
                quotients: (0..degree).map(|k| roots.quotients[node(k)]).collect(),
            }
        };
        let (roots, inverse_roots) = (half(&whole.roots), half(&whole.inverse_roots));
        Self::from_roots(prime, simd, roots, inverse_roots)
    }

    /// Returns the factor of the first layer, the same for every degree: a square root of -1.
    pub fn quarter_turn(prime: Prime) -> u32 {
        Self::new(prime, MIN_DEGREE, Simd::portable()).roots.values[1]
    }

    fn from_roots(prime: Prime, simd: Simd, roots: Roots, inverse_roots: Roots) -> Self {
        let degree = roots.values.len();
        let scale = prime.invert(degree as u32);
        Self {
            prime,
            degree,
            simd,
            tail: roots.tail(degree),
            inverse_tail: inverse_roots.tail(degree),
            scale: prime.shoup(scale),
            scale_last: prime.shoup(prime.mul(scale, inverse_roots.values[1])),
            roots,
            inverse_roots,
        }
    }

    /// Returns the prime.
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// Returns the degree `N`.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Transforms coefficients to values. Input may be lazy, below `4q`; output is reduced.
    ///
    /// # Panics
    /// If the slice is not one polynomial.
    pub fn forward(&self, a: &mut [u32]) {
        assert_eq!(a.len(), self.degree);
        match self.simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::forward(self, a),
            _ => portable::forward(self, a),
        }
    }

    /// Transforms coefficients from another slice, which saves a pass over memory.
    ///
    /// # Panics
    /// If the slices are not one polynomial each.
    pub fn forward_from(&self, from: &[u32], a: &mut [u32]) {
        assert!(from.len() == self.degree && a.len() == self.degree);
        match self.simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::forward_from(self, from, a),
            _ => {
                a.copy_from_slice(from);
                portable::forward(self, a);
            }
        }
    }

    /// Transforms values to coefficients. Input must be below `2q`; output is reduced.
    ///
    /// # Panics
    /// If the slice is not one polynomial.
    pub fn inverse(&self, a: &mut [u32]) {
        assert_eq!(a.len(), self.degree);
        match self.simd.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::inverse(self, a),
            _ => portable::inverse(self, a),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(prime: Prime, degree: usize, mut state: u64) -> Vec<u32> {
        (0..degree)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                (state >> 34) as u32 % prime.value()
            })
            .collect()
    }

    #[test]
    fn outputs_are_values_at_the_stated_roots() {
        let prime = Prime::largest(3)[2];
        for simd in Simd::available() {
            let ntt = Ntt::new(prime, 64, simd);
            let psi = prime.pow(prime.root_of_unity(15), 1 << 8);
            let a = sample(prime, 64, 5);
            let mut values = a.clone();
            ntt.forward(&mut values);
            for i in 0..64 {
                let x = prime.pow(psi, (2 * bit_reverse(i, 6) + 1) as u64);
                let want = a
                    .iter()
                    .rev()
                    .fold(0, |acc, &c| prime.add(prime.mul(acc, x), c));
                assert_eq!(values[i], want, "{simd:?} at {i}");
            }
        }
    }

    #[test]
    fn small_transforms_are_runs_of_large_ones() {
        let prime = Prime::largest(1)[0];
        let (small, large) = (
            Ntt::new(prime, 64, Simd::portable()),
            Ntt::new(prime, 1024, Simd::portable()),
        );
        let a = sample(prime, 64, 9);
        let mut spread = vec![0; 1024];
        for (i, &c) in a.iter().enumerate() {
            spread[16 * i] = c;
        }
        let mut values = a;
        small.forward(&mut values);
        large.forward(&mut spread);
        assert!((0..1024).all(|i| spread[i] == values[i / 16]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn vector_and_portable_forms_agree(
            log in 6u32..=17,
            which in 0usize..7,
            seed in any::<u64>(),
        ) {
            let two_adicity = crate::prime::TWO_ADICITY.max(log + 1);
            let prime = Prime::falling(two_adicity).nth(which).unwrap();
            let degree = 1 << log;
            let a: Vec<u32> = sample(prime, degree, seed);
            // The forward transform takes input up to 4q.
            let q = prime.value();
            let lift = |x: u32| x + (x % 4).min((u32::MAX - x) / q) * q;
            let lifted: Vec<u32> = a.iter().map(|&x| lift(x)).collect();
            let portable = Ntt::new(prime, degree, Simd::portable());
            let mut want = a.clone();
            portable.forward(&mut want);
            for simd in Simd::available() {
                let ntt = Ntt::new(prime, degree, simd);
                let mut got = lifted.clone();
                ntt.forward(&mut got);
                prop_assert_eq!(&got, &want);
                let mut apart = vec![7; degree];
                ntt.forward_from(&lifted, &mut apart);
                prop_assert_eq!(&apart, &want);
                ntt.inverse(&mut got);
                prop_assert_eq!(&got, &a);
                // Inverse input may be lazy by one prime.
                let mut lazy: Vec<u32> = want.iter().map(|&x| x + q * (x & 1)).collect();
                ntt.inverse(&mut lazy);
                prop_assert_eq!(&lazy, &a);
            }
        }
    }
}
