//! The sum of products on 256-bit vectors: a block of sixteen positions of both halves at a time.
#![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are asserted.

use super::{BLOCK, FOLD, PAIR, Prime, Task};
use std::arch::x86_64::*;

pub(super) fn run(task: Task<'_>, outputs: &mut [u32]) {
    // SAFETY: `Level::Avx2` is only made where the instructions exist.
    unsafe {
        match task.runs.per_block() {
            1 => all::<1>(task, outputs),
            2 => all::<2>(task, outputs),
            4 => all::<4>(task, outputs),
            8 => all::<8>(task, outputs),
            _ => all::<16>(task, outputs),
        }
    }
}

#[target_feature(enable = "avx2")]
fn all<const PER: usize>(task: Task<'_>, outputs: &mut [u32]) {
    assert_eq!(PER, task.runs.per_block());
    let constants = constants(task.prime);
    let forwards = patterns::<PER, false>();
    let backwards = patterns::<PER, true>();
    task.blocks(outputs, |data, weights, mirrored, out0, out1| {
        // SAFETY: `blocks` gives `PAIR` numbers and `PER` weights for each term, and results of
        // `BLOCK` numbers.
        unsafe {
            if mirrored && PER > 1 {
                block::<PER, true>(constants, backwards, data, weights, out0, out1, task.add);
            } else {
                block::<PER, false>(constants, forwards, data, weights, out0, out1, task.add);
            }
        }
    });
}

#[target_feature(enable = "avx2")]
fn constants(prime: Prime) -> Constants {
    let q = _mm256_set1_epi64x(prime.value().into());
    Constants {
        q,
        q2: _mm256_add_epi64(q, q),
        both: _mm256_set1_epi32(prime.value() as i32),
        inverse: _mm256_set1_epi64x(prime.montgomery_inverse().into()),
        quotient: _mm256_set1_epi64x((1i64 << 49) / i64::from(prime.value())),
    }
}

/// Returns the lane patterns that spread the weights of a block over positions 0-7 and 8-15.
#[inline]
#[target_feature(enable = "avx2")]
fn patterns<const PER: usize, const MIRRORED: bool>() -> [__m256i; 2] {
    let spread = |half: usize| {
        let lanes: [i32; 8] = std::array::from_fn(|lane| {
            let i = 8 * half + lane;
            let i = if MIRRORED { BLOCK - 1 - i } else { i };
            (i * PER / BLOCK % 8) as i32
        });
        // SAFETY: eight lanes are read from eight numbers.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    };
    [spread(0), spread(1)]
}

/// Spreads the weights of one block over positions 0-7 and 8-15.
///
/// # Safety
/// `PER` numbers must be readable at `w`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn spread<const PER: usize, const MIRRORED: bool>(
    w: *const u32,
    patterns: [__m256i; 2],
) -> [__m256i; 2] {
    // SAFETY: each arm reads `PER` numbers.
    unsafe {
        let two = match PER {
            1 => return [_mm256_set1_epi32(*w as i32); 2],
            2 => {
                let pair = [
                    _mm256_set1_epi32(*w as i32),
                    _mm256_set1_epi32(*w.add(1) as i32),
                ];
                return if MIRRORED { [pair[1], pair[0]] } else { pair };
            }
            4 => [_mm256_castsi128_si256(_mm_loadu_si128(w.cast())); 2],
            8 => [_mm256_loadu_si256(w.cast()); 2],
            _ => {
                let pair = [
                    _mm256_loadu_si256(w.cast()),
                    _mm256_loadu_si256(w.add(8).cast()),
                ];
                if MIRRORED { [pair[1], pair[0]] } else { pair }
            }
        };
        [
            _mm256_permutevar8x32_epi32(two[0], patterns[0]),
            _mm256_permutevar8x32_epi32(two[1], patterns[1]),
        ]
    }
}

