//! The engines of x86-64: VAES on 256-bit registers and AES-NI on 128-bit ones.
//!
//! The key schedule uses `aesenclast` as a byte substitution: on a block of four equal columns the
//! row shift does nothing. Round keys of all [`KEYS`] keys are laid out round by round, so that a
//! 256-bit register holds the round keys of two neighbours while they are expanded, and one key is
//! broadcast from memory while it is used.

mod aesni;
mod vaes;

pub(super) use aesni::AesNiToken;
pub(super) use vaes::VaesToken;

use super::{KEYS, Label};

const ROUNDS: usize = 10;
/// The round constants of AES-128.
const CONSTANTS: [i32; ROUNDS] = [1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36];
/// The bytes of a rotated last column, for every column.
const ROTATE: i32 = 0x0c0f_0e0d;

/// The round keys of [`KEYS`] keys in one round.
type Round = [Label; KEYS];

/// Round keys of [`KEYS`] keys, round by round.
#[repr(C, align(64))]
pub(crate) struct Schedule {
    rounds: [Round; ROUNDS + 1],
    /// [`ROUNDS`], which the compiler must not know: it would unroll the rounds and then put the
    /// eight independent chains of a step one after the other to save registers.
    last: usize,
}

impl Schedule {
    #[inline(always)]
    fn empty() -> Self {
        Self {
            rounds: [[0; KEYS]; ROUNDS + 1],
            last: std::hint::black_box(ROUNDS),
        }
    }

    /// Sets the keys themselves, `nonce XOR (counter + i)`, to be expanded.
    #[inline(always)]
    fn set(&mut self, nonce: Label, counter: u64) {
        for (i, key) in self.rounds[0].iter_mut().enumerate() {
            *key = nonce ^ Label::from(counter + i as u64);
        }
    }
}

/// The methods of an engine that do the same to every register of a vector.
///
/// Invoked inside `impl Engine` for a token that proves the instructions named.
macro_rules! lanewise {
    ($register:ty, $count:expr,
     load: $load:ident, $loadu:ident, store: $store:ident, $storeu:ident,
     bits: $xor:ident, $and:ident, words: $shuffle:ident, $left:ident, $right:ident,
     high: $high:expr) => {
        #[inline(always)]
        fn load(self, wire: &Wire) -> Self::Vector {
            let from = wire.0.as_ptr().cast::<$register>();
            let mut vector = self.splat(0);
            for i in 0..$count {
                // SAFETY: a wire is 128 bytes aligned to 64, as long as all registers together;
                // the token proves the instruction.
                vector[i] = unsafe { $load(from.add(i)) };
            }
            vector
        }

        #[inline(always)]
        fn store(self, vector: Self::Vector, wire: &mut Wire) {
            let to = wire.0.as_mut_ptr().cast::<$register>();
            for i in 0..$count {
                // SAFETY: as for loading, from a unique reference.
                unsafe { $store(to.add(i), vector[i]) };
            }
        }

        #[inline(always)]
        fn read(self, bytes: &[u8; 16 * LANES]) -> Self::Vector {
            let from = bytes.as_ptr().cast::<$register>();
            let mut vector = self.splat(0);
            for i in 0..$count {
                // SAFETY: 128 bytes are read from 128 bytes, unaligned; the token proves the
                // instruction.
                vector[i] = unsafe { $loadu(from.add(i)) };
            }
            vector
        }

        #[inline(always)]
        fn write(self, vector: Self::Vector, bytes: &mut [u8; 16 * LANES]) {
            let to = bytes.as_mut_ptr().cast::<$register>();
            for i in 0..$count {
                // SAFETY: 128 bytes are written to 128 bytes, unaligned; the token proves the
                // instruction.
                unsafe { $storeu(to.add(i), vector[i]) };
            }
        }

        #[inline(always)]
        fn xor(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
            for i in 0..$count {
                // SAFETY: the token proves the instruction.
                a[i] = unsafe { $xor(a[i], b[i]) };
            }
            a
        }

        #[inline(always)]
        fn and(self, mut a: Self::Vector, b: Self::Vector) -> Self::Vector {
            for i in 0..$count {
                // SAFETY: the token proves the instruction.
                a[i] = unsafe { $and(a[i], b[i]) };
            }
            a
        }

        #[inline(always)]
        fn color(self, mut a: Self::Vector) -> Self::Vector {
            for i in 0..$count {
                // SAFETY: the token proves the instructions.
                a[i] = unsafe { $right::<31>($left::<31>($shuffle::<0>(a[i]))) };
            }
            a
        }

        #[inline(always)]
        fn sigma(self, mut a: Self::Vector) -> Self::Vector {
            for i in 0..$count {
                // SAFETY: the token proves the instructions.
                a[i] = unsafe { $xor($shuffle::<0x4e>(a[i]), $and(a[i], $high)) };
            }
            a
        }
    };
}
use lanewise;
