//! Pseudorandom expansion: AES-128 in counter mode.
//!
//! A [`Prg`] stretches a 16-byte seed. Two uses must not be confused:
//!
//! * a *public* seed stands for a long random string that both parties expand (the `a`-part of a
//!   seeded ciphertext): the output must be the same everywhere, so its byte order is fixed;
//! * a *secret* seed, drawn by [`Prg::from_os`], is where every mask, key and label comes from.
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
/// A seed of a [`Prg`].
pub type Seed = [u8; SEED_BYTES];

/// Blocks encrypted per call: wide enough for the AES pipeline, small enough for the first cache.
const BLOCKS: usize = 64;
const BUFFER: usize = 16 * BLOCKS;

/// AES-128 in counter mode as a random generator.
///
/// The counter is 128 bits, little-endian, and starts at zero. Byte `i` of the output is a fixed
/// function of the seed, whatever the sizes of the reads before it, as long as reads of words and
/// of bytes are not mixed at odd offsets.
pub struct Prg {
    cipher: Aes128Enc,
    counter: u128,
    buffer: [u8; BUFFER],
    used: usize,
}

impl Prg {
    /// A generator with a given seed: for public seeds and for tests.
    pub fn new(seed: &Seed) -> Self {
        let cipher = Aes128Enc::new(&Array::from(*seed));
        Self {
            cipher,
            counter: 0,
            buffer: [0; BUFFER],
            used: BUFFER,
        }
    }

    /// A generator with a seed from the operating system.
    ///
    /// # Panics
    /// If the operating system has no randomness to give: nothing private can be done then.
    pub fn from_os() -> Self {
        let mut seed = Seed::default();
        getrandom::fill(&mut seed).expect("the operating system provides randomness");
        let prg = Self::new(&seed);
        seed.zeroize();
        prg
    }

    /// One of many independent generators that a seed stands for: AES under the seed, as a
    /// pseudorandom function of `index`, gives the seed of the generator.
    ///
    /// A seed serves either this or [`Self::new`], not both: their outputs are related.
    pub fn derive(seed: &Seed, index: u128) -> Self {
        let cipher = Aes128Enc::new(&Array::from(*seed));
        let mut block = Array::from(index.to_le_bytes());
        cipher.encrypt_block(&mut block);
        let prg = Self::new(&block.0);
        block.zeroize();
        prg
    }

    /// A fresh seed drawn from this generator.
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed::default();
        self.fill(&mut seed);
        seed
    }

    /// A generator seeded by this one, independent of its further output.
    pub fn fork(&mut self) -> Self {
        let mut seed = self.seed();
        let prg = Self::new(&seed);
        seed.zeroize();
        prg
    }

    /// Drops what is left of the blocks already expanded, so that the next read starts at fresh
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
    fn derived_generators_differ() {
        let first = |index| Prg::derive(&[7; SEED_BYTES], index).seed();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        assert_ne!(first(0), Prg::derive(&[8; SEED_BYTES], 0).seed());
        // The derived seed is the block at that index.
        let mut blocks = Prg::new(&[7; SEED_BYTES]);
        assert_eq!(first(0), Prg::new(&blocks.seed()).seed());
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
