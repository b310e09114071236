//! Products in the ring, modulo q and modulo `q'`.

use crate::params::{DEGREE, HINT_BITS, PRIME_BOUND, Q, ROUND_BITS, TERMS};
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::Ntt;
use primer_lattice::prime::{MIN_TWO_ADICITY, Prime, Shoup};
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use std::sync::LazyLock;
use zeroize::Zeroizing;

/// The ring modulo `q' = q_1·q_2`. An element is two polynomials, modulo either prime.
pub struct Packing {
    simd: Simd,
    ntts: [Ntt; 2],
    /// `q_1^-1` modulo `q_2`.
    inverse: Shoup,
    /// `p/q'`, as a fraction of `2^RATIO_BITS`.
    ratio: u64,
}

/// Bits of the fraction.
const RATIO_BITS: u32 = 75;

/// Two limbs of an element of the packing.
pub type Limbs = [Vec<u32>; 2];

/// The ring modulo two 30-bit primes, in which a product of an element modulo q and a ternary one
/// is what it is over the integers.
///
/// Centred coefficients are below `q/2`, and a ternary element whose coefficients are not all of
/// them nonzero adds up less than 2,048 of them: below half of the two primes' product.
pub struct Masks {
    simd: Simd,
    ntts: [Ntt; 2],
    inverse: Shoup,
}

/// Combines residues of two primes to the number below their product.
fn join(ntts: &[Ntt; 2], inverse: Shoup, a: u32, b: u32) -> u64 {
    let [first, second] = [ntts[0].prime(), ntts[1].prime()];
    // `a` may be above the second prime, but not twice.
    let a_second = primer_lattice::prime::reduce_once(a, second.value());
    let step = second.mul_shoup(second.sub(b, a_second), inverse);
    u64::from(a) + u64::from(first.value()) * u64::from(step)
}

fn transforms(primes: [Prime; 2], simd: Simd) -> ([Ntt; 2], Shoup) {
    let [first, second] = primes;
    let inverse = second.shoup(second.invert(first.value() % second.value()));
    (primes.map(|prime| Ntt::new(prime, DEGREE, simd)), inverse)
}

const _: () = {
    // Sums of products stay below what a reduction takes: 2^32·3q, and 64 bits.
    let product = (PRIME_BOUND as u128).pow(2);
    assert!((TERMS as u128 + 1) * product < (3 * PRIME_BOUND as u128 / 2) << 32);
};

impl Packing {
    /// Makes the tables for some instructions.
    pub fn new(simd: Simd) -> Self {
        let mut found = Prime::falling_below(PRIME_BOUND, MIN_TWO_ADICITY);
        let primes = [(); 2].map(|()| found.next().expect("there are many such primes"));
        let (ntts, inverse) = transforms(primes, simd);
        let [first, second] = primes.map(|prime| u128::from(prime.value()));
        Self {
            simd,
            ntts,
            inverse,
            ratio: ((u128::from(P) << RATIO_BITS) / (first * second)) as u64,
        }
    }

