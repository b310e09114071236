//! The products on 256-bit vectors: six rows by eight columns in registers.
#![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are asserted.

use super::{AGAIN, Block, FIRST, PANEL, TILE};
use crate::prime::Prime;
use std::arch::x86_64::*;

/// Fills `out`, `[row][column]`, for a block of so many rows.
pub(super) fn run(task: Block<'_>, height: usize, out: &mut [u32]) {
    // SAFETY: `Level::Avx2` is only made where the instructions exist.
    unsafe {
        match height {
            1 => rows::<1>(task, out),
            2 => rows::<2>(task, out),
            3 => rows::<3>(task, out),
            4 => rows::<4>(task, out),
            5 => rows::<5>(task, out),
            _ => rows::<6>(task, out),
        }
    }
}

#[target_feature(enable = "avx2")]
fn rows<const ROWS: usize>(task: Block<'_>, out: &mut [u32]) {
    let terms = task.terms;
    let columns = out.len() / ROWS;
    assert!(columns.is_multiple_of(PANEL) && out.len() == columns * ROWS);
    assert!(terms > 0 && task.weights.len() == terms * ROWS && task.data.len() == terms * columns);
    let constants = constants(task.prime);
    for (p, panel) in task.data.chunks_exact(terms * PANEL).enumerate() {
        for side in (0..PANEL).step_by(TILE) {
            // SAFETY: the panel has `PANEL` numbers for every term, of which eight follow `side`;
            // there are `ROWS` weights for every term; every row of the output has `columns`
            // numbers, of which eight follow `p·PANEL + side`.
            unsafe {
                tile::<ROWS>(
                    constants,
                    terms,
                    task.weights.as_ptr(),
                    panel.as_ptr().add(side),
                    out.as_mut_ptr().add(p * PANEL + side),
                    columns,
                    task.add,
                );
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Constants {
    /// The prime in every 32-bit lane, once and twice.
    q: __m256i,
    q2: __m256i,
    inverse: __m256i,
    /// `4q²` in every 64-bit lane, and its negative.
    plus: __m256d,
    minus: __m256d,
}

#[target_feature(enable = "avx2")]
fn constants(prime: Prime) -> Constants {
    let q = i64::from(prime.value());
    Constants {
        q: _mm256_set1_epi32(q as i32),
        q2: _mm256_set1_epi32(2 * q as i32),
        inverse: _mm256_set1_epi32(prime.montgomery_inverse() as i32),
        plus: _mm256_castsi256_pd(_mm256_set1_epi64x(4 * q * q)),
        minus: _mm256_castsi256_pd(_mm256_set1_epi64x(-4 * q * q)),
    }
}

/// # Safety
/// There must be `ROWS` numbers at `weights` and eight at `data` for each of the terms, which are
/// [`PANEL`] numbers apart there; and room for eight at `out` in each row, `stride` apart.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tile<const ROWS: usize>(
    constants: Constants,
    terms: usize,
    mut weights: *const u32,
    mut data: *const u32,
    out: *mut u32,
    stride: usize,
    add: bool,
) {
    // Even columns, odd columns.
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    let mut left = terms;
    let mut some = left.min(FIRST);
    while some > 0 {
        for _ in 0..some {
            // SAFETY: both pointers stand at one of the terms that are left.
            unsafe {
                let even = _mm256_loadu_si256(data.cast());
                let odd = _mm256_shuffle_epi32::<0b1111_0101>(even);
                for (r, sums) in sums.iter_mut().enumerate() {
                    let weight = _mm256_set1_epi32(*weights.add(r) as i32);
                    sums[0] = _mm256_add_epi64(sums[0], _mm256_mul_epi32(weight, even));
                    sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epi32(weight, odd));
                }
                weights = weights.add(ROWS);
                data = data.wrapping_add(PANEL);
            }
        }
        for sum in sums.as_flattened_mut() {
            *sum = corrected(constants, *sum);
        }
        left -= some;
        some = left.min(AGAIN);
    }
    for (r, [even, odd]) in sums.into_iter().enumerate() {
        // SAFETY: there is room for eight numbers.
        unsafe {
            let at = out.add(r * stride).cast();
            let mut v = reduced(constants, even, odd);
            if add {
                v = _mm256_add_epi32(v, _mm256_loadu_si256(at));
                v = _mm256_min_epu32(v, _mm256_sub_epi32(v, constants.q));
            }
            _mm256_storeu_si256(at, v);
        }
    }
}

/// Sums below `8q²`, brought to at most `4q²`.
#[inline]
#[target_feature(enable = "avx2")]
fn corrected(c: Constants, sum: __m256i) -> __m256i {
    let step = _mm256_blendv_pd(c.minus, c.plus, _mm256_castsi256_pd(sum));
    _mm256_add_epi64(sum, _mm256_castpd_si256(step))
}

/// Eight Montgomery reductions of corrected sums, even and odd columns apart.
#[inline]
#[target_feature(enable = "avx2")]
fn reduced(c: Constants, even: __m256i, odd: __m256i) -> __m256i {
    let te = _mm256_mul_epi32(_mm256_mul_epu32(even, c.inverse), c.q);
    let to = _mm256_mul_epi32(_mm256_mul_epu32(odd, c.inverse), c.q);
    let high = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
    let t = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(te), to);
    // Between -1.5q and 1.5q; a negative number is a large one here.
    let r = _mm256_sub_epi32(high, t);
    let r = _mm256_min_epu32(r, _mm256_add_epi32(r, c.q2));
    _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q))
}
