//! The columns of an extension: sums of streams, weighted by the bits of their index.
//!
//! A tree of [`crate::leaves`] has `2^k` seeds; each is stretched by AES in counter mode to a
//! stream `r_x`. The counters of each tree of each session have a salt of their own, so a table of
//! guessed keys serves against one tree, not against all trees of all sessions. From the streams,
//! [`crate::cot`] needs `k` columns and the total:
//!
//! ```text
//! column j = sum of r_x over all x whose bit j is set          total = sum of all r_x
//! ```
//!
//! These are `k + 1` sums of a butterfly: neighbours `x`, `x + 1` are added up while their blocks
//! are still in registers, the odd one going into column 0, then neighbours of neighbours, and so
//! on. `2^(k+1)` additions at most, beside `2^k` ciphers.
//!
//! Both parties run the same loop. The receiver has all streams, and sends `total ⊕ choices`. The
//! sender, whose streams stand at `x XOR Δ`, lacks stream 0, which no column needs, and adds the
//! message to the columns where Δ has a bit.

use crate::base::Session;
use crate::engine::{Backend, Engine, EngineJob, Expand, Key, LANES, WIDE};
use crate::leaves::Leaves;
use crate::variant::Variant;

/// Blocks of a stream after which the next extension may begin.
const ALIGNED: u64 = 64;

/// The streams of one party, and how far they were read.
pub(crate) struct Streams {
    backend: Backend,
    keys: Vec<Key>,
    leaves: usize,
    /// The salts that change the counters of each tree; public.
    salts: Vec<u128>,
    /// Blocks read of each stream.
    counter: u64,
}

/// What a party does with the total.
pub(crate) enum Correction<'a> {
    /// The receiver's choices go in, the message comes out.
    Make(&'a mut [u8]),
    /// The sender's message goes in; these bits of Δ say to which columns it is added.
    Apply(&'a [u8], u128),
}

impl Streams {
    pub(crate) fn new(variant: Variant, leaves: &Leaves, session: &Session) -> Self {
        let backend = Backend::detect();
        Self {
            backend,
            keys: backend.run(Expand(leaves)),
            leaves: variant.leaves(),
            salts: salts(variant, session),
            counter: 0,
        }
    }

    /// Writes the columns of a tree, `stride` bytes apart, as long as the correction, which is a
    /// multiple of [`WIDE`].
    pub(crate) fn columns(
        &self,
        tree: usize,
        columns: &mut [u8],
        stride: usize,
        correction: Correction<'_>,
    ) {
        self.backend.run(Butterfly {
            keys: &self.keys[tree * self.leaves..][..self.leaves],
            counter: self.counter,
            salt: self.salts[tree],
            columns,
            stride,
            correction,
        });
    }

    /// Returns the number of blocks read of each stream.
    pub(crate) fn counter(&self) -> u64 {
        self.counter
    }

    /// Moves on past `bytes` of each stream.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.counter += (bytes as u64).div_ceil(16);
    }

    /// Moves on to where the next extension begins.
    pub(crate) fn align(&mut self) {
        self.counter = self.counter.next_multiple_of(ALIGNED);
    }
}

fn salts(variant: Variant, session: &Session) -> Vec<u128> {
    let mut hasher = blake3::Hasher::new_derive_key("primer ot stream salts v1");
    let mut stream = hasher.update(session).finalize_xof();
    let salt = |_| {
        let mut salt = [0; 16];
        stream.fill(&mut salt);
        u128::from_le_bytes(salt)
    };
    (0..variant.trees()).map(salt).collect()
}

struct Butterfly<'a> {
    keys: &'a [Key],
    counter: u64,
    salt: u128,
    columns: &'a mut [u8],
    stride: usize,
    correction: Correction<'a>,
}

impl EngineJob for Butterfly<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        match self.keys.len() {
            2 => self.sums::<E, 1>(e),
            4 => self.sums::<E, 2>(e),
            _ => self.sums::<E, 4>(e),
        }
    }
}

