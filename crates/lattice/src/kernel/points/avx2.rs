//! The products on 256-bit vectors: six rows by eight columns in registers.
#![allow(unsafe_code)] // Vector loads and stores inside slices whose lengths are asserted.

use super::{Block, FIRST, HALVED, LAST, PANEL, Panels, TILE, TOGETHER, Task, step as halving};
use crate::prime::Prime;
use std::arch::x86_64::*;
use std::ops::Range;

/// Fills the sums of a point.
pub(super) fn run(task: Task<'_>) {
    // SAFETY: `Level::Avx2` is only made where the instructions exist.
    unsafe { point(task) }
}

#[target_feature(enable = "avx2")]
fn point(mut task: Task<'_>) {
    let constants = constants(task.prime);
    for column in (0..task.points.columns()).step_by(PANEL) {
        for block in task.blocks {
            match block.rows.len() {
                1 => rows::<1>(constants, &mut task, column, block),
                2 => rows::<2>(constants, &mut task, column, block),
                3 => rows::<3>(constants, &mut task, column, block),
                4 => rows::<4>(constants, &mut task, column, block),
                5 => rows::<5>(constants, &mut task, column, block),
                _ => rows::<6>(constants, &mut task, column, block),
            }
        }
    }
}

/// Multiplies a block by a panel.
#[inline]
#[target_feature(enable = "avx2")]
fn rows<const ROWS: usize>(
    constants: Constants,
    task: &mut Task<'_>,
    column: usize,
    block: &Block,
) {
    let (terms, places) = (task.terms, task.places(column));
    let (weights, first) = (task.weights(block).as_ptr(), block.rows.start);
    assert!(terms > 0 && block.rows.len() == ROWS);
    let Panels { data, stride } = task.panels;
    let panel = &data[TOGETHER * column..];
    assert!(panel.len() >= (terms - 1) / TOGETHER * stride + TOGETHER * PANEL);
    fetch(panel, stride, block.share.clone());
    let out = &mut task.sums.data[first * task.sums.stride..];
    let step = task.sums.stride;
    assert!(out.len() >= ROWS * step && places.iter().all(|place| place + TILE <= step));
    for (side, place) in [0, TILE].into_iter().zip(places) {
        // SAFETY: the panels have `PANEL` numbers for every term, of which eight follow `side`;
        // there are `ROWS` weights for every term; eight numbers follow `place` in each of `ROWS`
        // rows.
        unsafe {
            tile::<ROWS>(
                constants,
                terms,
                weights,
                panel.as_ptr().add(side),
                stride,
                out.as_mut_ptr().add(place),
                step,
            );
        }
    }
}

/// Prefetches a share of the next panel, which after the last panel is the first of the next point.
/// Terms lie in short runs far apart, which hardware prefetching does not foresee.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch(panel: &[u32], stride: usize, share: Range<usize>) {
    for eight in share {
        let first = panel
            .as_ptr()
            .wrapping_add(eight * stride + TOGETHER * PANEL);
        for term in 0..TOGETHER {
            _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(term * PANEL).cast());
        }
    }
}

#[derive(Clone, Copy)]
struct Constants {
    /// The prime in every 32-bit lane, once and twice.
    q: __m256i,
    q2: __m256i,
    inverse: __m256i,
    /// What is added to negative sums, and to the others, in every 64-bit lane to halve them.
    up: __m256d,
    down: __m256d,
}

#[target_feature(enable = "avx2")]
fn constants(prime: Prime) -> Constants {
    let q = prime.value() as i32;
    Constants {
        q: _mm256_set1_epi32(q),
        q2: _mm256_set1_epi32(q.wrapping_add(q)),
        inverse: _mm256_set1_epi32(prime.montgomery_inverse() as i32),
        up: _mm256_castsi256_pd(_mm256_set1_epi64x(halving(prime))),
        down: _mm256_castsi256_pd(_mm256_set1_epi64x(-halving(prime))),
    }
}

