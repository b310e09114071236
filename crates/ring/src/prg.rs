//! Pseudorandom expansion: AES-128 in counter mode.
//!
//! A [`Prg`] stretches a seed. There are two kinds:
//!
//! * a *public* seed of 16 bytes stands for a long random string that both parties expand (the
//!   `a`-part of a seeded ciphertext). The output must be the same everywhere, so its byte order is
//!   fixed;
//! * a *secret* seed of 32 bytes is where every mask, key and label comes from: a key, and the
//!   first counter. A peer sees parts of the output of many generators. If all of them began at
//!   counter zero, one table of guessed keys would serve against all at once, and `2^b` generators
//!   would leave `128 - b` bits. With a secret first counter each is a target of its own.
//!
//! Tests inject a generator with a fixed seed; production code takes [`Prg::from_os`]. Nothing in
//! the program can reseed it.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;
use zeroize::Zeroize;

/// Bytes of a seed.
pub const SEED_BYTES: usize = 16;
/// A seed of a [`Prg`] that may be known, or that is used at one place only.
pub type Seed = [u8; SEED_BYTES];
/// Bytes of a secret seed.
pub const SECRET_SEED_BYTES: usize = 32;
/// A secret seed of a [`Prg`]: a key, then the first counter.
pub type SecretSeed = [u8; SECRET_SEED_BYTES];

/// Blocks encrypted per call: wide enough for the AES pipeline, small enough for the first cache.
const BLOCKS: usize = 64;
const BUFFER: usize = 16 * BLOCKS;

/// AES-128 in counter mode as a random generator.
///
/// The counter is 128 bits, little-endian, and starts at zero or where a secret seed says. Byte `i`
/// of the output is a fixed function of the seed, regardless of the sizes of the reads before it,
/// as long as reads of words and of bytes are not mixed at odd offsets.
pub struct Prg {
    cipher: Aes128Enc,
    counter: u128,
    buffer: [u8; BUFFER],
    used: usize,
}

impl Prg {
    /// Makes a generator that begins at counter zero: for public seeds and for tests.
    pub fn new(seed: &Seed) -> Self {
        Self::starting_at(seed, 0)
    }

    /// Makes a generator that begins at the counter in a secret seed.
    pub fn secret(seed: &SecretSeed) -> Self {
        let (key, start) = seed.split_at(SEED_BYTES);
        let start = start.try_into().expect("the other half");
        Self::starting_at(key.try_into().expect("half"), u128::from_le_bytes(start))
    }

    fn starting_at(key: &Seed, counter: u128) -> Self {
        let cipher = Aes128Enc::new(&Array::from(*key));
        Self {
            cipher,
            counter,
            buffer: [0; BUFFER],
            used: BUFFER,
        }
    }

    /// Makes a generator with a seed from the operating system.
    ///
    /// # Panics
    /// If the operating system has no randomness to give: nothing can be kept private then.
    pub fn from_os() -> Self {
        let mut seed = SecretSeed::default();
        getrandom::fill(&mut seed).expect("the operating system provides randomness");
        let prg = Self::secret(&seed);
        seed.zeroize();
        prg
    }

    /// Draws a fresh seed from this generator.
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed::default();
        self.fill(&mut seed);
        seed
    }

    /// Draws a fresh secret seed from this generator.
    pub fn secret_seed(&mut self) -> SecretSeed {
        let mut seed = SecretSeed::default();
        self.fill(&mut seed);
        seed
    }

    /// Returns a generator seeded by this one, independent of its further output.
    pub fn fork(&mut self) -> Self {
        let mut seed = self.secret_seed();
        let prg = Self::secret(&seed);
        seed.zeroize();
        prg
    }

    /// Drops what is left of the blocks already expanded, so that the next read starts with new
    /// ones.
    ///
    /// Two parties that read the same amounts stay in step, and long reads after it are not copied.
    pub fn align(&mut self) {
        self.buffer[self.used..].fill(0);
        self.used = BUFFER;
    }

    /// Fills a slice with the next bytes.
    pub fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used == BUFFER {
                if out.len() >= BUFFER {
                    let (direct, rest) = out.split_at_mut(BUFFER);
                    Self::blocks(&self.cipher, &mut self.counter, direct);
                    out = rest;
                    continue;
                }
                Self::blocks(&self.cipher, &mut self.counter, &mut self.buffer);
                self.used = 0;
            }
            let n = out.len().min(BUFFER - self.used);
            let (now, rest) = out.split_at_mut(n);
            now.copy_from_slice(&self.buffer[self.used..self.used + n]);
            self.buffer[self.used..self.used + n].fill(0);
            self.used += n;
            out = rest;
        }
    }

    fn blocks(cipher: &Aes128Enc, counter: &mut u128, out: &mut [u8]) {
        debug_assert_eq!(out.len(), BUFFER);
        let (blocks, _) = Array::slice_as_chunks_mut(out);
        for block in blocks.iter_mut() {
            *block = Array::from(counter.to_le_bytes());
            *counter = counter.wrapping_add(1);
        }
        cipher.encrypt_blocks(blocks);
    }
}