impl Butterfly<'_> {
    #[inline(always)]
    fn sums<E: Engine, const K: usize>(mut self, e: E) {
        let keys = &self.keys[..1 << K];
        let length = match &self.correction {
            Correction::Make(bytes) => bytes.len(),
            Correction::Apply(bytes, _) => bytes.len(),
        };
        for (index, at) in (0..length).step_by(WIDE).enumerate() {
            let first = self.counter + (index * LANES) as u64;
            let counter = |i: usize| u128::from(first + i as u64) ^ self.salt;
            let counters: [u128; LANES] = std::array::from_fn(counter);
            let x = e.read(bytemuck::cast_ref(&counters));
            let mut columns = [e.splat(0); K];
            let mut waiting = [e.splat(0); K];
            let mut total = e.splat(0);
            for pair in 0..1 << (K - 1) {
                let both = [&keys[2 * pair], &keys[2 * pair + 1]];
                // No column has stream 0 in it, and the sender does not know it.
                let (even, odd) = match self.correction {
                    Correction::Apply(..) if pair == 0 => (e.splat(0), e.encrypt(both[1], x)),
                    _ => e.encrypt_two(both, x, x),
                };
                columns[0] = e.xor(columns[0], odd);
                let mut sum = e.xor(even, odd);
                let mut level = 1;
                while pair >> (level - 1) & 1 == 1 {
                    columns[level] = e.xor(columns[level], sum);
                    sum = e.xor(sum, waiting[level]);
                    level += 1;
                }
                match level == K {
                    true => total = sum,
                    false => waiting[level] = sum,
                }
            }
            match &mut self.correction {
                Correction::Make(choices) => {
                    let bytes = wide_at(choices, at);
                    let message = e.xor(e.read(bytes), total);
                    e.write(message, bytes);
                }
                Correction::Apply(message, bits) => {
                    let bytes = message[at..at + WIDE].try_into().expect("a vector's bytes");
                    let message = e.read(bytes);
                    for (j, column) in columns.iter_mut().enumerate() {
                        let mask = e.splat((*bits >> j & 1).wrapping_neg());
                        *column = e.xor(*column, e.and(message, mask));
                    }
                }
            }
            for (j, column) in columns.into_iter().enumerate() {
                e.write(column, wide_at(self.columns, j * self.stride + at));
            }
        }
    }
}

#[inline(always)]
fn wide_at(bytes: &mut [u8], at: usize) -> &mut [u8; WIDE] {
    let bytes = &mut bytes[at..at + WIDE];
    bytes.try_into().expect("a vector's bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128Enc;
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use primer_ring::prg::Prg;
    use zeroize::Zeroizing;

    /// Checks every engine against sums of plain counter mode.
    #[test]
    fn columns_are_weighted_sums_of_streams() {
        let mut rng = Prg::new(&[6; 16]);
        let length = 3 * WIDE;
        for variant in [Variant::IKNP, Variant::SOFT_2, Variant::SOFT_4] {
            let (k, leaves) = (variant.bits(), variant.leaves());
            let seeds = (0..leaves * variant.trees()).map(|_| u128::from_le_bytes(rng.seed()));
            let seeds: Leaves = Zeroizing::new(seeds.collect());
            let tree = variant.trees() - 1;
            let mut given = vec![0; length];
            rng.fill(&mut given);
            let skipped = 64;
            let session = [7; 32];
            let salt = salts(variant, &session)[tree];
            let stream = |x: usize| {
                let seed = seeds[tree * leaves + x].to_le_bytes();
                let cipher = Aes128Enc::new(&Array::from(seed));
                let blocks = (skipped as u128..).take(length / 16).map(|counter| {
                    let mut block = Array::from((counter ^ salt).to_le_bytes());
                    cipher.encrypt_block(&mut block);
                    block.0
                });
                blocks.flatten().collect::<Vec<u8>>()
            };
            let sum = |of: &dyn Fn(usize) -> bool| {
                let mut sum = vec![0; length];
                for x in (0..leaves).filter(|&x| of(x)) {
                    sum.iter_mut().zip(stream(x)).for_each(|(s, r)| *s ^= r);
                }
                sum
            };
            let add = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<_>>();
            for backend in Backend::available() {
                let mut streams = Streams::new(variant, &seeds, &session);
                streams.backend = backend;
                streams.advance(1);
                streams.align();
                let stride = length + 64;
                let mut columns = vec![0; k * stride];
                let mut message = given.clone();
                streams.columns(tree, &mut columns, stride, Correction::Make(&mut message));
                assert_eq!(message, add(&sum(&|_| true), &given));
                for j in 0..k {
                    let expected = sum(&|x| x >> j & 1 == 1);
                    assert_eq!(columns[j * stride..][..length], expected);
                }
                let bits = 0b1010;
                streams.columns(tree, &mut columns, stride, Correction::Apply(&given, bits));
                for j in 0..k {
                    let mut expected = sum(&|x| x >> j & 1 == 1);
                    if bits >> j & 1 == 1 {
                        expected = add(&expected, &given);
                    }
                    assert_eq!(columns[j * stride..][..length], expected);
                }
            }
        }
    }
}
