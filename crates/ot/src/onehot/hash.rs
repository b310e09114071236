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

/// The hash of two vectors.
#[inline(always)]
fn hash_two<E: Engine>(e: E, key: &Key, [x, y]: [E::Vector; 2]) -> [E::Vector; 2] {
    let (x, y) = (e.sigma(x), e.sigma(y));
    let (u, v) = e.encrypt_two([key, key], x, y);
    [e.xor(u, x), e.xor(v, y)]
}

impl Work for Hash<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let offset = e.splat(self.offset);
        let two = |both: &mut [[u8; WIDE]; 2]| {
            let rows = both.each_ref().map(|row| e.xor(e.read(row), offset));
            let hashed = hash_two(e, self.key, rows);
            for (row, hashed) in both.iter_mut().zip(hashed) {
                e.write(hashed, row);
            }
        };
        let (whole, rest) = bytemuck::cast_slice_mut::<u128, u8>(self.rows).as_chunks_mut::<WIDE>();
        let (pairs, single) = whole.as_chunks_mut::<2>();
        pairs.iter_mut().for_each(two);
        let mut last = Zeroizing::new([[0; WIDE]; 2]);
        let rows = last.as_flattened_mut();
        let single = single.as_flattened_mut();
        let n = single.len();
        rows[..n].copy_from_slice(single);
        rows[n..][..rest.len()].copy_from_slice(rest);
        two(&mut last);
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