    /// Returns the tables for this machine, made once.
    pub fn get() -> &'static Self {
        static RING: LazyLock<Packing> = LazyLock::new(|| Packing::new(Simd::detect()));
        &RING
    }

    /// Returns both primes.
    pub fn primes(&self) -> [Prime; 2] {
        [self.ntts[0].prime(), self.ntts[1].prime()]
    }

    /// Returns `q'`.
    pub fn modulus(&self) -> u64 {
        let [first, second] = self.primes();
        u64::from(first.value()) * u64::from(second.value())
    }

    /// Transforms short coefficients.
    pub fn values_of_short(&self, limb: usize, short: &[i16], out: &mut [u32]) {
        let prime = self.ntts[limb].prime();
        elementwise::from_short(self.simd, prime, out, short);
        self.ntts[limb].forward(out);
    }

    /// Adds products of values to sums that [`Self::finish`] reduces: at most [`TERMS`] and one.
    pub fn accumulate(&self, sums: &mut [u64], a: &[u32], b: &[u32]) {
        elementwise::mul_accumulate(self.simd, sums, a, b);
    }

    /// Reduces sums of products with factors in Montgomery form, to coefficients.
    pub fn finish(&self, limb: usize, sums: &[u64], out: &mut [u32]) {
        elementwise::reduce_sums(self.simd, self.ntts[limb].prime(), out, sums);
        self.ntts[limb].inverse(out);
    }

    /// Brings values to the form that [`Self::finish`] undoes.
    pub fn to_montgomery(&self, limbs: &mut Limbs) {
        for (ntt, values) in self.ntts.iter().zip(limbs) {
            let factor = ntt.prime().shoup(ntt.prime().to_montgomery(1));
            elementwise::scale(self.simd, ntt.prime(), values, factor);
        }
    }

    /// Transforms coefficients below `q'` to a factor of sums: values, in Montgomery form.
    pub fn factor(&self, coefficients: &[u64]) -> Limbs {
        let mut limbs: Limbs = std::array::from_fn(|limb| {
            let prime = self.ntts[limb].prime();
            // Below 2^53: the primes have 27 bits, so this is what a reduction takes.
            let mut values: Vec<u32> = coefficients.iter().map(|&x| prime.reduce60(x)).collect();
            self.ntts[limb].forward(&mut values);
            values
        });
        self.to_montgomery(&mut limbs);
        limbs
    }

    /// Encrypts a sum of short polynomials with factors: coefficients of `public·key + Σ`.
    pub fn encrypt(
        &self,
        public: Limbs,
        key: &[i16],
        terms: &[(Zeroizing<Vec<i16>>, u64)],
    ) -> Vec<u64> {
        let mut values = Zeroizing::new(vec![0; DEGREE]);
        let mut limbs = public;
        for (limb, sum) in limbs.iter_mut().enumerate() {
            let prime = self.ntts[limb].prime();
            self.values_of_short(limb, key, &mut values);
            elementwise::mul_assign(self.simd, prime, sum, &values);
            for (short, times) in terms {
                self.values_of_short(limb, short, &mut values);
                let times = prime.shoup(prime.reduce60(*times));
                elementwise::scale(self.simd, prime, &mut values, times);
                elementwise::add_assign(self.simd, prime, sum, &values);
            }
            self.ntts[limb].inverse(sum);
        }
        let [first, second] = &limbs;
        let pairs = first.iter().zip(second);
        pairs.map(|(&a, &b)| self.join(a, b)).collect()
    }

    /// Returns the number below `q'` with these residues.
    pub fn join(&self, a: u32, b: u32) -> u64 {
        join(&self.ntts, self.inverse, a, b)
    }

    /// Rounds a number below `q'` to the bits of it that are published.
    pub fn publish(&self, x: u64) -> u64 {
        let scaled = (u128::from(x) << HINT_BITS) + u128::from(self.modulus() / 2);
        (scaled / u128::from(self.modulus())) as u64 & ((1 << HINT_BITS) - 1)
    }

    /// Returns the number below `q'` that published bits stand for.
    pub fn expand(&self, x: u64) -> u64 {
        let half = 1 << (HINT_BITS - 1);
        ((u128::from(x) * u128::from(self.modulus()) + half) >> HINT_BITS) as u64
    }

    /// Returns the representative between `-q'/2` and `q'/2`.
    pub fn centred(&self, x: u64) -> i64 {
        centred(x, self.modulus())
    }

    /// Adds a number smaller than `q'` in absolute value to one below `q'`, modulo `q'`.
    pub fn add_signed(&self, x: u64, small: i64) -> u64 {
        let modulus = self.modulus();
        let sum = (x + modulus).wrapping_add_signed(small);
        let twice = sum - (modulus & u64::from(sum >= modulus).wrapping_neg());
        twice - (modulus & u64::from(twice >= modulus).wrapping_neg())
    }

    /// Rounds a number below `q'` to its share of p: `⌊x·p/q'⌉` modulo p.
    pub fn to_share(&self, x: u64) -> u64 {
        let half = 1 << (RATIO_BITS - 1);
        let rounded = ((u128::from(x) * u128::from(self.ratio) + half) >> RATIO_BITS) as u64;
        let over = u64::from(rounded >= P).wrapping_neg();
        rounded - (P & over)
    }
}

