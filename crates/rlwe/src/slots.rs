//! Slots: how a vector of residues modulo p becomes a plaintext polynomial.
//!
//! The plaintext ring `Z_p[X]/(X^N+1)` splits into `N` copies of `Z_p`, since `p ≡ 1 (mod 2N)`.
//! Slot `s` of row 0 is the value at `ψ^(3^s)`, slot `s` of row 1 the value at `ψ^(-3^s)`, for `s`
//! below `N/2`. The automorphism `X -> X^(3^r)` then rotates both rows by `r` to the left: what was
//! in slot `s + r` comes to slot `s`.
//!
//! The transform is the one of [`primer_lattice::ntt`], modulo the 41-bit `p` and in plain Rust: it
//! runs a few times per matrix, on 64-bit words, with no branch on the values.

use primer_lattice::automorphism::GENERATOR;
use primer_lattice::ntt::bit_reverse;
use primer_ring::modulus::{self, P};

/// A factor modulo p with its Shoup quotient `⌊w·2^64/p⌋`.
#[derive(Clone, Copy)]
pub struct Factor {
    value: u64,
    quotient: u64,
}

impl Factor {
    /// Returns the factor of a residue.
    pub fn new(value: u64) -> Self {
        Self {
            value,
            quotient: ((u128::from(value) << 64) / u128::from(P)) as u64,
        }
    }

    /// Returns `a·w` up to one `p`.
    #[inline(always)]
    pub fn mul_lazy(self, a: u64) -> u64 {
        let quotient = ((u128::from(a) * u128::from(self.quotient)) >> 64) as u64;
        a.wrapping_mul(self.value)
            .wrapping_sub(quotient.wrapping_mul(P))
    }
}

/// Returns what is left of a number below `2·m` when `m` is taken off, if it can be.
#[inline(always)]
pub fn reduce_once(x: u64, m: u64) -> u64 {
    x.min(x.wrapping_sub(m))
}

/// Slots of one ring degree.
pub struct Slots {
    degree: usize,
    roots: Vec<Factor>,
    inverse_roots: Vec<Factor>,
    scale: Factor,
    /// Transform position of each slot, row 0 then row 1.
    positions: Vec<u32>,
}

impl Slots {
    /// Returns the slots of a power-of-two degree.
    ///
    /// # Panics
    /// If p has no root of that order.
    pub fn new(degree: usize) -> Self {
        assert!(degree.is_power_of_two() && (P - 1).is_multiple_of(2 * degree as u64));
        let psi = modulus::pow(modulus::GENERATOR, (P - 1) / (2 * degree as u64));
        let log = degree.trailing_zeros();
        let table = |root: u64| {
            let mut table = vec![Factor::new(0); degree];
            let mut power = 1;
            for i in 0..degree {
                table[bit_reverse(i, log)] = Factor::new(power);
                power = modulus::mul(power, root);
            }
            table
        };
        let invert = |x| modulus::pow(x, P - 2);
        let mut positions = vec![0; degree];
        let mut e = 1;
        for s in 0..degree / 2 {
            for (row, e) in [e, 2 * degree - e].into_iter().enumerate() {
                positions[row * degree / 2 + s] = bit_reverse((e - 1) / 2, log) as u32;
            }
            e = e * GENERATOR % (2 * degree);
        }
        Self {
            degree,
            roots: table(psi),
            inverse_roots: table(invert(psi)),
            scale: Factor::new(invert(degree as u64)),
            positions,
        }
    }

    /// Writes the coefficients of slot values (row 0, then row 1) into `out`.
    ///
    /// # Panics
    /// If a slice has another length than the degree.
    pub fn encode(&self, slots: &[u64], out: &mut [u64]) {
        assert!(slots.len() == self.degree && out.len() == self.degree);
        for (&v, &at) in slots.iter().zip(&self.positions) {
            out[at as usize] = v;
        }
        let (mut stride, mut groups) = (1, self.degree / 2);
        while groups > 0 {
            for (g, chunk) in out.chunks_exact_mut(2 * stride).enumerate() {
                let w = self.inverse_roots[groups + g];
                let (xs, ys) = chunk.split_at_mut(stride);
                for (x, y) in xs.iter_mut().zip(ys) {
                    let (u, v) = (*x, *y);
                    *x = reduce_once(u + v, 2 * P);
                    *y = w.mul_lazy(u + 2 * P - v);
                }
            }
            stride *= 2;
            groups /= 2;
        }
        for x in out {
            *x = reduce_once(self.scale.mul_lazy(*x), P);
        }
    }

    /// Writes the slot values of coefficients, which are overwritten, into `slots`.
    ///
    /// # Panics
    /// If a slice has another length than the degree.
    pub fn decode(&self, coefficients: &mut [u64], slots: &mut [u64]) {
        assert!(slots.len() == self.degree && coefficients.len() == self.degree);
        let (mut stride, mut groups) = (self.degree / 2, 1);
        while stride > 0 {
            for (g, chunk) in coefficients.chunks_exact_mut(2 * stride).enumerate() {
                let w = self.roots[groups + g];
                let (xs, ys) = chunk.split_at_mut(stride);
                for (x, y) in xs.iter_mut().zip(ys) {
                    let u = reduce_once(*x, 2 * P);
                    let v = w.mul_lazy(*y);
                    *x = u + v;
                    *y = u + 2 * P - v;
                }
            }
            stride /= 2;
            groups *= 2;
        }
        for (slot, &at) in slots.iter_mut().zip(&self.positions) {
            *slot = reduce_once(reduce_once(coefficients[at as usize], 2 * P), P);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_lattice::automorphism::rotation;
    use primer_ring::prg::Prg;

    #[test]
    fn products_and_rotations_are_slot_wise() {
        let n = 64;
        let slots = Slots::new(n);
        let mut rng = Prg::new(&[1; 16]);
        let mut draw = || -> Vec<u64> { (0..n).map(|_| modulus::random(&mut rng)).collect() };
        let (a, b) = (draw(), draw());
        let (mut pa, mut pb) = (vec![0; n], vec![0; n]);
        slots.encode(&a, &mut pa);
        slots.encode(&b, &mut pb);
        let mut product = vec![0; n];
        for i in 0..n {
            for j in 0..n {
                let term = modulus::mul(pa[i], pb[j]);
                let at = &mut product[(i + j) % n];
                *at = if i + j < n {
                    modulus::add(*at, term)
                } else {
                    modulus::sub(*at, term)
                };
            }
        }
        let mut got = vec![0; n];
        slots.decode(&mut product, &mut got);
        assert!((0..n).all(|i| got[i] == modulus::mul(a[i], b[i])));

        for steps in [1, 5, -3] {
            let g = rotation(n, steps);
            let mut image = vec![0; n];
            for (i, &c) in pa.iter().enumerate() {
                let e = i * g % (2 * n);
                image[e % n] = if e < n { c } else { modulus::neg(c) };
            }
            slots.decode(&mut image, &mut got);
            for row in 0..2 {
                for s in 0..n / 2 {
                    let from = (s as i32 + steps).rem_euclid(n as i32 / 2) as usize;
                    assert_eq!(got[row * n / 2 + s], a[row * n / 2 + from]);
                }
            }
        }
    }
}
