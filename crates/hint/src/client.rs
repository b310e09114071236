//! The client's part: secrets for one value and batch, its masks, its message, its shares.

use crate::digits::weights;
use crate::params::{BLOCK, DEGREE, DIGITS, LANES, MESSAGE_BYTES, PACKING_BITS, ROUND_BITS, TERMS};
use crate::public::{Element, Name, mask, packing};
use crate::ring::{Limbs, Masks, Packing, round_mask};
use crate::room::{Room, by_blocks, spread};
use crate::sample::{Wide, wide};
use crate::server::Hint;
use primer_lattice::sample::{fill_error, fill_ternary};
use primer_lattice::simd::Simd;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::pack::pack;
use primer_ring::prg::{Prg, SecretSeed};
use zeroize::{Zeroize, Zeroizing};

/// What a unit of Z_p is worth modulo `q'`, about, in whole powers of two.
const UNIT: u16 = 1 << (PACKING_BITS - modulus::K);

/// The secrets of one value and one batch. All are functions of a seed, of the hint's name and of
/// the value: one seed serves all values of a preparation, no two of which share a secret. The same
/// secret with fresh errors would average the errors away, so making a message, masks or shares
/// again gives the same.
pub struct Batch {
    name: Name,
    value: u32,
    /// `s`: masks are linear in it.
    mask_secret: Zeroizing<Vec<i8>>,
    /// `t`: hides `s` in the message, and opens hints. Drawn like an error.
    key: Zeroizing<Vec<i16>>,
    seeds: Zeroizing<[SecretSeed; 3]>,
}

/// What the seeds of a batch are for, beside its secrets.
#[derive(Clone, Copy)]
enum Use {
    Dither,
    Errors,
    Shares,
}

