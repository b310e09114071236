//! Encoding of vectors that are the same in both rows of slots, at half the price.
//!
//! Such a plaintext is fixed by `Y -> Y^-1`. With degree `2h` its coefficients are `c_0`, then
//! `c_i` at `i` and `-c_i` at `2h - i` for `i` below `h`, and zero at `h`: `h` numbers. Its
//! transform is a mirror image of itself, so the first `h` values are all. Both halves show in the
//! first layer of the transform, which leaves for the first `h` values
//!
//! ```text
//! a_i = c_i - w·c_(h-i),   w = ψ^h, w² = -1,   c_h = 0
//! ```
//!
//! and the remaining layers are a transform of length `h` with a part of the roots
//! ([`Ntt::first_half`]). The way back is as short: `2·c_i = a_i + w·a_(h-i)`. [`FoldedSlots`] goes
//! from slots to coefficients modulo p, [`FoldedNtt`] from there to values modulo one prime.

use primer_lattice::automorphism::GENERATOR;
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::{Ntt, bit_reverse};
use primer_lattice::prime::{Prime, Shoup};
use primer_lattice::simd::Simd;
use primer_ring::modulus::{self, P};
use primer_rlwe::slots::{Factor, reduce_once};

/// What is added to coefficients to make them positive: a power of two.
const OFFSET: i64 = 1 << (modulus::K - 1);
const _: () = assert!(OFFSET > (P / 2) as i64, "a coefficient stays negative");
/// Bits of the lower part of a coefficient.
const LOW_BITS: u32 = 30;
const _: () = assert!(
    modulus::K - LOW_BITS <= 30,
    "the upper part has more bits than a prime"
);

/// Slots modulo p, equal in both rows.
pub(crate) struct FoldedSlots {
    inverse_roots: Vec<Factor>,
    /// `1/h`, `1/2h` and `w/2h`.
    whole: Factor,
    half: Factor,
    turned: Factor,
    /// Transform position of each slot.
    positions: Vec<u32>,
    work: Vec<u64>,
}

impl FoldedSlots {
    /// Makes one for slots of rows of the given length, a power of two.
    pub(crate) fn new(row: usize) -> Self {
        let degree = 2 * row;
        assert!(degree.is_power_of_two() && (P - 1).is_multiple_of(2 * degree as u64));
        let psi = modulus::pow(modulus::GENERATOR, (P - 1) / (2 * degree as u64));
        let invert = |x| modulus::pow(x, P - 2);
        let (inverse, log) = (invert(psi), degree.trailing_zeros());
        // The first half of the transform of twice the length starts at node 2 of its tree.
        let inverse_roots = (0..row)
            .map(|k| {
                let node = if k == 0 { 0 } else { k + (1 << k.ilog2()) };
                Factor::new(modulus::pow(inverse, bit_reverse(node, log) as u64))
            })
            .collect();
        let mut e = 1;
        let positions = (0..row)
            .map(|_| {
                let at = bit_reverse((e - 1) / 2, log);
                e = e * GENERATOR % (2 * degree);
                // Of a slot and its mirror image, the one in the first half.
                at.min(degree - 1 - at) as u32
            })
            .collect();
        let scale = invert(degree as u64);
        Self {
            inverse_roots,
            whole: Factor::new(modulus::mul(2, scale)),
            half: Factor::new(scale),
            turned: Factor::new(modulus::mul(modulus::pow(psi, row as u64), scale)),
            positions,
            work: vec![0; row],
        }
    }

