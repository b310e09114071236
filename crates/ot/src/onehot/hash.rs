//! The hash of rows, `H(x) = AES_k(σ(x)) + σ(x)`, on eight at a time.
//!
//! **Bound.** All answers of the hash that a party lacks are `H(y ⊕ Δ)` at known points `y` under
//! one unknown Δ, and nothing else that is hashed contains Δ. That is less than circular
//! correlation robustness, so the bound of garbling applies, whose hash it is: with `μ` answers
//! under one key, `q` in all, and `p` evaluations of the cipher by the adversary, `advantage ≤
//! 2·μ·p / 2^127 + q·(μ-1) / 2^129`. Batches of 64 elements have two keys, one for pads and one for
//! blocks, `κ ⊕ position`: `κ` is the blake3 hash of the session in which the offset party
//! receives, and the position that of the batch's first transfer. So `μ` is 64 times the bits of a
//! place, or the blocks: at most 640, an advantage of `p/2^116`. One key for a session of 2³⁰
//! hashes would give `p/2^96`.
//!
//! **Conditions**, as in garbling. The points under one key are distinct, since each contains a row
//! that nothing else contains (they collide with probability `μ²/2^129`; block `i` adds `i`). AES
//! behaves well under related public keys; keys of other sessions and of the other hashes on the
//! same offsets are independent but for chance. A row of the extensions for blocks is used in one
//! seed and, in the sum, in that of block 0, and nowhere else.

use crate::engine::{Backend, Engine, EngineJob, Key, WIDE};
use zeroize::Zeroizing;

/// Replaces every row `x` by `H(x + offset)`.
pub(super) fn hash(backend: Backend, key: &Key, offset: u128, rows: &mut [u128]) {
    backend.run(Hash { key, offset, rows });
}

struct Hash<'a> {
    key: &'a Key,
    offset: u128,
    rows: &'a mut [u128],
}

/// Hashes two vectors of rows where they are. A function and loops, not closures: those would be
/// compiled without the engine's instructions.
#[inline(always)]
fn hash_two<E: Engine>(e: E, key: &Key, offset: E::Vector, [low, high]: &mut [[u8; WIDE]; 2]) {
    let x = e.sigma(e.xor(e.read(low), offset));
    let y = e.sigma(e.xor(e.read(high), offset));
    let (u, v) = e.encrypt_two([key, key], x, y);
    e.write(e.xor(u, x), low);
    e.write(e.xor(v, y), high);
}

impl EngineJob for Hash<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let offset = e.splat(self.offset);
        let (whole, rest) = bytemuck::cast_slice_mut::<u128, u8>(self.rows).as_chunks_mut::<WIDE>();
        let (pairs, single) = whole.as_chunks_mut::<2>();
        for pair in pairs {
            hash_two(e, self.key, offset, pair);
        }
        let mut last = Zeroizing::new([[0; WIDE]; 2]);
        let rows = last.as_flattened_mut();
        let single = single.as_flattened_mut();
        let n = single.len();
        rows[..n].copy_from_slice(single);
        rows[n..][..rest.len()].copy_from_slice(rest);
        hash_two(e, self.key, offset, &mut last);
        let rows = last.as_flattened();
        single.copy_from_slice(&rows[..n]);
        rest.copy_from_slice(&rows[n..][..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128Enc;
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use primer_ring::prg::Prg;

    #[test]
    fn every_engine_has_the_hash_of_the_definition() {
        let mut prg = Prg::new(&[3; 16]);
        let mut draw = || u128::from_le_bytes(prg.seed());
        let (key, offset) = (draw(), draw());
        let cipher = Aes128Enc::new(&Array::from(key.to_le_bytes()));
        for n in [0, 1, 7, 8, 15, 16, 17, 40] {
            let rows: Vec<u128> = (0..n).map(|_| draw()).collect();
            let expected = rows.iter().map(|row| {
                let x = row ^ offset;
                let sigma = (x ^ x << 64) >> 64 << 64 | x >> 64;
                let mut block = Array::from(sigma.to_le_bytes());
                cipher.encrypt_block(&mut block);
                u128::from_le_bytes(block.into()) ^ sigma
            });
            let expected: Vec<u128> = expected.collect();
            for backend in Backend::available() {
                let expanded = backend.run(crate::engine::Expand(&[key])).remove(0);
                let mut found = rows.clone();
                hash(backend, &expanded, offset, &mut found);
                assert_eq!(found, expected);
            }
        }
    }
}
