//! The client's part: secrets for one value and batch, its masks, its message, its shares.

use crate::digits::weights;
use crate::params::{
    BLOCK, DEGREE, DIGITS, HINT_BITS, LANES, MESSAGE_BYTES, PACKING_BITS, ROUND_BITS, TERMS,
};
use crate::public::{Element, Name, mask, packing};
use crate::ring::{Limbs, Masks, Packing, round_mask};
use crate::room::{Room, spread};
use crate::server::Hint;
use primer_lattice::sample::{fill_error, fill_ternary};
use primer_lattice::simd::Simd;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::pack::pack;
use primer_ring::prg::{Prg, SecretSeed};
use std::slice::from_ref;
use zeroize::Zeroizing;

/// The secrets of one value and one batch, all from one seed: the same secret with fresh errors
/// would average the errors away. So a seed serves one message, one set of masks and one set of
/// shares, and making them again gives the same.
pub struct Batch {
    name: Name,
    value: u32,
    /// `s`: masks are linear in it.
    mask_secret: Zeroizing<Vec<i8>>,
    /// `t`: hides `s` in the message, and opens hints. Short, as products take it.
    key: Zeroizing<Vec<i16>>,
    dither: Zeroizing<SecretSeed>,
    errors: Zeroizing<SecretSeed>,
}

impl Batch {
    /// Draws the secrets of a seed, which must be fresh.
    pub fn new(name: &Name, value: u32, seed: &SecretSeed) -> Self {
        let rng = &mut Prg::secret(seed);
        let (dither, errors) = (rng.secret_seed(), rng.secret_seed());
        let mut draw = || {
            let mut secret = Zeroizing::new(vec![0i8; DEGREE]);
            fill_ternary(Simd::detect(), rng, &mut secret);
            secret
        };
        let (mask_secret, key) = (draw(), draw());
        Self {
            name: *name,
            value,
            mask_secret,
            key: short(&key),
            dither: Zeroizing::new(dither),
            errors: Zeroizing::new(errors),
        }
    }

    /// Returns the masks of some columns of the value, `[lane][column]`, uniform modulo p.
    pub fn masks(&self, columns: usize) -> Matrix<u64> {
        const {
            assert!(
                ROUND_BITS == u8::BITS,
                "a byte of dither for each coefficient"
            )
        };
        let ring = Masks::get();
        let secret = ring.secret(&self.mask_secret);
        let rng = &mut Prg::secret(&self.dither);
        let mut out = Matrix::<u64>::zeros(LANES, columns);
        let mut dither = Zeroizing::new(vec![0; DEGREE]);
        for block in 0..columns.div_ceil(BLOCK) {
            let mut element = Zeroizing::new(mask(&self.name, self.value, block as u32));
            ring.multiply(&mut element, &secret);
            rng.fill(&mut dither);
            let rounded = element.iter().zip(dither.iter());
            let rounded = rounded.map(|(&x, &dither)| round_mask(x, dither.into()));
            spread(&mut out, block, rounded);
        }
        out
    }

    /// Returns the message to the server, [`MESSAGE_BYTES`] of it.
    pub fn message(&self) -> Vec<u8> {
        let ring = Packing::get();
        let gadget = weights(ring.modulus());
        let rng = &mut Prg::secret(&self.errors);
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

    /// Returns the client's shares of all outputs of a hint, `[lane][output]`, modulo p.
    pub fn shares(&self, hint: &Hint) -> Matrix<u64> {
        let ring = Packing::get();
        let mut room = Room::default();
        let mut out = Matrix::<u64>::zeros(LANES, hint.outputs());
        for (group, element) in hint.elements().enumerate() {
            let element: Vec<u64> = element.iter().map(|&x| expand(x, ring.modulus())).collect();
            let factor: Limbs = ring.factor(&element);
            let opened = room.sum(ring, [&self.key[..]].into_iter(), from_ref(&factor));
            let shares = opened.iter().map(|&x| modulus::neg(ring.to_share(x)));
            spread(&mut out, group, shares);
        }
        out
    }
}

fn short(small: &[i8]) -> Zeroizing<Vec<i16>> {
    Zeroizing::new(small.iter().map(|&x| x.into()).collect())
}

/// Returns the number modulo `q'` that a published coefficient stands for.
fn expand(x: u64, modulus: u64) -> u64 {
    let half = 1 << (HINT_BITS - 1);
    ((u128::from(x) * u128::from(modulus) + half) >> HINT_BITS) as u64
}
