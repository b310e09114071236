//! The hash of rows, `H(x) = AES_k(σ(x)) + σ(x)`, on eight at a time.

use crate::engine::{Backend, Engine, Key, WIDE, Work};
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

impl Work for Hash<'_> {
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
