//! The engine without special instructions of our own: rounds of the `aes` crate, which are
//! constant-time in software too.

use super::{CONSTANTS, Engine, Key, LANES, ROUNDS, WIDE};
use aes::Block;
use aes::hazmat::{Block8, cipher_round, cipher_round_par, inv_mix_columns};

#[derive(Clone, Copy)]
pub(super) struct Portable;

type Vector = [u128; LANES];

fn block(x: u128) -> Block {
    x.to_le_bytes().into()
}

fn number(block: Block) -> u128 {
    u128::from_le_bytes(block.into())
}

/// Computes the last round except for its key: a round whose mixing of columns is undone.
fn unmixed(mut block: Block) -> u128 {
    inv_mix_columns(&mut block);
    number(block)
}

impl Engine for Portable {
    type Vector = Vector;

    fn read(self, bytes: &[u8; WIDE]) -> Vector {
        let (blocks, _) = bytes.as_chunks::<16>();
        std::array::from_fn(|l| u128::from_le_bytes(blocks[l]))
    }

    fn write(self, vector: Vector, bytes: &mut [u8; WIDE]) {
        let (blocks, _) = bytes.as_chunks_mut::<16>();
        for (block, x) in blocks.iter_mut().zip(vector) {
            *block = x.to_le_bytes();
        }
    }

    fn splat(self, block: u128) -> Vector {
        [block; LANES]
    }

    fn xor(self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|l| a[l] ^ b[l])
    }

    fn and(self, a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|l| a[l] & b[l])
    }

    fn sigma(self, a: Vector) -> Vector {
        a.map(|x| {
            let (high, low) = ((x >> 64) as u64, x as u64);
            u128::from(high ^ low) << 64 | u128::from(high)
        })
    }

    fn expand(self, key: u128) -> Key {
        let mut rounds = [key; ROUNDS + 1];
        for (i, constant) in CONSTANTS.into_iter().enumerate() {
            let k = rounds[i];
            // The last column rotated, in every column: the row shift does nothing to it.
            let word = ((k >> 96) as u32).rotate_right(8);
            let same = u128::from(word) * 0x0000_0001_0000_0001_0000_0001_0000_0001;
            let mut substituted = block(same);
            cipher_round(&mut substituted, &block(0));
            let word = unmixed(substituted) as u32 ^ u32::from(constant);
            let k = k ^ k << 32;
            let k = k ^ k << 64;
            let word = u128::from(word) * 0x0000_0001_0000_0001_0000_0001_0000_0001;
            rounds[i + 1] = k ^ word;
        }
        Key(rounds)
    }

    fn encrypt(self, key: &Key, x: Vector) -> Vector {
        let every = |round: usize| Block8::from([block(key.0[round]); LANES]);
        let mut blocks = Block8::from(x.map(|x| block(x ^ key.0[0])));
        for round in 1..ROUNDS {
            cipher_round_par(&mut blocks, &every(round));
        }
        cipher_round_par(&mut blocks, &Block8::from([block(0); LANES]));
        std::array::from_fn(|l| unmixed(blocks[l]) ^ key.0[ROUNDS])
    }

    fn encrypt_two(self, keys: [&Key; 2], x: Vector, y: Vector) -> (Vector, Vector) {
        (self.encrypt(keys[0], x), self.encrypt(keys[1], y))
    }
}
