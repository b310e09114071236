//! AES-NI: a label in a register, eight labels in eight.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use super::super::run::{self, EvaluateSegment, GarbleSegment};
use super::super::{Engine, KEYS, Label, Wire};
use super::{CONSTANTS, ROTATE, ROUNDS, Round, Schedule, lanewise};
use crate::circuit::LANES;
use std::arch::x86_64::*;

/// Proof that the processor has AES-NI and SSSE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AesNiToken(());

impl AesNiToken {
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("aes") && is_x86_feature_detected!("ssse3");
        has.then_some(Self(()))
    }

    pub(crate) fn garble(self, segment: &mut GarbleSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { garble(self, segment) }
    }

    pub(crate) fn evaluate(self, segment: &mut EvaluateSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { evaluate(self, segment) }
    }
}

#[target_feature(enable = "aes,ssse3")]
fn garble(e: AesNiToken, segment: &mut GarbleSegment<'_>) {
    run::garble(e, segment);
}

#[target_feature(enable = "aes,ssse3")]
fn evaluate(e: AesNiToken, segment: &mut EvaluateSegment<'_>) {
    run::evaluate(e, segment);
}

/// Loads a round key into a register.
#[inline(always)]
fn once(round: &Round, key: usize) -> __m128i {
    // SAFETY: a label is 16 bytes and aligned; SSE2 is part of x86-64.
    unsafe { *(&raw const round[key]).cast::<__m128i>() }
}

impl Engine for AesNiToken {
    type Vector = [__m128i; LANES];
    type Keys = Schedule;

    lanewise! {
        __m128i, LANES,
        load: _mm_load_si128, _mm_loadu_si128,
        store: _mm_store_si128, _mm_storeu_si128,
        bits: _mm_xor_si128, _mm_and_si128,
        words: _mm_shuffle_epi32, _mm_slli_epi32, _mm_srai_epi32,
        high: _mm_set_epi64x(-1, 0)
    }

    #[inline(always)]
    fn gather(self, labels: [&Label; LANES]) -> Self::Vector {
        let mut vector = self.splat(0);
        for l in 0..LANES {
            let from = (&raw const *labels[l]).cast::<__m128i>();
            // SAFETY: a label is 16 bytes; SSE2 is part of x86-64.
            vector[l] = unsafe { _mm_loadu_si128(from) };
        }
        vector
    }

    #[inline(always)]
    fn splat(self, label: Label) -> Self::Vector {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { [_mm_set_epi64x((label >> 64) as i64, label as i64); LANES] }
    }

    #[inline(always)]
    fn no_keys(self) -> Schedule {
        Schedule::empty()
    }

    #[inline(always)]
    fn expand(self, nonce: Label, counter: u64, schedule: &mut Schedule) {
        schedule.set(nonce, counter);
        for i in 0..KEYS {
            let mut k = once(&schedule.rounds[0], i);
            for round in 0..ROUNDS {
                // SAFETY: labels are 16 bytes and aligned; the token proves AES-NI and SSSE3.
                unsafe {
                    let word = _mm_shuffle_epi8(k, _mm_set1_epi32(ROTATE));
                    let word = _mm_aesenclast_si128(word, _mm_set1_epi32(CONSTANTS[round]));
                    k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
                    k = _mm_xor_si128(k, _mm_slli_si128::<8>(k));
                    k = _mm_xor_si128(k, word);
                    *(&raw mut schedule.rounds[round + 1][i]).cast::<__m128i>() = k;
                }
            }
        }
    }

    #[inline(always)]
    fn encrypt(
        self,
        keys: &Schedule,
        i: usize,
        j: usize,
        x: Self::Vector,
        y: Self::Vector,
    ) -> (Self::Vector, Self::Vector) {
        (self.encrypt_one(keys, i, x), self.encrypt_one(keys, j, y))
    }

    #[inline(always)]
    fn encrypt_one(self, keys: &Schedule, i: usize, x: Self::Vector) -> Self::Vector {
        let first = once(&keys.rounds[0], i);
        let mut x = self.xor(x, [first; LANES]);
        // SAFETY: the token proves AES-NI.
        unsafe {
            for round in &keys.rounds[1..keys.last] {
                let k = once(round, i);
                for l in 0..LANES {
                    x[l] = _mm_aesenc_si128(x[l], k);
                }
            }
            let k = once(&keys.rounds[ROUNDS], i);
            for l in 0..LANES {
                x[l] = _mm_aesenclast_si128(x[l], k);
            }
        }
        x
    }
}
