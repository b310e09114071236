//! The hash that breaks the correlation of IKNP's rows.
//!
//! All pairs of an extension differ by the same Δ. A message masked with `H(q_j ⊕ Δ)` is safe if
//! `H` is *tweakable correlation robust*: without Δ, `H(x ⊕ Δ, i)` looks random for all `x` and
//! tweaks `i` together. We use the construction of Guo, Katz, Wang and Yu ("Efficient and Secure
//! Multiparty Computation from Fixed-Key Block Ciphers", IEEE S&P 2020, ePrint 2019/074), two AES
//! calls with one fixed key:
//!
//! ```text
//! H(x, i) = π(π(x) ⊕ i) ⊕ π(x)
//! ```
//!
//! proved there for a random permutation π. The key is public and derived from the session, so that
//! work against one session is of no use against another; the tweak is the position of the transfer
//! in its session, and the number of the pad where a transfer has several, and never repeats. The
//! garbling hash, which may use the same Δ, has other keys: two independent permutations.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit, consts::U16};
use zeroize::{Zeroize, Zeroizing};

/// Blocks per call of the cipher.
const BATCH: usize = 64;

type Block = Array<u8, U16>;

/// The hash of one session.
pub struct Hash {
    cipher: Aes128Enc,
}

impl Hash {
    /// Makes the hash of a session with this public name.
    pub fn new(session: &[u8; 32]) -> Self {
        let key = blake3::derive_key("primer ot correlation-robust hash key v1", session);
        let key: [u8; 16] = key[..16].try_into().expect("the key is shorter");
        Self {
            cipher: Aes128Enc::new(&Array::from(key)),
        }
    }

    /// Replaces row `j` by its hash under tweak `first + j`.
    pub fn hash_rows(&self, first: u128, rows: &mut [u128]) {
        let mut inner = Zeroizing::new([0u8; 16 * BATCH]);
        let mut outer = Zeroizing::new([0u8; 16 * BATCH]);
        for (index, rows) in rows.chunks_mut(BATCH).enumerate() {
            let tweak = first + (index * BATCH) as u128;
            let bytes = 16 * rows.len();
            for (block, row) in inner.chunks_exact_mut(16).zip(rows.iter()) {
                block.copy_from_slice(&row.to_le_bytes());
            }
            self.permute(&mut inner[..bytes]);
            for (j, (block, x)) in outer
                .chunks_exact_mut(16)
                .zip(inner.chunks_exact(16))
                .enumerate()
            {
                let x = u128::from_le_bytes(x.try_into().expect("sixteen bytes"));
                block.copy_from_slice(&(x ^ (tweak + j as u128)).to_le_bytes());
            }
            self.permute(&mut outer[..bytes]);
            for ((row, a), b) in rows
                .iter_mut()
                .zip(inner.chunks_exact(16))
                .zip(outer.chunks_exact(16))
            {
                let a = u128::from_le_bytes(a.try_into().expect("sixteen bytes"));
                let b = u128::from_le_bytes(b.try_into().expect("sixteen bytes"));
                *row = a ^ b;
            }
        }
    }

    fn permute(&self, bytes: &mut [u8]) {
        let (blocks, rest) = Block::slice_as_chunks_mut(bytes);
        debug_assert!(rest.is_empty());
        self.cipher.encrypt_blocks(blocks);
    }
}

/// Returns a uniform residue from a hash: `⌊hash · modulus / 2^128⌋`, off uniform by less than
/// `modulus / 2^128`.
pub(crate) fn residue(hash: u128, modulus: u64) -> u64 {
    let (high, low) = ((hash >> 64) as u64, hash as u64);
    let m = u128::from(modulus);
    ((u128::from(high) * m + ((u128::from(low) * m) >> 64)) >> 64) as u64
}

/// Hashes a copy of some rows, each with `offset` added, into residues.
pub(crate) fn residues(
    hash: &Hash,
    first: u128,
    rows: &[u128],
    offset: u128,
    modulus: u64,
    mut each: impl FnMut(usize, u64),
) {
    let mut work = [0u128; 8 * BATCH];
    for (index, rows) in rows.chunks(work.len()).enumerate() {
        let start = index * 8 * BATCH;
        let work = &mut work[..rows.len()];
        for (w, row) in work.iter_mut().zip(rows) {
            *w = row ^ offset;
        }
        hash.hash_rows(first + start as u128, work);
        for (j, &h) in work.iter().enumerate() {
            each(start + j, residue(h, modulus));
        }
    }
    work.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn is_the_published_construction() {
        let hash = Hash::new(&[5; 32]);
        let permutation = |x: u128| {
            let mut block = Array::from(x.to_le_bytes());
            hash.cipher.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        let rows: Vec<u128> = (0..200u128)
            .map(|i| i.wrapping_mul(0x1234_5678_9abc_def1 << 60))
            .collect();
        let mut hashed = rows.clone();
        hash.hash_rows(1000, &mut hashed);
        for (j, (&x, &h)) in rows.iter().zip(&hashed).enumerate() {
            let inner = permutation(x);
            assert_eq!(h, permutation(inner ^ (1000 + j as u128)) ^ inner);
        }
        let other = Hash::new(&[6; 32]);
        let mut differently = rows.clone();
        other.hash_rows(1000, &mut differently);
        assert_ne!(hashed, differently);
    }

    proptest! {
        #[test]
        fn residues_are_the_scaled_hash(hash: u128, modulus in 2u64..1 << 57) {
            // The exact product, by 64-bit digits.
            let low = u128::from(hash as u64) * u128::from(modulus);
            let high = (hash >> 64) * u128::from(modulus) + (low >> 64);
            prop_assert_eq!(residue(hash, modulus), (high >> 64) as u64);
            prop_assert!(residue(hash, modulus) < modulus);
        }

        #[test]
        fn batches_do_not_matter(n in 0usize..1500, first in 0u128..1 << 70) {
            let hash = Hash::new(&[0; 32]);
            let rows: Vec<u128> = (0..n as u128).map(|i| i << 70 ^ i).collect();
            let mut whole: Vec<u128> = rows.iter().map(|r| r ^ 77).collect();
            hash.hash_rows(first, &mut whole);
            let mut seen = 0;
            residues(&hash, first, &rows, 77, 1 << 41, |j, value| {
                assert_eq!(j, seen);
                assert_eq!(u128::from(value), whole[j] >> 87);
                seen += 1;
            });
            prop_assert_eq!(seen, n);
        }
    }
}
