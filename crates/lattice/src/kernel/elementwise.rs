//! Loops over one limb that need no hand-written vectors: each body is compiled twice, once for
//! the baseline and once with AVX2 allowed, and the choice is made at run time.
#![allow(unsafe_code)] // Calls of AVX2-compiled copies of safe code, after detection.

use crate::prime::{Prime, Shoup, reduce_once};
use crate::simd::{Level, Simd};

macro_rules! versions {
    ($($(#[$doc:meta])* $seen:vis fn $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        $seen fn $name(simd: Simd, $($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $ty),*) {
                body($($arg),*);
            }
            match simd.level() {
                // SAFETY: `Level::Avx2` is only made where the instructions exist.
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => unsafe { avx2($($arg),*) },
                _ => body($($arg),*),
            }
        }
    )*};
}
pub(super) use versions;

versions! {
    /// Computes `a += b`.
    pub fn add_assign(prime: Prime, a: &mut [u32], b: &[u32]) {
        for (x, &y) in a.iter_mut().zip(b) {
            *x = prime.add(*x, y);
        }
    }

    /// Computes `a -= b`.
    pub fn sub_assign(prime: Prime, a: &mut [u32], b: &[u32]) {
        for (x, &y) in a.iter_mut().zip(b) {
            *x = prime.sub(*x, y);
        }
    }

    /// Computes `a = -a`.
    pub fn negate(prime: Prime, a: &mut [u32]) {
        for x in a {
            *x = prime.neg(*x);
        }
    }

    /// Computes `a *= b`.
    pub fn mul_assign(prime: Prime, a: &mut [u32], b: &[u32]) {
        for (x, &y) in a.iter_mut().zip(b) {
            *x = prime.mul(*x, y);
        }
    }

    /// Computes `out += a · b`.
    pub fn mul_add(prime: Prime, out: &mut [u32], a: &[u32], b: &[u32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = prime.add(*o, prime.mul(x, y));
        }
    }

    /// Computes `out -= a · b`.
    pub fn mul_sub(prime: Prime, out: &mut [u32], a: &[u32], b: &[u32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = prime.sub(*o, prime.mul(x, y));
        }
    }

    /// Computes `out = from + a · b` for fixed factors `b`, given with their Shoup quotients or
    /// those of [`quotients`].
    pub fn mul_shoup_onto(
        prime: Prime,
        out: &mut [u32],
        from: &[u32],
        a: &[u32],
        b: &[u32],
        quotients: &[u32]
    ) {
        let factors = b.iter().zip(quotients);
        for (((o, &f), &x), (&value, &quotient)) in out.iter_mut().zip(from).zip(a).zip(factors) {
            *o = prime.add(f, prime.mul_shoup(x, Shoup { value, quotient }));
        }
    }

    /// Computes quotients of factors for [`mul_shoup_onto`]: `⌊a·2^32/q⌋` or one less, which serve
    /// as well for products with numbers below `2^31`.
    pub fn quotients(prime: Prime, out: &mut [u32], a: &[u32]) {
        // ⌊2^62/q⌋ is too small by less than one; so is its product with a number below 2^30, over
        // 2^30.
        let above = (1 << 62) / u64::from(prime.value()) - (1 << 32);
        for (o, &x) in out.iter_mut().zip(a) {
            *o = (x << 2) + ((u64::from(x) * above) >> 30) as u32;
        }
    }

    /// Computes `a *= w` for a fixed factor.
    pub fn scale(prime: Prime, a: &mut [u32], w: Shoup) {
        for x in a {
            *x = prime.mul_shoup(*x, w);
        }
    }

    /// Computes `out = a · w` for a fixed factor; `a` may be any 32-bit numbers.
    pub fn scale_into(prime: Prime, out: &mut [u32], a: &[u32], w: Shoup) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o = prime.mul_shoup(x, w);
        }
    }

    /// Computes `a += half` modulo the prime that is about to be dropped.
    pub fn add_constant(prime: Prime, a: &mut [u32], half: u32) {
        for x in a {
            *x = prime.add(*x, half);
        }
    }

    /// Computes `out = a + constant`, not reduced.
    pub fn add_lazy(out: &mut [u32], a: &[u32], constant: u32) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o = x + constant;
        }
    }

    /// Computes one limb of a rounded division by a dropped prime:
    /// `a = (a + half - rest) · inverse`, with `rest` the dropped limb after [`add_constant`], any
    /// number below `2^30`.
    pub fn divide_limb(prime: Prime, a: &mut [u32], rest: &[u32], half: u32, inverse: Shoup) {
        for (x, &r) in a.iter_mut().zip(rest) {
            let r = reduce_once(r, prime.value());
            *x = prime.mul_shoup(*x + half + prime.value() - r, inverse);
        }
    }

    /// Computes residues of signed numbers below `2^60`, times a fixed factor, lazily: below `2q`.
    pub fn lift(prime: Prime, out: &mut [u32], signed: &[i64], factor: Shoup) {
        for (o, &x) in out.iter_mut().zip(signed) {
            *o = prime.mul_shoup_lazy(prime.from_signed_wide(x), factor);
        }
    }

    /// Computes the first layer of a folded transform: `out[i] = x_i·f_0 + x_(h-i)·f_1 + constant`
    /// for `x` in two parts with two factors each, and `x_h` given; lazily, below `3q`.
    pub fn fold(
        prime: Prime,
        out: &mut [u32],
        parts: [&[u32]; 2],
        last: [u32; 2],
        factors: [[Shoup; 2]; 2],
        constant: u32
    ) {
        let (len, twice) = (out.len(), 2 * prime.value());
        let [low, high] = parts.map(|part| &part[..len]);
        let sum = |x: [u32; 2], turned: [u32; 2]| {
            let pair = |x: [u32; 2], f: [Shoup; 2]| {
                let terms = [prime.mul_shoup_lazy(x[0], f[0]), prime.mul_shoup_lazy(x[1], f[1])];
                reduce_once(terms[0] + terms[1], twice)
            };
            reduce_once(pair(x, factors[0]) + pair(turned, factors[1]), twice) + constant
        };
        let turned = low[1..].iter().rev().zip(high[1..].iter().rev());
        let straight = low[1..].iter().zip(&high[1..]);
        for ((out, (l, h)), (tl, th)) in out[1..].iter_mut().zip(straight).zip(turned) {
            *out = sum([*l, *h], [*tl, *th]);
        }
        out[0] = sum([low[0], high[0]], last);
    }

    /// Turns rows of `width` numbers into columns, eight times eight at a time. Column `i` goes to
    /// `out[i·stride..]`.
    pub fn transpose(rows: &[u32], width: usize, out: &mut [u32], stride: usize) {
        for (r, rows) in rows.chunks_exact(8 * width).enumerate() {
            for c in (0..width).step_by(8) {
                let square: [&[u32; 8]; 8] = std::array::from_fn(|i| {
                    rows[i * width + c..].first_chunk().expect("eight columns are left")
                });
                for i in 0..8 {
                    let column: [u32; 8] = std::array::from_fn(|lane| square[lane][i]);
                    out[(c + i) * stride + 8 * r..][..8].copy_from_slice(&column);
                }
            }
        }
    }

    /// Computes `out += signed · factor` for signed numbers below `2^60`.
    pub fn add_lift(prime: Prime, out: &mut [u32], signed: &[i64], factor: Shoup) {
        for (o, &x) in out.iter_mut().zip(signed) {
            *o = prime.add(*o, prime.mul_shoup(prime.from_signed_wide(x), factor));
        }
    }

    /// Computes `out = Σ terms[i]·factors[i]`, with terms end to end and any numbers below `2^30`,
    /// factors in Montgomery form.
    pub fn combine(prime: Prime, out: &mut [u32], terms: &[u32], factors: &[u32]) {
        const BLOCK: usize = 16;
        let n = out.len();
        assert!(n.is_multiple_of(BLOCK) && terms.len() == n * factors.len());
        for at in (0..n).step_by(BLOCK) {
            let mut reduced = [0u32; BLOCK];
            // Eight products fit one sum below 2^63.
            for (group, factors) in factors.chunks(8).enumerate() {
                let mut sums = [0u64; BLOCK];
                for (i, &factor) in factors.iter().enumerate() {
                    let term = &terms[(8 * group + i) * n + at..];
                    let term: &[u32; BLOCK] = term.first_chunk().expect("a block is left");
                    for (sum, &x) in sums.iter_mut().zip(term) {
                        *sum += u64::from(x) * u64::from(factor);
                    }
                }
                for (r, &sum) in reduced.iter_mut().zip(&sums) {
                    *r = prime.add(*r, prime.redc(sum));
                }
            }
            out[at..at + BLOCK].copy_from_slice(&reduced);
        }
    }

    /// Computes `out = x·factor` for numbers below `2^60`, given the factor and `2^30` times the
    /// factor, both in Montgomery form.
    pub fn scale_wide(prime: Prime, out: &mut [u32], x: &[u64], factors: [u32; 2]) {
        let [low, high] = factors.map(u64::from);
        for (o, &x) in out.iter_mut().zip(x) {
            *o = prime.redc((x & ((1 << 30) - 1)) * low + (x >> 30) * high);
        }
    }

    /// Computes `out += small` for small signed numbers.
    pub fn add_small(prime: Prime, out: &mut [u32], small: &[i8]) {
        for (o, &x) in out.iter_mut().zip(small) {
            *o = prime.add(*o, prime.from_signed(i32::from(x)));
        }
    }

    /// Computes `out += Σ digits·factors + constant`: digits below `2^30` in three planes, one
    /// after the other, each as long as `digits` has room for; factors in Montgomery form.
    pub fn add_digits(
        prime: Prime,
        out: &mut [u32],
        digits: &[u32],
        factors: [u32; 3],
        constant: u32
    ) {
        let (plane, len) = (digits.len() / factors.len(), out.len());
        let planes: [&[u32]; 3] = std::array::from_fn(|i| &digits[i * plane..][..len]);
        let factors = factors.map(u64::from);
        for (i, out) in out.iter_mut().enumerate() {
            // Below 2^62.
            let sum = (0..3).fold(0, |sum, d| sum + u64::from(planes[d][i]) * factors[d]);
            *out = prime.add(*out, prime.add(prime.redc(sum), constant));
        }
    }

    /// Writes the digits to the base three of bytes below `3^5`, minus one: the first of all bytes,
    /// the second of all, and so on. The bytes are used up.
    pub fn ternary_digits(bytes: &mut [u8], out: &mut [i8]) {
        for out in out.chunks_mut(bytes.len()) {
            for (out, byte) in out.iter_mut().zip(&mut *bytes) {
                // A third, rounded down.
                let third = ((u16::from(*byte) * 171) >> 9) as u8;
                *out = (*byte - 3 * third) as i8 - 1;
                *byte = third;
            }
        }
    }

    /// Counts the heads among 42 coins, minus 21: coins are bits, five planes of bytes and two bits
    /// each of a plane a quarter as long.
    pub fn count_coins(out: &mut [i8], whole: &[u8], last: &[u8]) {
        let plane = whole.len() / 5;
        for (quarter, out) in out.chunks_mut(last.len()).enumerate() {
            let planes: [&[u8]; 5] =
                std::array::from_fn(|p| &whole[p * plane + quarter * last.len()..][..out.len()]);
            let last = &last[..out.len()];
            for (i, out) in out.iter_mut().enumerate() {
                let pair = (last[i] >> (2 * quarter)) & 3;
                let heads = planes.iter().fold(pair.count_ones() as u8, |sum, plane| {
                    sum + plane[i].count_ones() as u8
                });
                *out = heads as i8 - 21;
            }
        }
    }

    /// Computes the residues of small signed numbers.
    pub fn from_small(prime: Prime, out: &mut [u32], small: &[i8]) {
        for (o, &x) in out.iter_mut().zip(small) {
            *o = prime.from_signed(i32::from(x));
        }
    }

    /// Computes the residues of short signed numbers, smaller than the prime.
    pub fn from_short(prime: Prime, out: &mut [u32], short: &[i16]) {
        for (o, &x) in out.iter_mut().zip(short) {
            *o = prime.from_signed(i32::from(x));
        }
    }

    /// Computes `sums += a · b`, unreduced.
    pub fn mul_accumulate(sums: &mut [u64], a: &[u32], b: &[u32]) {
        for ((sum, &x), &y) in sums.iter_mut().zip(a).zip(b) {
            *sum += u64::from(x) * u64::from(y);
        }
    }

    /// Computes `sums · 2^-32`, for sums that [`Prime::redc`] takes.
    pub fn reduce_sums(prime: Prime, out: &mut [u32], sums: &[u64]) {
        for (o, &sum) in out.iter_mut().zip(sums) {
            *o = prime.redc(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_sums_of_products() {
        let prime = Prime::largest(3)[2];
        let draw = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34) as u32;
        for count in [1, 8, 13, 16] {
            let mut terms: Vec<u32> = (0..32 * count as u64).map(draw).collect();
            terms[..32].fill((1 << 30) - 1);
            let factors: Vec<u32> = (0..count as u64)
                .map(|i| draw(i + 7) % prime.value())
                .collect();
            let stored: Vec<u32> = factors.iter().map(|&f| prime.to_montgomery(f)).collect();
            for simd in Simd::available() {
                let mut out = vec![0; 32];
                combine(simd, prime, &mut out, &terms, &stored);
                for (at, &got) in out.iter().enumerate() {
                    let sum: u128 = (0..count)
                        .map(|i| u128::from(terms[32 * i + at]) * u128::from(factors[i]))
                        .sum();
                    assert_eq!(u128::from(got), sum % u128::from(prime.value()), "{simd:?}");
                }
            }
        }
    }

    #[test]
    fn both_versions_agree_and_divide_rounds() {
        let primes = Prime::largest(2);
        let (keep, drop) = (primes[0], primes[1]);
        let big = u64::from(drop.value());
        let numbers: Vec<u64> = (0..1000u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (u64::from(keep.value()) * big))
            .collect();
        for simd in Simd::available() {
            let mut a: Vec<u32> = numbers.iter().map(|&x| keep.reduce(x)).collect();
            let mut rest: Vec<u32> = numbers.iter().map(|&x| drop.reduce(x)).collect();
            let half = drop.value() / 2;
            add_constant(simd, drop, &mut rest, half);
            let inverse = keep.shoup(keep.invert(drop.value() % keep.value()));
            divide_limb(simd, keep, &mut a, &rest, half, inverse);
            for (&x, &got) in numbers.iter().zip(&a) {
                let want = ((x + u64::from(half)) / big) % u64::from(keep.value());
                assert_eq!(u64::from(got), want, "{simd:?}");
            }
        }
    }
}
