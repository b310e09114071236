//! The engines of x86-64: AES-NI on 128-bit registers and VAES on 256-bit ones.
//!
//! The key schedule uses `aesenclast` as a byte substitution: on a block of four equal columns the
//! row shift does nothing. Round keys of all [`KEYS`] keys are laid out round by round, so that a
//! 256-bit register holds the round keys of two neighbours while they are expanded, and one key is
//! broadcast from memory while it is used.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use super::run::{self, EvaluateSegment, GarbleSegment};
use super::{Engine, KEYS, Label, Wire};
use crate::circuit::LANES;
use std::arch::x86_64::*;

const ROUNDS: usize = 10;

/// The round keys of [`KEYS`] keys in one round.
type Round = [Label; KEYS];

/// Round keys of [`KEYS`] keys, round by round.
#[repr(C, align(64))]
pub(crate) struct Schedule {
    rounds: [Round; ROUNDS + 1],
    /// [`ROUNDS`], which the compiler must not know: it would unroll the rounds and then put the
    /// eight independent chains of a step one behind the other to save registers.
    last: usize,
}

/// The round constants of AES-128.
const CONSTANTS: [i32; ROUNDS] = [1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36];

/// Proof that the processor has VAES and AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VaesToken(());

/// Proof that the processor has AES-NI and SSSE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AesNiToken(());

impl VaesToken {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("aes");
        has.then_some(Self(()))
    }

    pub(super) fn garble(self, segment: &mut GarbleSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { vaes_garble(self, segment) }
    }

    pub(super) fn evaluate(self, segment: &mut EvaluateSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { vaes_evaluate(self, segment) }
    }
}

impl AesNiToken {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("aes") && is_x86_feature_detected!("ssse3");
        has.then_some(Self(()))
    }

    pub(super) fn garble(self, segment: &mut GarbleSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { aesni_garble(self, segment) }
    }

    pub(super) fn evaluate(self, segment: &mut EvaluateSegment<'_>) {
        // SAFETY: the token exists only on processors with these features.
        unsafe { aesni_evaluate(self, segment) }
    }
}

#[target_feature(enable = "avx2,vaes,aes")]
fn vaes_garble(e: VaesToken, segment: &mut GarbleSegment<'_>) {
    run::garble(e, segment);
}

#[target_feature(enable = "avx2,vaes,aes")]
fn vaes_evaluate(e: VaesToken, segment: &mut EvaluateSegment<'_>) {
    run::evaluate(e, segment);
}

#[target_feature(enable = "aes,ssse3")]
fn aesni_garble(e: AesNiToken, segment: &mut GarbleSegment<'_>) {
    run::garble(e, segment);
}

#[target_feature(enable = "aes,ssse3")]
fn aesni_evaluate(e: AesNiToken, segment: &mut EvaluateSegment<'_>) {
    run::evaluate(e, segment);
}

const PAIRS: usize = LANES / 2;