impl Masks {
    /// Makes the tables for some instructions.
    pub fn new(simd: Simd) -> Self {
        let found: [Prime; 2] = Prime::largest(2).try_into().expect("two of them");
        let (ntts, inverse) = transforms(found, simd);
        Self {
            simd,
            ntts,
            inverse,
        }
    }

    /// Returns the tables for this machine, made once.
    pub fn get() -> &'static Self {
        static RING: LazyLock<Masks> = LazyLock::new(|| Masks::new(Simd::detect()));
        &RING
    }

    /// Transforms a ternary secret, once for all products with it.
    pub fn secret(&self, small: &[i8]) -> [Zeroizing<Vec<u32>>; 2] {
        std::array::from_fn(|limb| {
            let prime = self.ntts[limb].prime();
            let mut values = Zeroizing::new(vec![0; DEGREE]);
            elementwise::from_small(self.simd, prime, &mut values, small);
            self.ntts[limb].forward(&mut values);
            values
        })
    }

    /// Multiplies an element modulo q by a secret; the element becomes the product, modulo q.
    pub fn multiply(&self, element: &mut [u64], secret: &[Zeroizing<Vec<u32>>; 2]) {
        let limbs: [Zeroizing<Vec<u32>>; 2] = std::array::from_fn(|limb| {
            let prime = self.ntts[limb].prime();
            // Centred: below 2^48 in absolute value.
            let residues = element
                .iter()
                .map(|&x| prime.from_signed_wide(centred(x, Q)));
            let mut values = Zeroizing::new(residues.collect::<Vec<u32>>());
            self.ntts[limb].forward(&mut values);
            elementwise::mul_assign(self.simd, prime, &mut values, &secret[limb]);
            self.ntts[limb].inverse(&mut values);
            values
        });
        let [first, second] = [self.ntts[0].prime(), self.ntts[1].prime()];
        let all = u64::from(first.value()) * u64::from(second.value());
        let pairs = limbs[0].iter().zip(limbs[1].iter());
        for (x, (&a, &b)) in element.iter_mut().zip(pairs) {
            *x = modulo_q(centred(join(&self.ntts, self.inverse, a, b), all));
        }
    }
}

/// Returns the representative of `x` modulo `m` between `-m/2` and `m/2`.
fn centred(x: u64, m: u64) -> i64 {
    let above = u64::from(x > m / 2).wrapping_neg();
    x.wrapping_sub(m & above) as i64
}

/// Reduces modulo q: the part above the rounded bits modulo p, the rounded bits as they are.
fn modulo_q(x: i64) -> u64 {
    let low = x as u64 & ((1 << ROUND_BITS) - 1);
    modulus::from_signed(x >> ROUND_BITS) << ROUND_BITS | low
}

