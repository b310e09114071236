//! The AVX2 form of [`crate::transpose`]; the portable form there is its twin.
//!
//! Thirty-two columns at a time: sixteen registers hold sixteen bytes of two columns each, four
//! rounds of interleaving transpose them as bytes, and `vpmovmskb` then reads one row's bit of all
//! 32 columns at once.

// `unsafe` only calls a function that needs AVX2 after its detection, and loads from checked
// arrays.
#![allow(unsafe_code)]

use crate::transpose::{COLUMNS, portable};

/// Transposes a square with AVX2, or as [`portable`] does where there is none.
pub(crate) fn square(columns: &[u8], stride: usize, offset: usize, rows: &mut [u128; COLUMNS]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { x86::square(columns, stride, offset, rows) };
    }
    portable(columns, stride, offset, rows);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::transpose::COLUMNS;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    pub(super) fn square(columns: &[u8], stride: usize, offset: usize, rows: &mut [u128; COLUMNS]) {
        let words: &mut [u32; 4 * COLUMNS] = bytemuck::cast_mut(rows);
        for group in 0..4 {
            let mut lanes = [_mm256_setzero_si256(); 16];
            for (i, lane) in lanes.iter_mut().enumerate() {
                let low = load(columns, (32 * group + i) * stride + offset);
                let high = load(columns, (32 * group + 16 + i) * stride + offset);
                *lane = _mm256_set_m128i(high, low);
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
            for (byte, mut lane) in lanes.into_iter().enumerate() {
                for bit in (0..8).rev() {
                    words[4 * (8 * byte + bit) + group] = _mm256_movemask_epi8(lane) as u32;
                    lane = _mm256_add_epi8(lane, lane);
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn load(columns: &[u8], at: usize) -> __m128i {
        let bytes: &[u8; 16] = columns[at..at + 16].try_into().expect("sixteen bytes");
        // SAFETY: sixteen bytes are readable, and the load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }
}