/// Computes the sums of `ROWS` rows and eight columns.
///
/// # Safety
/// For each of the terms there must be `ROWS` numbers at `weights` and eight at `data`, where the
/// terms of a group of [`TOGETHER`] are [`PANEL`] numbers apart and the groups `eights` numbers
/// apart. There must be room for eight numbers at `out` in each row, `stride` apart.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tile<const ROWS: usize>(
    constants: Constants,
    terms: usize,
    mut weights: *const u32,
    mut data: *const u32,
    eights: usize,
    out: *mut u32,
    stride: usize,
) {
    // Even columns, odd columns.
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    // `size` bounds the sums, in products.
    let (mut left, mut size) = (terms, 0);
    while left >= TOGETHER {
        if size + TOGETHER > FIRST {
            halve(constants, &mut sums);
            size = HALVED;
        }
        for i in 0..TOGETHER {
            // SAFETY: both pointers stand at eight terms that lie together.
            unsafe { step::<ROWS>(&mut sums, weights.add(i * ROWS), data.add(i * PANEL)) };
        }
        weights = weights.wrapping_add(TOGETHER * ROWS);
        data = data.wrapping_add(eights);
        left -= TOGETHER;
        size += TOGETHER;
    }
    if size + left > LAST {
        halve(constants, &mut sums);
    }
    for i in 0..left {
        // SAFETY: both pointers stand at the terms that are left, fewer than eight.
        unsafe { step::<ROWS>(&mut sums, weights.add(i * ROWS), data.add(i * PANEL)) };
    }
    for (r, [even, odd]) in sums.into_iter().enumerate() {
        // SAFETY: there is room for eight numbers.
        unsafe {
            let at = out.add(r * stride).cast();
            _mm256_storeu_si256(at, reduced(constants, even, odd));
        }
    }
}

/// Adds one term to the sums.
///
/// # Safety
/// There must be `ROWS` numbers at `weights` and eight at `data`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step<const ROWS: usize>(
    sums: &mut [[__m256i; 2]; ROWS],
    weights: *const u32,
    data: *const u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let even = _mm256_loadu_si256(data.cast());
        let odd = _mm256_shuffle_epi32::<0b1111_0101>(even);
        for (r, sums) in sums.iter_mut().enumerate() {
            let weight = _mm256_set1_epi32(*weights.add(r) as i32);
            sums[0] = _mm256_add_epi64(sums[0], _mm256_mul_epi32(weight, even));
            sums[1] = _mm256_add_epi64(sums[1], _mm256_mul_epi32(weight, odd));
        }
    }
}

/// Brings all sums to at most [`HALVED`] products.
#[inline]
#[target_feature(enable = "avx2")]
fn halve<const ROWS: usize>(c: Constants, sums: &mut [[__m256i; 2]; ROWS]) {
    for sum in sums.as_flattened_mut() {
        // The sign of a lane chooses.
        let step = _mm256_blendv_pd(c.down, c.up, _mm256_castsi256_pd(*sum));
        *sum = _mm256_add_epi64(*sum, _mm256_castpd_si256(step));
    }
}

/// Computes eight Montgomery reductions of sums of at most [`LAST`] products, even and odd columns
/// apart.
#[inline]
#[target_feature(enable = "avx2")]
fn reduced(c: Constants, even: __m256i, odd: __m256i) -> __m256i {
    let te = _mm256_mul_epi32(_mm256_mul_epu32(even, c.inverse), c.q);
    let to = _mm256_mul_epi32(_mm256_mul_epu32(odd, c.inverse), c.q);
    let high = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd);
    let t = _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(te), to);
    // Between -2q and 2q; a negative number is a large one here.
    let r = _mm256_sub_epi32(high, t);
    let r = _mm256_min_epu32(r, _mm256_add_epi32(r, c.q2));
    _mm256_min_epu32(r, _mm256_sub_epi32(r, c.q))
}
