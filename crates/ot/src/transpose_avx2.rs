//! Transposing a tile with 256-bit registers.
//!
//! Eight columns at a time, squares of 8 × 8 bits are transposed by three rounds of swaps between
//! registers: then byte `b` of register `r` belongs to row `8·b + r` and holds the bits of these
//! eight columns. The rest is a transposition of bytes, 16 × 16 in each half of a register, for
//! each `r`: four rounds of interleaving.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use crate::transpose::{Scratch, TILE, portable};

/// Transposes a tile with AVX2, or as [`portable`] does where there is none.
pub(crate) fn tile(
    columns: &[u8],
    stride: usize,
    offset: usize,
    scratch: &mut Scratch,
    rows: &mut [u128; TILE],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { x86::tile(columns, stride, offset, scratch, rows) };
    }
    portable(columns, stride, offset, scratch, rows);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::transpose::{COLUMNS, Scratch, TILE, TILE_BYTES};
    use std::arch::x86_64::*;

    /// Columns whose bits make a byte of a row, and such bytes of a row.
    const EIGHT: usize = 8;
    const BYTES: usize = COLUMNS / EIGHT;

    #[target_feature(enable = "avx2")]
    pub(super) fn tile(
        columns: &[u8],
        stride: usize,
        offset: usize,
        scratch: &mut Scratch,
        rows: &mut [u128; TILE],
    ) {
        // Register `r` of group `g` goes to `16·r + g`, so that a byte transposition reads on.
        for group in 0..BYTES {
            let mut lanes = [_mm256_setzero_si256(); EIGHT];
            for (i, lane) in lanes.iter_mut().enumerate() {
                let at = (EIGHT * group + i) * stride + offset;
                let bytes = columns[at..at + TILE_BYTES].try_into();
                *lane = load(bytes.expect("a tile's column"));
            }
            swap::<4>(&mut lanes, _mm256_set1_epi8(0x0f));
            swap::<2>(&mut lanes, _mm256_set1_epi8(0x33));
            swap::<1>(&mut lanes, _mm256_set1_epi8(0x55));
            for (r, lane) in lanes.into_iter().enumerate() {
                store(lane, &mut scratch[BYTES * r + group]);
            }
        }
        let rows: &mut [[u8; 16]; TILE] = bytemuck::cast_mut(rows);
        for (r, bytes) in scratch.chunks_exact(BYTES).enumerate() {
            let mut lanes = [_mm256_setzero_si256(); BYTES];
            for (lane, bytes) in lanes.iter_mut().zip(bytes) {
                *lane = load(bytes);
            }
            // Each round rotates the 8-bit index (register, byte) by one bit; four rounds exchange
            // the halves.
            for _ in 0..4 {
                let before = lanes;
                for i in 0..8 {
                    lanes[2 * i] = _mm256_unpacklo_epi8(before[i], before[i + 8]);
                    lanes[2 * i + 1] = _mm256_unpackhi_epi8(before[i], before[i + 8]);
                }
            }
            for (byte, lane) in lanes.into_iter().enumerate() {
                let row = EIGHT * byte + r;
                store_half(_mm256_castsi256_si128(lane), &mut rows[row]);
                let high = _mm256_extracti128_si256::<1>(lane);
                store_half(high, &mut rows[TILE / 2 + row]);
            }
        }
    }

    /// Swaps the blocks of `SIZE` bits off the diagonal of each square.
    #[target_feature(enable = "avx2")]
    fn swap<const SIZE: i32>(lanes: &mut [__m256i; EIGHT], mask: __m256i) {
        let size = SIZE as usize;
        for i in 0..EIGHT {
            if i & size == 0 {
                let (a, b) = (lanes[i], lanes[i + size]);
                let moved = _mm256_srli_epi16::<SIZE>(a);
                let change = _mm256_and_si256(_mm256_xor_si256(moved, b), mask);
                lanes[i] = _mm256_xor_si256(a, _mm256_slli_epi16::<SIZE>(change));
                lanes[i + size] = _mm256_xor_si256(b, change);
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; TILE_BYTES]) -> __m256i {
        // SAFETY: as many bytes are readable, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn store(lane: __m256i, bytes: &mut [u8; TILE_BYTES]) {
        // SAFETY: as many bytes are writable, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), lane) };
    }

    #[target_feature(enable = "avx2")]
    fn store_half(half: __m128i, row: &mut [u8; 16]) {
        // SAFETY: sixteen bytes are writable, and the store needs no alignment.
        unsafe { _mm_storeu_si128(row.as_mut_ptr().cast(), half) };
    }
}
