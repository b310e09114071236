//! Sums of products in GF(2^128), reduced at the end.
//!
//! The field is `F_2[X]/(X^128 + X^7 + X^2 + X + 1)`, bit `i` of a word the coefficient of `X^i`.
//! Products are summed as polynomials of 256 bits. Where the processor has PCLMULQDQ it is used.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use zeroize::Zeroize;

/// A polynomial of 256 bits, as three sums of products of 64-bit halves.
#[derive(Clone, Copy, Default, Zeroize)]
pub(crate) struct Product {
    low: u128,
    /// Products of the sums of both halves (Karatsuba): the middle, and the two others.
    mixed: u128,
    high: u128,
}

impl Product {
    /// Adds another sum.
    #[cfg(test)]
    pub(crate) fn add(&mut self, other: &Self) {
        self.low ^= other.low;
        self.mixed ^= other.mixed;
        self.high ^= other.high;
    }

    /// Returns the element of the field.
    pub(crate) fn reduce(&self) -> u128 {
        let middle = self.mixed ^ self.low ^ self.high;
        let low = self.low ^ middle << 64;
        let high = self.high ^ middle >> 64;
        // X^128 = X^7 + X^2 + X + 1; what comes out at the top is folded once more.
        let over = high >> 127 ^ high >> 126 ^ high >> 121;
        let folded = |x: u128| x ^ x << 1 ^ x << 2 ^ x << 7;
        low ^ folded(high) ^ folded(over)
    }
}

/// Public factors, ready to be multiplied with many columns.
pub(crate) struct Sums {
    factors: Vec<u128>,
    #[cfg(target_arch = "x86_64")]
    fast: bool,
}

impl Sums {
    /// Prepares one factor for each 16 bytes.
    pub(crate) fn new(factors: &[u8]) -> Self {
        let (factors, _) = factors.as_chunks();
        Self {
            factors: factors.iter().map(|f| u128::from_le_bytes(*f)).collect(),
            #[cfg(target_arch = "x86_64")]
            fast: is_x86_feature_detected!("pclmulqdq"),
        }
    }

    /// Adds the sum of factors times the words of a column, 16 bytes each.
    pub(crate) fn add(&self, column: &[u8], sum: &mut Product) {
        let (words, _) = column.as_chunks();
        assert_eq!(words.len(), self.factors.len(), "a factor for each word");
        #[cfg(target_arch = "x86_64")]
        if self.fast {
            // SAFETY: the processor has PCLMULQDQ.
            return unsafe { x86::add(&self.factors, words, sum) };
        }
        self.add_portable(words, sum);
    }

    fn add_portable(&self, words: &[[u8; 16]], sum: &mut Product) {
        for (factor, word) in self.factors.iter().zip(words) {
            let word = u128::from_le_bytes(*word);
            let halves = |x: u128| ((x >> 64) as u64, x as u64);
            let ((a1, a0), (b1, b0)) = (halves(*factor), halves(word));
            sum.low ^= multiply(a0, b0);
            sum.mixed ^= multiply(a0 ^ a1, b0 ^ b1);
            sum.high ^= multiply(a1, b1);
        }
    }
}

/// Returns the product of two polynomials of 64 bits, in constant time.
fn multiply(a: u64, b: u64) -> u128 {
    let mut product = 0;
    for i in 0..64 {
        product ^= (u128::from(b) << i) & u128::from(a >> i & 1).wrapping_neg();
    }
    product
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Product;
    use std::arch::x86_64::*;

    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn add(factors: &[u128], words: &[[u8; 16]], sum: &mut Product) {
        let load = |x: u128| _mm_set_epi64x((x >> 64) as i64, x as i64);
        let (mut low, mut mixed, mut high) = (load(sum.low), load(sum.mixed), load(sum.high));
        for (factor, word) in factors.iter().zip(words) {
            // SAFETY: both are sixteen bytes, and the loads need no alignment.
            let (a, b) = unsafe {
                (
                    _mm_loadu_si128((&raw const *factor).cast()),
                    _mm_loadu_si128(word.as_ptr().cast()),
                )
            };
            let (c, d) = (
                _mm_xor_si128(a, _mm_shuffle_epi32::<0x4e>(a)),
                _mm_xor_si128(b, _mm_shuffle_epi32::<0x4e>(b)),
            );
            low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(a, b));
            mixed = _mm_xor_si128(mixed, _mm_clmulepi64_si128::<0x00>(c, d));
            high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(a, b));
        }
        for (to, from) in [
            (&mut sum.low, low),
            (&mut sum.mixed, mixed),
            (&mut sum.high, high),
        ] {
            // SAFETY: sixteen bytes are written, unaligned, to a number of sixteen.
            unsafe { _mm_storeu_si128((&raw mut *to).cast(), from) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    /// Multiplies one bit at a time, reduced at once.
    fn slow(a: u128, b: u128) -> u128 {
        let mut sum = 0;
        for i in (0..128).rev() {
            let carry = sum >> 127;
            sum = (sum << 1) ^ (carry * 0x87);
            sum ^= a * (b >> i & 1);
        }
        sum
    }

    #[test]
    fn sums_of_products_in_the_field() {
        let mut rng = Prg::new(&[3; 16]);
        for words in [0, 1, 2, 17] {
            let (mut factors, mut column) = (vec![0; 16 * words], vec![0xff; 16 * words]);
            rng.fill(&mut factors);
            if words != 1 {
                rng.fill(&mut column);
            }
            let of = |bytes: &[u8], i: usize| {
                u128::from_le_bytes(bytes[16 * i..][..16].try_into().unwrap())
            };
            let terms = (0..words).map(|i| slow(of(&factors, i), of(&column, i)));
            let expected = terms.fold(0, |sum, term| sum ^ term);
            let sums = Sums::new(&factors);
            let (mut fast, mut portable) = (Product::default(), Product::default());
            sums.add(&column, &mut fast);
            sums.add_portable(column.as_chunks().0, &mut portable);
            assert_eq!(fast.reduce(), expected);
            assert_eq!(portable.reduce(), expected);
            // A second time, and nothing is left.
            sums.add(&column, &mut fast);
            assert_eq!(fast.reduce(), 0);
        }
    }
}
