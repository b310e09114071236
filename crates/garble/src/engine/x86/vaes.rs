//! VAES: two labels in a register, eight labels in four.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use super::super::run::{self, EvaluateSegment, GarbleSegment};
use super::super::{Engine, Label, Wire};
use super::{CONSTANTS, ROTATE, ROUNDS, Round, Schedule, lanewise};
use crate::circuit::LANES;
use std::arch::x86_64::*;

/// Registers of a vector.
const PAIRS: usize = LANES / 2;

/// Proof that the processor has VAES and AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VaesToken(());

impl VaesToken {
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("aes");
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

#[target_feature(enable = "avx2,vaes,aes")]
fn garble(e: VaesToken, segment: &mut GarbleSegment<'_>) {
    run::garble(e, segment);
}

#[target_feature(enable = "avx2,vaes,aes")]
fn evaluate(e: VaesToken, segment: &mut EvaluateSegment<'_>) {
    run::evaluate(e, segment);
}

/// Loads a round key into both halves of a register.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn twice(round: &Round, key: usize) -> __m256i {
    let from = (&raw const round[key]).cast::<__m128i>();
    // SAFETY: a label is 16 bytes and aligned; the caller vouches for AVX2.
    unsafe { _mm256_broadcastsi128_si256(*from) }
}

impl Engine for VaesToken {
    type Vector = [__m256i; PAIRS];
    type Keys = Schedule;

    lanewise! {
        __m256i, PAIRS,
        load: _mm256_load_si256, _mm256_loadu_si256,
        store: _mm256_store_si256, _mm256_storeu_si256,
        bits: _mm256_xor_si256, _mm256_and_si256,
        words: _mm256_shuffle_epi32, _mm256_slli_epi32, _mm256_srai_epi32,
        high: _mm256_set_epi64x(-1, 0, -1, 0)
    }

    #[inline(always)]
    fn gather(self, labels: [&Label; LANES]) -> Self::Vector {
        let mut vector = self.splat(0);
        for i in 0..PAIRS {
            let low = (&raw const *labels[2 * i]).cast::<__m128i>();
            let high = (&raw const *labels[2 * i + 1]).cast::<__m128i>();
            // SAFETY: a label is 16 bytes; the token proves AVX2.
            vector[i] = unsafe { _mm256_set_m128i(_mm_loadu_si128(high), _mm_loadu_si128(low)) };
        }
        vector
    }

    #[inline(always)]
    fn splat(self, label: Label) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe {
            let low = _mm_set_epi64x((label >> 64) as i64, label as i64);
            [_mm256_broadcastsi128_si256(low); PAIRS]
        }
    }

    #[inline(always)]
    fn no_keys(self) -> Schedule {
        Schedule::empty()
    }

    #[inline(always)]
    fn expand(self, nonce: Label, counter: u64, schedule: &mut Schedule) {
        schedule.set(nonce, counter);
        let at = schedule.rounds.as_mut_ptr().cast::<__m256i>();
        // SAFETY: the schedule is 11 rounds of four 256-bit words, aligned to 64 bytes; the token
        // proves AVX2 and VAES.
        unsafe {
            let mut keys = [*at, *at.add(1), *at.add(2), *at.add(3)];
            for round in 0..ROUNDS {
                let constant = _mm256_set1_epi32(CONSTANTS[round]);
                for i in 0..PAIRS {
                    let word = _mm256_shuffle_epi8(keys[i], _mm256_set1_epi32(ROTATE));
                    let word = _mm256_aesenclast_epi128(word, constant);
                    let mut k = keys[i];
                    k = _mm256_xor_si256(k, _mm256_slli_si256::<4>(k));
                    k = _mm256_xor_si256(k, _mm256_slli_si256::<8>(k));
                    keys[i] = _mm256_xor_si256(k, word);
                    *at.add(PAIRS * (round + 1) + i) = keys[i];
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
        mut x: Self::Vector,
        mut y: Self::Vector,
    ) -> (Self::Vector, Self::Vector) {
        let rounds = &keys.rounds;
        // SAFETY: the token proves AVX2 and VAES.
        unsafe {
            let (k, l) = (twice(&rounds[0], i), twice(&rounds[0], j));
            for n in 0..PAIRS {
                x[n] = _mm256_xor_si256(x[n], k);
                y[n] = _mm256_xor_si256(y[n], l);
            }
            for round in &rounds[1..keys.last] {
                let (k, l) = (twice(round, i), twice(round, j));
                for n in 0..PAIRS {
                    x[n] = _mm256_aesenc_epi128(x[n], k);
                    y[n] = _mm256_aesenc_epi128(y[n], l);
                }
            }
            let (k, l) = (twice(&rounds[ROUNDS], i), twice(&rounds[ROUNDS], j));
            for n in 0..PAIRS {
                x[n] = _mm256_aesenclast_epi128(x[n], k);
                y[n] = _mm256_aesenclast_epi128(y[n], l);
            }
        }
        (x, y)
    }

    #[inline(always)]
    fn encrypt_one(self, keys: &Schedule, i: usize, mut x: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2 and VAES.
        unsafe {
            let k = twice(&keys.rounds[0], i);
            for n in 0..PAIRS {
                x[n] = _mm256_xor_si256(x[n], k);
            }
            for round in &keys.rounds[1..keys.last] {
                let k = twice(round, i);
                for n in 0..PAIRS {
                    x[n] = _mm256_aesenc_epi128(x[n], k);
                }
            }
            let k = twice(&keys.rounds[ROUNDS], i);
            for n in 0..PAIRS {
                x[n] = _mm256_aesenclast_epi128(x[n], k);
            }
        }
        x
    }
}