/// Computes both halves of one block of one output.
///
/// # Safety
/// For each `PAIR` numbers of `data` there must be `PER` weights; outputs have `BLOCK` numbers.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn block<const PER: usize, const MIRRORED: bool>(
    constants: Constants,
    patterns: [__m256i; 2],
    data: &[u32],
    weights: &[u32],
    out0: &mut [u32],
    out1: &mut [u32],
    add: bool,
) {
    let low = _mm256_set1_epi64x(0xffff_ffff);
    let mut sums = [_mm256_setzero_si256(); 8];
    let mut high = [_mm256_setzero_si256(); 8];
    for (data, weights) in data.chunks(PAIR * FOLD).zip(weights.chunks(PER * FOLD)) {
        let (mut d, mut w) = (data.as_ptr(), weights.as_ptr());
        for _ in 0..data.len() / PAIR {
            // SAFETY: the chunk has `PAIR` numbers and `PER` weights for each term.
            unsafe {
                let spread = spread::<PER, MIRRORED>(w, patterns);
                for i in 0..4 {
                    let v = _mm256_loadu_si256(d.add(8 * i).cast());
                    let even = spread[i % 2];
                    // Neighbours share a weight unless every position has its own.
                    let odd = if PER == BLOCK {
                        _mm256_srli_epi64::<32>(even)
                    } else {
                        even
                    };
                    let terms = [
                        _mm256_mul_epu32(v, even),
                        _mm256_mul_epu32(_mm256_srli_epi64::<32>(v), odd),
                    ];
                    sums[2 * i] = _mm256_add_epi64(sums[2 * i], terms[0]);
                    sums[2 * i + 1] = _mm256_add_epi64(sums[2 * i + 1], terms[1]);
                }
                d = d.add(PAIR);
                w = w.add(PER);
            }
        }
        for (high, sum) in high.iter_mut().zip(&mut sums) {
            *high = _mm256_add_epi64(*high, _mm256_srli_epi64::<32>(*sum));
            *sum = _mm256_and_si256(*sum, low);
        }
    }
    for i in 0..4 {
        let even = reduce(constants, high[2 * i], sums[2 * i]);
        let odd = reduce(constants, high[2 * i + 1], sums[2 * i + 1]);
        let mut v = _mm256_or_si256(even, _mm256_slli_epi64::<32>(odd));
        let out = if i < 2 { &mut *out0 } else { &mut *out1 };
        // SAFETY: each output has 16 numbers.
        unsafe {
            let p = out.as_mut_ptr().add(8 * (i % 2)).cast();
            if add {
                v = _mm256_add_epi32(v, _mm256_loadu_si256(p));
                v = _mm256_min_epu32(v, _mm256_sub_epi32(v, constants.both));
            }
            _mm256_storeu_si256(p, v);
        }
    }
}

#[derive(Clone, Copy)]
struct Constants {
    q: __m256i,
    q2: __m256i,
    /// The prime in every 32-bit lane.
    both: __m256i,
    inverse: __m256i,
    /// `⌊2^49 / q⌋`.
    quotient: __m256i,
}

/// Reduces `high + low·2^-32` modulo q in each 64-bit lane, for `high < 2^41` and `low < 2^32`.
#[inline]
#[target_feature(enable = "avx2")]
fn reduce(c: Constants, high: __m256i, low: __m256i) -> __m256i {
    // Montgomery: low·2^-32 ≡ -t.
    let m = _mm256_mul_epu32(low, c.inverse);
    let t = _mm256_srli_epi64::<32>(_mm256_mul_epu32(m, c.q));
    // Barrett: the quotient is short by at most 2, so the rest is below 3q.
    let estimate = _mm256_mul_epu32(_mm256_srli_epi64::<29>(high), c.quotient);
    let estimate = _mm256_srli_epi64::<20>(estimate);
    let r = _mm256_sub_epi64(high, _mm256_mul_epu32(estimate, c.q));
    let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q2));
    let r = _mm256_sub_epi64(_mm256_add_epi64(r, c.q), t);
    let r = _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q2));
    _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q))
}