    /// Turns residues of one row of slots into coefficients, as [`FoldedNtt::forward`] takes them.
    pub(crate) fn encode(&mut self, slots: &[u64], low: &mut [u32], high: &mut [u32]) {
        let h = self.positions.len();
        assert!(slots.len() == h && low.len() == h && high.len() == h);
        let a = &mut self.work[..h];
        for (&v, &at) in slots.iter().zip(&self.positions) {
            a[at as usize] = v;
        }
        let (mut stride, mut groups) = (1, h / 2);
        while groups > 0 {
            for (chunk, &w) in a
                .chunks_exact_mut(2 * stride)
                .zip(&self.inverse_roots[groups..])
            {
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
        let mut store = |i: usize, c: u64| {
            let c = modulus::to_signed(reduce_once(c, P)) + OFFSET;
            low[i] = (c & ((1 << LOW_BITS) - 1)) as u32;
            high[i] = (c >> LOW_BITS) as u32;
        };
        store(0, self.whole.mul_lazy(a[0]));
        for i in 1..h {
            let c = self.half.mul_lazy(a[i]) + self.turned.mul_lazy(a[h - i]);
            store(i, reduce_once(c, 2 * P));
        }
    }
}

/// The transform of coefficients from [`FoldedSlots`] modulo one prime, to values in Montgomery
/// form.
pub(crate) struct FoldedNtt {
    ntt: Ntt,
    /// What the parts of `c_i` and `c_(h-i)` are multiplied with.
    factors: [[Shoup; 2]; 2],
    /// Takes the offsets away.
    constant: u32,
}

impl FoldedNtt {
    pub(crate) fn new(prime: Prime, row: usize, simd: Simd) -> Self {
        let ntt = Ntt::first_half(prime, row, simd);
        let turn = ntt.prime().neg(Ntt::quarter_turn(prime));
        let factor = |by: u32, shift: u32| {
            prime.shoup(prime.to_montgomery(prime.mul(by, prime.reduce(1 << shift))))
        };
        let offset = factor(prime.add(1, turn), OFFSET.trailing_zeros()).value;
        Self {
            ntt,
            factors: [
                [factor(1, 0), factor(1, LOW_BITS)],
                [factor(turn, 0), factor(turn, LOW_BITS)],
            ],
            constant: prime.neg(offset),
        }
    }

    /// Transforms a polynomial given by the parts of its coefficients.
    pub(crate) fn forward(&self, simd: Simd, parts: [&[u32]; 2], out: &mut [u32]) {
        // The coefficient in the middle is zero.
        let last = [0, (OFFSET >> LOW_BITS) as u32];
        let (prime, factors) = (self.ntt.prime(), self.factors);
        elementwise::fold(simd, prime, out, parts, last, factors, self.constant);
        self.ntt.forward(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use primer_rlwe::slots::Slots;

    #[test]
    fn is_half_of_the_whole_encoding() {
        let mut rng = Prg::new(&[6; 16]);
        for row in [32, 64, 256, 4096] {
            let (whole, mut folded) = (Slots::new(2 * row), FoldedSlots::new(row));
            for extreme in [false, true] {
                let mut values: Vec<u64> = (0..row)
                    .map(|_| {
                        if extreme {
                            P - 1
                        } else {
                            modulus::random(&mut rng)
                        }
                    })
                    .collect();
                let (mut low, mut high) = (vec![0; row], vec![0; row]);
                folded.encode(&values, &mut low, &mut high);
                values.extend_from_within(..);
                let mut coefficients = vec![0; 2 * row];
                whole.encode(&values, &mut coefficients);
                for i in 0..row {
                    let c = (i64::from(high[i]) << LOW_BITS) + i64::from(low[i]) - OFFSET;
                    assert_eq!(c, modulus::to_signed(coefficients[i]), "{i} of {row}");
                }
                for prime in Prime::largest(7) {
                    let signed = coefficients.iter().map(|&c| modulus::to_signed(c));
                    let mut want: Vec<u32> = signed
                        .map(|c| prime.to_montgomery(prime.from_signed_wide(c)))
                        .collect();
                    Ntt::new(prime, 2 * row, Simd::portable()).forward(&mut want);
                    for simd in Simd::available() {
                        let mut got = vec![0; row];
                        FoldedNtt::new(prime, row, simd).forward(simd, [&low, &high], &mut got);
                        assert_eq!(got, want[..row], "{row} {simd:?}");
                        assert!((0..row).all(|i| want[i] == want[2 * row - 1 - i]));
                    }
                }
            }
        }
    }
}