impl Drop for Prg {
    fn drop(&mut self) {
        // The cipher wipes its round keys itself.
        self.buffer.zeroize();
        self.counter.zeroize();
    }
}

impl TryRng for Prg {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut b = [0; 4];
        self.fill(&mut b);
        Ok(u32::from_le_bytes(b))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut b = [0; 8];
        self.fill(&mut b);
        Ok(u64::from_le_bytes(b))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.fill(out);
        Ok(())
    }
}

impl TryCryptoRng for Prg {}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn both_halves_of_a_secret_seed_count() {
        let mut seed = [7; SECRET_SEED_BYTES];
        let first = Prg::secret(&seed).seed();
        seed[0] ^= 1;
        assert_ne!(Prg::secret(&seed).seed(), first);
        seed = [7; SECRET_SEED_BYTES];
        seed[SEED_BYTES..].fill(0);
        let mut blocks = Prg::new(&[7; SEED_BYTES]);
        assert_eq!(Prg::secret(&seed).seed(), blocks.seed());
        // The second half is where the counter begins, and it wraps.
        seed[SEED_BYTES] = 1;
        assert_eq!(Prg::secret(&seed).seed(), blocks.seed());
        seed[SEED_BYTES..].fill(0xff);
        let mut last = Prg::secret(&seed);
        last.seed();
        assert_eq!(last.seed(), Prg::new(&[7; SEED_BYTES]).seed());
    }

    #[test]
    fn is_aes_in_counter_mode() {
        // FIPS 197 appendix C.1 has no zero block, so the check is against the block cipher alone.
        let seed: Seed = std::array::from_fn(|i| i as u8);
        let cipher = Aes128Enc::new(&Array::from(seed));
        let mut expected = Vec::new();
        for i in 0..200u128 {
            let mut block = Array::from(i.to_le_bytes());
            cipher.encrypt_block(&mut block);
            expected.extend_from_slice(&block);
        }
        let mut got = vec![0; expected.len()];
        Prg::new(&seed).fill(&mut got);
        assert_eq!(got, expected);
    }

    #[test]
    fn known_answer() {
        // NIST SP 800-38A, AES-128 zero key and zero block.
        let mut got = [0; 16];
        Prg::new(&[0; 16]).fill(&mut got);
        assert_eq!(u128::from_be_bytes(got), 0x66e94bd4ef8a2c3b884cfa59ca342b2e);
    }

    #[test]
    fn read_sizes_do_not_matter() {
        let seed = [7; 16];
        let mut whole = vec![0; 5000];
        Prg::new(&seed).fill(&mut whole);
        let mut prg = Prg::new(&seed);
        let mut parts = Vec::new();
        for n in [1, 7, 16, 1000, 1024, 2048, 904] {
            let mut part = vec![0; n];
            prg.fill(&mut part);
            parts.extend(part);
        }
        assert_eq!(parts, whole);
        let mut prg = Prg::new(&seed);
        assert_eq!(
            prg.next_u64(),
            u64::from_le_bytes(whole[..8].try_into().unwrap())
        );
    }

    #[test]
    fn aligning_skips_to_the_next_buffer() {
        let mut whole = vec![0; 2 * BUFFER];
        Prg::new(&[9; 16]).fill(&mut whole);
        let mut prg = Prg::new(&[9; 16]);
        prg.align();
        let mut part = [0; 5];
        prg.fill(&mut part);
        assert_eq!(part, whole[..5]);
        prg.align();
        prg.align();
        prg.fill(&mut part);
        assert_eq!(part, whole[BUFFER..BUFFER + 5]);
    }

    #[test]
    fn forks_and_systems_differ() {
        let mut a = Prg::new(&[1; 16]);
        let mut b = a.fork();
        assert_ne!(a.next_u64(), b.next_u64());
        assert_ne!(Prg::from_os().next_u64(), Prg::from_os().next_u64());
    }
}
