//! The engine without special instructions of our own: the `aes` crate, block by block.

use super::{Engine, KEYS, Label, Wire};
use crate::circuit::LANES;
use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

#[derive(Clone, Copy)]
pub(super) struct Portable;

type Vector = [Label; LANES];

impl Engine for Portable {
    type Vector = Vector;
    type Keys = [Aes128Enc; KEYS];

    #[inline(always)]
    fn load(self, wire: &Wire) -> Vector {
        wire.0
    }

    #[inline(always)]
    fn store(self, vector: Vector, wire: &mut Wire) {
        wire.0 = vector;
    }

    #[inline(always)]
    fn gather(self, labels: [&Label; LANES]) -> Vector {
        labels.map(|label| *label)
    }

    #[inline(always)]
    fn read(self, bytes: &[u8; 16 * LANES]) -> Vector {
        let (blocks, _) = bytes.as_chunks::<16>();
        std::array::from_fn(|l| Label::from_le_bytes(blocks[l]))
    }

    #[inline(always)]
    fn write(self, vector: Vector, bytes: &mut [u8; 16 * LANES]) {
        let (blocks, _) = bytes.as_chunks_mut::<16>();
        for (block, label) in blocks.iter_mut().zip(vector) {
            *block = label.to_le_bytes();
        }
    }

    #[inline(always)]
    fn splat(self, label: Label) -> Vector {
        [label; LANES]
    }

    #[inline(always)]
    fn xor(self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|l| a[l] ^ b[l])
    }

    #[inline(always)]
    fn and(self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|l| a[l] & b[l])
    }

    #[inline(always)]
    fn color(self, a: Vector) -> Vector {
        a.map(|x| (x & 1).wrapping_neg())
    }

    #[inline(always)]
    fn sigma(self, a: Vector) -> Vector {
        a.map(|x| {
            let (high, low) = ((x >> 64) as u64, x as u64);
            u128::from(high ^ low) << 64 | u128::from(high)
        })
    }

    fn no_keys(self) -> [Aes128Enc; KEYS] {
        std::array::from_fn(|_| Aes128Enc::new(&Array::from([0; 16])))
    }

    fn expand(self, nonce: Label, counter: u64, keys: &mut [Aes128Enc; KEYS]) {
        for (i, cipher) in keys.iter_mut().enumerate() {
            let key = nonce ^ u128::from(counter + i as u64);
            *cipher = Aes128Enc::new(&Array::from(key.to_le_bytes()));
        }
    }

    fn encrypt(
        self,
        keys: &[Aes128Enc; KEYS],
        i: usize,
        j: usize,
        x: Vector,
        y: Vector,
    ) -> (Vector, Vector) {
        (self.encrypt_one(keys, i, x), self.encrypt_one(keys, j, y))
    }

    fn encrypt_one(self, keys: &[Aes128Enc; KEYS], i: usize, x: Vector) -> Vector {
        let mut blocks = x.map(|label| Array::from(label.to_le_bytes()));
        keys[i].encrypt_blocks(&mut blocks);
        blocks.map(|block| Label::from_le_bytes(block.into()))
    }
}
