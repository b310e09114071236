//! The sums of [`super`] on 256-bit vectors: four entries at a time, or eight short ones.
#![allow(unsafe_code)] // Vector loads inside a table whose length is checked.

use super::{NARROW_WORD, word};
use crate::modulus;
use std::arch::x86_64::*;

/// Entries of a vector.
const LANES: usize = 4;

pub(super) fn sums(doubled: &[i64], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    // SAFETY: `Kernel::Avx2` is only made where the instructions exist.
    unsafe { run(doubled, strings, shifts, out) }
}

#[target_feature(enable = "avx2")]
fn run(doubled: &[i64], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    // The number of entries behind a word is a constant, so that the loop over them is unrolled.
    match doubled.len() / 2 {
        16 => each::<16>(doubled, strings, shifts, out),
        32 => each::<32>(doubled, strings, shifts, out),
        _ => each::<64>(doubled, strings, shifts, out),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn each<const WORD: usize>(doubled: &[i64], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    let size = doubled.len() / 2;
    let strings = strings.chunks_exact(size / 8);
    for ((string, &shift), out) in strings.zip(shifts).zip(out) {
        let (entries, _) = doubled[usize::from(shift)..][..size].as_chunks::<WORD>();
        let mut sums = [_mm256_setzero_si256(); 2];
        for (bytes, entries) in string.chunks_exact(WORD / 8).zip(entries) {
            add_selected(word(bytes), entries, &mut sums);
        }
        let sum = _mm256_add_epi64(sums[0], sums[1]);
        let sum = _mm_add_epi64(
            _mm256_castsi256_si128(sum),
            _mm256_extracti128_si256::<1>(sum),
        );
        let sum = _mm_cvtsi128_si64(sum) + _mm_extract_epi64::<1>(sum);
        *out = modulus::from_signed(sum);
    }
}

/// Adds the entries whose bits are set, the last four first: that way the deciding bits come to the
/// top of the lanes by moving left.
#[inline]
#[target_feature(enable = "avx2")]
fn add_selected<const WORD: usize>(bits: u64, entries: &[i64; WORD], sums: &mut [__m256i; 2]) {
    let first = (64 + LANES - 1 - WORD) as i64;
    let moves = _mm256_setr_epi64x(first, first - 1, first - 2, first - 3);
    let mut lanes = _mm256_sllv_epi64(_mm256_set1_epi64x(bits as i64), moves);
    let (fours, _) = entries.as_chunks::<LANES>();
    for i in (0..WORD / LANES).rev() {
        // SAFETY: four numbers of 64 bits.
        let four = unsafe { _mm256_loadu_si256(fours[i].as_ptr().cast()) };
        let chosen = _mm256_blendv_pd(
            _mm256_setzero_pd(),
            _mm256_castsi256_pd(four),
            _mm256_castsi256_pd(lanes),
        );
        sums[i % 2] = _mm256_add_epi64(sums[i % 2], _mm256_castpd_si256(chosen));
        lanes = _mm256_slli_epi64::<{ LANES as i32 }>(lanes);
    }
}

/// Short entries in a vector.
const NARROW_LANES: usize = 8;

pub(super) fn narrow_sums(doubled: &[i32], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    // SAFETY: `Kernel::Avx2` is only made where the instructions exist.
    unsafe { run_narrow(doubled, strings, shifts, out) }
}

#[target_feature(enable = "avx2")]
fn run_narrow(doubled: &[i32], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    let size = doubled.len() / 2;
    let moves = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    let strings = strings.chunks_exact(size / 8);
    for ((string, &shift), out) in strings.zip(shifts).zip(out) {
        let (entries, _) = doubled[usize::from(shift)..][..size].as_chunks::<NARROW_WORD>();
        let (words, _) = string.as_chunks::<{ NARROW_WORD / 8 }>();
        let mut sums = [_mm256_setzero_si256(); 2];
        for (word, entries) in words.iter().zip(entries) {
            let bits = _mm256_set1_epi32(i32::from_le_bytes(*word));
            let mut lanes = _mm256_sllv_epi32(bits, moves);
            let (eights, _) = entries.as_chunks::<NARROW_LANES>();
            for i in (0..NARROW_WORD / NARROW_LANES).rev() {
                // SAFETY: eight numbers of 32 bits.
                let eight = unsafe { _mm256_loadu_si256(eights[i].as_ptr().cast()) };
                let chosen = _mm256_blendv_ps(
                    _mm256_setzero_ps(),
                    _mm256_castsi256_ps(eight),
                    _mm256_castsi256_ps(lanes),
                );
                sums[i % 2] = _mm256_add_epi32(sums[i % 2], _mm256_castps_si256(chosen));
                lanes = _mm256_slli_epi32::<{ NARROW_LANES as i32 }>(lanes);
            }
        }
        // Any sum of entries fits 32 bits, so halves can be added as they are.
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        let four = _mm_add_epi32(
            _mm256_castsi256_si128(sum),
            _mm256_extracti128_si256::<1>(sum),
        );
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b0100_1110>(four));
        let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b1011_0001>(two));
        *out = modulus::from_signed(_mm_cvtsi128_si32(one).into());
    }
}
