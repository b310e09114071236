//! The engines of x86-64: VAES on 256-bit registers and AES-NI on 128-bit ones.
#![allow(unsafe_code)] // Vector instructions, called only after detection.

use super::{CONSTANTS, Engine, EngineJob, Key, LANES, ROUNDS, WIDE};
use std::arch::x86_64::*;

/// The bytes of a rotated last column, for every column.
const ROTATE: i32 = 0x0c0f_0e0d;

/// Proof that the processor has VAES and AVX2.
///
/// Holds [`ROUNDS`], which the compiler must not know: it would unroll the rounds and then put the
/// independent chains of a step one after the other to save registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vaes(usize);

/// Proof that the processor has AES-NI and SSSE3. Holds [`ROUNDS`] likewise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AesNi(usize);

impl Vaes {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("aes");
        has.then(|| Self(std::hint::black_box(ROUNDS)))
    }

    pub(super) fn run<W: EngineJob>(self, job: W) -> W::Output {
        #[target_feature(enable = "avx2,vaes,aes")]
        fn compiled<W: EngineJob>(e: Vaes, job: W) -> W::Output {
            job.run(e)
        }
        // SAFETY: the token exists only on processors with these features.
        unsafe { compiled(self, job) }
    }
}

impl AesNi {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("aes") && is_x86_feature_detected!("ssse3");
        has.then(|| Self(std::hint::black_box(ROUNDS)))
    }

    pub(super) fn run<W: EngineJob>(self, job: W) -> W::Output {
        #[target_feature(enable = "aes,ssse3")]
        fn compiled<W: EngineJob>(e: AesNi, job: W) -> W::Output {
            job.run(e)
        }
        // SAFETY: the token exists only on processors with these features.
        unsafe { compiled(self, job) }
    }
}

/// Expands a key; `aesenclast` serves as a byte substitution, since on a block of four equal
/// columns the row shift does nothing.
///
/// # Safety
/// The processor has AES-NI and SSSE3.
#[inline(always)]
unsafe fn expand(key: u128) -> Key {
    let mut rounds = [key; ROUNDS + 1];
    // SAFETY: the caller vouches for the instructions; round keys are 16 bytes.
    unsafe {
        let mut k = _mm_set_epi64x((key >> 64) as i64, key as i64);
        for (i, constant) in CONSTANTS.into_iter().enumerate() {
            let word = _mm_shuffle_epi8(k, _mm_set1_epi32(ROTATE));
            let word = _mm_aesenclast_si128(word, _mm_set1_epi32(i32::from(constant)));
            k = _mm_xor_si128(k, _mm_slli_si128::<4>(k));
            k = _mm_xor_si128(k, _mm_slli_si128::<8>(k));
            k = _mm_xor_si128(k, word);
            _mm_storeu_si128((&raw mut rounds[i + 1]).cast(), k);
        }
    }
    Key(rounds)
}

/// A copy of a vector with every register `i` replaced. A loop and not a closure: a closure would
/// be compiled without the engine's instructions.
macro_rules! each {
    ($vector:expr, $i:ident, $value:expr) => {{
        let mut vector = $vector;
        for $i in 0..vector.len() {
            vector[$i] = $value;
        }
        vector
    }};
}