/// Rounds a dithered mask: uniform modulo q before, uniform modulo p after.
pub fn round_mask(x: u64, dither: u64) -> u64 {
    let sum = x + dither;
    let over = u64::from(sum >= Q).wrapping_neg();
    (sum - (Q & over)) >> ROUND_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_lattice::sample::ternary;
    use primer_ring::prg::Prg;
    use rand_core::Rng;

    /// Computes the product by its definition.
    fn negacyclic(a: &[i128], b: &[i128], modulus: i128) -> Vec<u64> {
        let mut out = vec![0i128; DEGREE];
        for (i, x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
            for (j, y) in b.iter().enumerate() {
                let (at, sign) = match i + j < DEGREE {
                    true => (i + j, 1),
                    false => (i + j - DEGREE, -1),
                };
                out[at] += sign * x * y;
            }
        }
        out.iter().map(|x| x.rem_euclid(modulus) as u64).collect()
    }

    #[test]
    fn masks_are_products_modulo_q_on_every_machine() {
        let rng = &mut Prg::new(&[1; 16]);
        let element: Vec<u64> = (0..DEGREE).map(|_| rng.next_u64() % Q).collect();
        let secret = ternary(rng, DEGREE);
        let wide: Vec<i128> = element.iter().map(|&x| x.into()).collect();
        let small: Vec<i128> = secret.iter().map(|&x| x.into()).collect();
        let expected = negacyclic(&small, &wide, Q.into());
        for simd in Simd::available() {
            let ring = Masks::new(simd);
            let mut product = element.clone();
            ring.multiply(&mut product, &ring.secret(&secret));
            assert_eq!(product, expected);
        }
    }

    #[test]
    fn sums_are_products_modulo_the_packing_on_every_machine() {
        let rng = &mut Prg::new(&[2; 16]);
        for simd in Simd::available() {
            let ring = Packing::new(simd);
            let modulus = ring.modulus();
            assert!(modulus >> crate::params::PACKING_BITS == 0);
            let mut room = crate::room::Room::default();
            let mut expected = vec![0; DEGREE];
            let (mut shorts, mut factors) = (Vec::new(), Vec::new());
            // As many terms as there ever are, extreme ones among them.
            for term in 0..=TERMS {
                let draw = |_| match term {
                    0 => i16::MIN,
                    1 => i16::MAX,
                    _ => (rng.next_u32() % 8192) as i16 - 4096,
                };
                let short: Vec<i16> = (0..DEGREE).map(draw).collect();
                let draw = |_| match term {
                    0 | 1 => modulus - 1,
                    _ => rng.next_u64() % modulus,
                };
                let factor: Vec<u64> = (0..DEGREE).map(draw).collect();
                let [a, b] = [
                    short.iter().map(|&x| x.into()).collect::<Vec<i128>>(),
                    factor.iter().map(|&x| x.into()).collect(),
                ];
                let product = negacyclic(&a, &b, modulus.into());
                let sums = expected.iter_mut().zip(product);
                sums.for_each(|(sum, x)| *sum = (*sum + x) % modulus);
                shorts.push(short);
                factors.push(ring.factor(&factor));
            }
            let found = room.sum(&ring, shorts.iter().map(Vec::as_slice), &factors);
            assert_eq!(found, expected);
        }
    }

    /// Checks that rounding by a divisor of the modulus takes every residue equally often.
    #[test]
    fn dithered_rounding_is_exact() {
        for (x, dither, expected) in [
            (0, 0, 0),
            (255, 0, 0),
            (255, 1, 1),
            (Q - 1, 0, P - 1),
            (Q - 1, 1, 0),
            (Q - 256, 255, P - 1),
        ] {
            assert_eq!(round_mask(x, dither), expected, "{x} {dither}");
        }
    }

    #[test]
    fn shares_of_the_packing_round_to_nearest() {
        let ring = Packing::get();
        let modulus = ring.modulus();
        assert_eq!(ring.to_share(0), 0);
        assert_eq!(ring.to_share(modulus - 1), 0, "that is minus a fraction");
        let rng = &mut Prg::new(&[3; 16]);
        for _ in 0..1000 {
            let x = rng.next_u64() % modulus;
            let exact = (u128::from(x) * u128::from(P) * 2 + u128::from(modulus))
                / (2 * u128::from(modulus));
            let off = modulus::sub(ring.to_share(x), (exact % u128::from(P)) as u64);
            assert!(modulus::to_signed(off).abs() <= 1);
        }
    }
}