/// A round key in both halves of a register.
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

    #[inline(always)]
    fn load(self, wire: &Wire) -> Self::Vector {
        let from = wire.0.as_ptr().cast::<__m256i>();
        // SAFETY: a wire is 128 bytes aligned to 64; the token proves AVX2.
        unsafe { [*from, *from.add(1), *from.add(2), *from.add(3)] }
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, wire: &mut Wire) {
        let to = wire.0.as_mut_ptr().cast::<__m256i>();
        for i in 0..PAIRS {
            // SAFETY: a wire is 128 bytes aligned to 64; the token proves AVX2.
            unsafe { *to.add(i) = vector[i] };
        }
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
    fn read(self, bytes: &[u8; 16 * LANES]) -> Self::Vector {
        let from = bytes.as_ptr().cast::<__m256i>();
        // SAFETY: 128 bytes are read from 128 bytes, unaligned; the token proves AVX2.
        unsafe {
            [
                _mm256_loadu_si256(from),
                _mm256_loadu_si256(from.add(1)),
                _mm256_loadu_si256(from.add(2)),
                _mm256_loadu_si256(from.add(3)),
            ]
        }
    }

    #[inline(always)]
    fn write(self, vector: Self::Vector, bytes: &mut [u8; 16 * LANES]) {
        let to = bytes.as_mut_ptr().cast::<__m256i>();
        for i in 0..PAIRS {
            // SAFETY: 128 bytes are written to 128 bytes, unaligned; the token proves AVX2.
            unsafe { _mm256_storeu_si256(to.add(i), vector[i]) };
        }
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
    fn xor(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
        for i in 0..PAIRS {
            // SAFETY: the token proves AVX2.
            a[i] = unsafe { _mm256_xor_si256(a[i], b[i]) };
        }
        a
    }

    #[inline(always)]
    fn and(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
        for i in 0..PAIRS {
            // SAFETY: the token proves AVX2.
            a[i] = unsafe { _mm256_and_si256(a[i], b[i]) };
        }
        a
    }

    #[inline(always)]
    fn color(self, mut a: Self::Vector) -> Self::Vector {
        for i in 0..PAIRS {
            // SAFETY: the token proves AVX2.
            a[i] = unsafe {
                let low = _mm256_shuffle_epi32::<0>(a[i]);
                _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(low))
            };
        }
        a
    }

    #[inline(always)]
    fn sigma(self, mut a: Self::Vector) -> Self::Vector {
        for i in 0..PAIRS {
            // SAFETY: the token proves AVX2.
            a[i] = unsafe {
                let high = _mm256_set_epi64x(-1, 0, -1, 0);
                let swapped = _mm256_shuffle_epi32::<0x4e>(a[i]);
                _mm256_xor_si256(swapped, _mm256_and_si256(a[i], high))
            };
        }
        a
    }

    #[inline(always)]
    fn no_keys(self) -> Schedule {
        Schedule {
            rounds: [[0; KEYS]; ROUNDS + 1],
            last: std::hint::black_box(ROUNDS),
        }
    }

    #[inline(always)]
    fn expand(self, nonce: Label, counter: u64, schedule: &mut Schedule) {
        for (i, key) in schedule.rounds[0].iter_mut().enumerate() {
            *key = nonce ^ u128::from(counter + i as u64);
        }
        let at = schedule.rounds.as_mut_ptr().cast::<__m256i>();
        // SAFETY: the schedule is 11 rounds of four 256-bit words, aligned to 64 bytes; the token
        // proves AVX2 and VAES.
        unsafe {
            let mut keys = [*at, *at.add(1), *at.add(2), *at.add(3)];
            let rotate = _mm256_set1_epi32(0x0c0f_0e0d);
            for round in 0..ROUNDS {
                let constant = _mm256_set1_epi32(CONSTANTS[round]);
                for i in 0..PAIRS {
                    let word = _mm256_shuffle_epi8(keys[i], rotate);
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
        // SAFETY: the token proves AVX2 and VAES.
        unsafe {
            let (k, l) = (twice(&keys.rounds[0], i), twice(&keys.rounds[0], j));
            for n in 0..PAIRS {
                x[n] = _mm256_xor_si256(x[n], k);
                y[n] = _mm256_xor_si256(y[n], l);
            }
            for round in &keys.rounds[1..keys.last] {
                let (k, l) = (twice(round, i), twice(round, j));
                for n in 0..PAIRS {
                    x[n] = _mm256_aesenc_epi128(x[n], k);
                    y[n] = _mm256_aesenc_epi128(y[n], l);
                }
            }
            let (k, l) = (
                twice(&keys.rounds[ROUNDS], i),
                twice(&keys.rounds[ROUNDS], j),
            );
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

impl Engine for AesNiToken {
    type Vector = [__m128i; LANES];
    type Keys = Schedule;

    #[inline(always)]
    fn load(self, wire: &Wire) -> Self::Vector {
        // SAFETY: a label is 16 bytes and aligned; SSE2 is part of x86-64.
        std::array::from_fn(|l| unsafe { *(&raw const wire.0[l]).cast::<__m128i>() })
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, wire: &mut Wire) {
        for l in 0..LANES {
            // SAFETY: a label is 16 bytes and aligned; SSE2 is part of x86-64.
            unsafe { *(&raw mut wire.0[l]).cast::<__m128i>() = vector[l] };
        }
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
    fn read(self, bytes: &[u8; 16 * LANES]) -> Self::Vector {
        let from = bytes.as_ptr().cast::<__m128i>();
        // SAFETY: 128 bytes are read from 128 bytes, unaligned; SSE2 is part of x86-64.
        std::array::from_fn(|l| unsafe { _mm_loadu_si128(from.add(l)) })
    }

    #[inline(always)]
    fn write(self, vector: Self::Vector, bytes: &mut [u8; 16 * LANES]) {
        let to = bytes.as_mut_ptr().cast::<__m128i>();
        for l in 0..LANES {
            // SAFETY: 128 bytes are written to 128 bytes, unaligned; SSE2 is part of x86-64.
            unsafe { _mm_storeu_si128(to.add(l), vector[l]) };
        }
    }

    #[inline(always)]
    fn splat(self, label: Label) -> Self::Vector {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { [_mm_set_epi64x((label >> 64) as i64, label as i64); LANES] }
    }

    #[inline(always)]
    fn xor(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
        for l in 0..LANES {
            // SAFETY: SSE2 is part of x86-64.
            a[l] = unsafe { _mm_xor_si128(a[l], b[l]) };
        }
        a
    }

    #[inline(always)]
    fn and(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
        for l in 0..LANES {
            // SAFETY: SSE2 is part of x86-64.
            a[l] = unsafe { _mm_and_si128(a[l], b[l]) };
        }
        a
    }

    #[inline(always)]
    fn color(self, mut a: Self::Vector) -> Self::Vector {
        for l in 0..LANES {
            // SAFETY: SSE2 is part of x86-64.
            a[l] = unsafe {
                let low = _mm_shuffle_epi32::<0>(a[l]);
                _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(low))
            };
        }
        a
    }

    #[inline(always)]
    fn sigma(self, mut a: Self::Vector) -> Self::Vector {
        for l in 0..LANES {
            // SAFETY: SSE2 is part of x86-64.
            a[l] = unsafe {
                let high = _mm_set_epi64x(-1, 0);
                _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(a[l]), _mm_and_si128(a[l], high))
            };
        }
        a
    }

    #[inline(always)]
    fn no_keys(self) -> Schedule {
        Schedule {
            rounds: [[0; KEYS]; ROUNDS + 1],
            last: std::hint::black_box(ROUNDS),
        }
    }

    #[inline(always)]
    fn expand(self, nonce: Label, counter: u64, schedule: &mut Schedule) {
        for i in 0..KEYS {
            let key = nonce ^ u128::from(counter + i as u64);
            schedule.rounds[0][i] = key;
            // SAFETY: labels are 16 bytes and aligned; the token proves AES-NI and SSSE3.
            unsafe {
                let mut k = _mm_set_epi64x((key >> 64) as i64, key as i64);
                let rotate = _mm_set1_epi32(0x0c0f_0e0d);
                for round in 0..ROUNDS {
                    let constant = _mm_set1_epi32(CONSTANTS[round]);
                    let word = _mm_aesenclast_si128(_mm_shuffle_epi8(k, rotate), constant);
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
    fn encrypt_one(self, keys: &Schedule, i: usize, mut x: Self::Vector) -> Self::Vector {
        // SAFETY: labels are 16 bytes and aligned; the token proves AES-NI.
        unsafe {
            let k = *(&raw const keys.rounds[0][i]).cast::<__m128i>();
            for l in 0..LANES {
                x[l] = _mm_xor_si128(x[l], k);
            }
            for round in &keys.rounds[1..keys.last] {
                let k = *(&raw const round[i]).cast::<__m128i>();
                for l in 0..LANES {
                    x[l] = _mm_aesenc_si128(x[l], k);
                }
            }
            let k = *(&raw const keys.rounds[ROUNDS][i]).cast::<__m128i>();
            for l in 0..LANES {
                x[l] = _mm_aesenclast_si128(x[l], k);
            }
        }
        x
    }
}