/// An engine whose vector is some registers, from the instructions that work on one register.
macro_rules! engine {
    ($engine:ident, $register:ty, $count:expr,
     memory: $load:ident, $store:ident,
     bits: $xor:ident, $and:ident, words: $shuffle:ident, high: $high:expr,
     aes: $round:ident, $last:ident, key: $key:expr) => {
        impl $engine {
            #[inline(always)]
            fn round_key(self, key: &Key, round: usize) -> $register {
                let block = (&raw const key.0[round]).cast::<__m128i>();
                // SAFETY: a round key is 16 bytes and aligned; the token proves the instruction.
                unsafe { $key(*block) }
            }
        }

        // SAFETY comments below: "proved" is short for the token proving the instructions.
        impl Engine for $engine {
            type Vector = [$register; $count];

            #[inline(always)]
            fn read(self, bytes: &[u8; WIDE]) -> Self::Vector {
                let from = bytes.as_ptr().cast::<$register>();
                // SAFETY: proved; the registers together are as long as the array, unaligned.
                each!(self.splat(0), i, unsafe { $load(from.add(i)) })
            }

            #[inline(always)]
            fn write(self, vector: Self::Vector, bytes: &mut [u8; WIDE]) {
                let to = bytes.as_mut_ptr().cast::<$register>();
                for i in 0..$count {
                    // SAFETY: as for reading, from a unique reference.
                    unsafe { $store(to.add(i), vector[i]) };
                }
            }

            #[inline(always)]
            fn splat(self, block: u128) -> Self::Vector {
                // SAFETY: proved.
                unsafe {
                    let low = _mm_set_epi64x((block >> 64) as i64, block as i64);
                    [$key(low); $count]
                }
            }

            #[inline(always)]
            fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: proved.
                each!(a, i, unsafe { $xor(a[i], b[i]) })
            }

            #[inline(always)]
            fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: proved.
                each!(a, i, unsafe { $and(a[i], b[i]) })
            }

            #[inline(always)]
            fn sigma(self, a: Self::Vector) -> Self::Vector {
                // SAFETY: proved.
                each!(a, i, unsafe {
                    $xor($shuffle::<0x4e>(a[i]), $and(a[i], $high))
                })
            }

            #[inline(always)]
            fn expand(self, key: u128) -> Key {
                // SAFETY: proved.
                unsafe { expand(key) }
            }

            #[inline(always)]
            fn encrypt(self, key: &Key, x: Self::Vector) -> Self::Vector {
                let mut x = self.xor(x, [self.round_key(key, 0); $count]);
                // SAFETY: proved.
                unsafe {
                    for round in 1..self.0.min(ROUNDS) {
                        let k = self.round_key(key, round);
                        x = each!(x, i, $round(x[i], k));
                    }
                    let k = self.round_key(key, ROUNDS);
                    each!(x, i, $last(x[i], k))
                }
            }

            #[inline(always)]
            fn encrypt_two(
                self,
                keys: [&Key; 2],
                x: Self::Vector,
                y: Self::Vector,
            ) -> (Self::Vector, Self::Vector) {
                let mut x = self.xor(x, [self.round_key(keys[0], 0); $count]);
                let mut y = self.xor(y, [self.round_key(keys[1], 0); $count]);
                // SAFETY: proved.
                unsafe {
                    for round in 1..self.0.min(ROUNDS) {
                        let (k, l) = (
                            self.round_key(keys[0], round),
                            self.round_key(keys[1], round),
                        );
                        x = each!(x, i, $round(x[i], k));
                        y = each!(y, i, $round(y[i], l));
                    }
                    let (k, l) = (
                        self.round_key(keys[0], ROUNDS),
                        self.round_key(keys[1], ROUNDS),
                    );
                    (each!(x, i, $last(x[i], k)), each!(y, i, $last(y[i], l)))
                }
            }
        }
    };
}

engine! {
    Vaes, __m256i, LANES / 2,
    memory: _mm256_loadu_si256, _mm256_storeu_si256,
    bits: _mm256_xor_si256, _mm256_and_si256,
    words: _mm256_shuffle_epi32, high: _mm256_set_epi64x(-1, 0, -1, 0),
    aes: _mm256_aesenc_epi128, _mm256_aesenclast_epi128, key: _mm256_broadcastsi128_si256
}

engine! {
    AesNi, __m128i, LANES,
    memory: _mm_loadu_si128, _mm_storeu_si128,
    bits: _mm_xor_si128, _mm_and_si128,
    words: _mm_shuffle_epi32, high: _mm_set_epi64x(-1, 0),
    aes: _mm_aesenc_si128, _mm_aesenclast_si128, key: std::convert::identity
}