impl Batch {
    /// Draws the secrets of a value from a seed of the preparation, which must be fresh.
    pub fn new(name: &Name, value: u32, seed: &SecretSeed) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(seed);
        hasher.update(b"primer hint batch v1");
        hasher.update(name);
        hasher.update(&value.to_le_bytes());
        let own = Zeroizing::new(*hasher.finalize().as_bytes());
        hasher.zeroize();
        let rng = &mut Prg::secret(&own);
        let seeds = Zeroizing::new([(); 3].map(|()| rng.secret_seed()));
        let (simd, room) = (Simd::detect(), || Zeroizing::new(vec![0i8; DEGREE]));
        let (mut mask_secret, mut key) = (room(), room());
        fill_ternary(simd, rng, &mut mask_secret);
        fill_error(simd, rng, &mut key);
        Self {
            name: *name,
            value,
            mask_secret,
            key: short(&key),
            seeds,
        }
    }

    fn generator(&self, what: Use) -> Prg {
        Prg::secret(&self.seeds[what as usize])
    }

    /// Returns the generator of one block, which is bound to some bytes besides.
    fn of_block(&self, what: Use, bound: &[u8], block: usize) -> Prg {
        let mut hasher = blake3::Hasher::new_keyed(&self.seeds[what as usize]);
        hasher.update(&(block as u64).to_le_bytes());
        let seed = Zeroizing::new(*hasher.update(bound).finalize().as_bytes());
        hasher.zeroize();
        Prg::secret(&seed)
    }

    /// Returns the masks of some columns of the first lanes of the value, `[lane][column]`, uniform
    /// modulo p.
    pub fn masks(&self, lanes: usize, columns: usize, threads: usize) -> Matrix<u64> {
        const {
            assert!(
                ROUND_BITS == u8::BITS,
                "a byte of dither for each coefficient"
            )
        };
        let ring = Masks::get();
        let secret = ring.secret(&self.mask_secret);
        by_blocks((lanes, columns), threads, |blocks, out| {
            let mut dither = Zeroizing::new(vec![0; lanes * BLOCK]);
            for (at, block) in blocks.enumerate() {
                let mut element = Zeroizing::new(mask(&self.name, self.value, block as u32));
                ring.multiply(&mut element, &secret);
                self.of_block(Use::Dither, &[], block).fill(&mut dither);
                let rounded = element.iter().zip(dither.iter());
                let rounded = rounded.map(|(&x, &dither)| round_mask(x, dither.into()));
                spread(out, at, rounded);
            }
        })
    }

    /// Returns the message to the server, [`MESSAGE_BYTES`] of it.
    pub fn message(&self) -> Vec<u8> {
        let ring = Packing::get();
        let gadget = weights(ring.modulus());
        let rng = &mut self.generator(Use::Errors);
        let mut error = Zeroizing::new(vec![0i8; DEGREE]);
        let mut bytes = Vec::with_capacity(MESSAGE_BYTES);
        let value = self.value;
        for part in 0..=TERMS {
            fill_error(Simd::detect(), rng, &mut error);
            let noise = short(&error);
            let mut terms = vec![(noise, 1)];
            let element = match part {
                TERMS => Element::Key { value },
                _ => {
                    terms.push((self.part(part / DIGITS), gadget[part % DIGITS]));
                    let part = part as u32;
                    Element::Part { value, part }
                }
            };
            let public = packing(ring, &self.name, element);
            let element = ring.encrypt(public, &self.key, &terms);
            pack(element.into_iter(), PACKING_BITS, &mut bytes);
        }
        bytes
    }

    /// Returns `s'_f`, the part of the secret that meets column `f`, in the subring of `X^F`.
    fn part(&self, f: usize) -> Zeroizing<Vec<i16>> {
        let mut part = Zeroizing::new(vec![0i16; DEGREE]);
        let at = |lane: usize| i16::from(self.mask_secret[(BLOCK - f) % BLOCK + BLOCK * lane]);
        for lane in 0..LANES {
            part[BLOCK * lane] = match (f, lane) {
                (0, _) => at(lane),
                (_, 0) => -at(LANES - 1),
                _ => at(lane - 1),
            };
        }
        part
    }

    /// Returns the client's shares of all outputs of a hint, `[lane][output]`, of the first lanes,
    /// modulo p, with noise.
    ///
    /// The noise is a function of the seed and of the hint: the same hint gives the same shares,
    /// and two hints under one name never share noise, which their difference would be free of.
    pub fn shares(&self, lanes: usize, hint: &Hint, threads: usize) -> Matrix<u64> {
        let ring = Packing::get();
        let count = lanes * BLOCK;
        let key = [0, 1].map(|limb| {
            let mut values = Zeroizing::new(vec![0; DEGREE]);
            ring.values_of_short(limb, &self.key, &mut values);
            values
        });
        by_blocks((lanes, hint.outputs()), threads, |groups, out| {
            let mut room = Room::default();
            let mut fine = Zeroizing::new(vec![0; 2 * count]);
            for (at, group) in groups.enumerate() {
                let element = hint.element(group).iter();
                let element: Vec<u64> = element.map(|&x| ring.expand(x)).collect();
                let factor: Limbs = ring.factor(&element);
                let opened = room.product(ring, &key, &factor);
                let rng = &mut self.of_block(Use::Shares, hint.digest(), group);
                let noise = wide(rng, Wide::SHARE, count);
                rng.fill(&mut fine);
                let fine = fine.as_chunks::<2>().0.iter();
                let noise = noise.iter().zip(fine).map(|(&units, fine)| {
                    // Whole units, and a part of one: what rounding takes off then tells nothing.
                    let fine = u16::from_le_bytes(*fine) & (UNIT - 1);
                    i64::from(units) * i64::from(UNIT) + i64::from(fine) - i64::from(UNIT / 2)
                });
                let shares = opened.iter().zip(noise);
                let shares = shares
                    .map(|(&x, noise)| modulus::neg(ring.to_share(ring.add_signed(x, noise))));
                spread(out, at, shares);
            }
        })
    }
}

fn short(small: &[i8]) -> Zeroizing<Vec<i16>> {
    Zeroizing::new(small.iter().map(|&x| x.into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that one seed serves all values of a preparation: with a secret in common, two
    /// messages would reveal it.
    #[test]
    fn no_secret_serves_two_values_or_two_hints() {
        let batch = |name: u8, value, seed: u8| Batch::new(&[name; 32], value, &[seed; 32]);
        let first = batch(1, 1, 1);
        for other in [batch(2, 1, 1), batch(1, 2, 1), batch(1, 1, 2)] {
            assert!(first.mask_secret != other.mask_secret && first.key != other.key);
            let mut seeds = first.seeds.iter().zip(other.seeds.iter());
            assert!(seeds.all(|(a, b)| a != b));
        }
        let again = batch(1, 1, 1);
        assert!(first.mask_secret == again.mask_secret && first.key == again.key);
    }
}
