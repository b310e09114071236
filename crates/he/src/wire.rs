//! What travels: versioned, bit-packed, bound to its parameters.
//!
//! Every message starts with the same 22 bytes: `PRHE`, the version, the kind, and the fingerprint of
//! the parameters. Matrices go on with the layout that they are in (packing, tokens, cell width,
//! columns, ciphertexts), so that a receiver with another idea of the plan says so instead of
//! computing nonsense. Then come seeds (16 bytes) and limbs, each limb `N` residues of 30 bits.
//!
//! | message | bytes after the header |
//! |---|---|
//! | public key | `16 + 4·l` with `l = 30·N/8` bytes a limb |
//! | Galois keys | `4 + k·(4 + 16 + L·(L+1)·l)` for `k` rotations |
//! | encrypted matrix | `17 + c·(16 + L·l)` for `c` ciphertexts |
//! | answer | `17 + c·4·l` |
//!
//! A receiver knows the length of every message before it allocates anything: matrices from the
//! layout it expects, key sets from their count, which it checks against a limit and the bytes at
//! hand. Residues are checked against their primes. Whatever is wrong is an error.

use crate::answer::Answer;
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::{GaloisKey, GaloisKeys, PublicKey, centre};
use crate::packing::layout::{Chunks, Layout};
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::params::{ANSWER_LIMBS, FINGERPRINT_BYTES, Params};
use crate::poly::Poly;
use primer_ring::pack;
use primer_ring::prg::{SEED_BYTES, Seed};
use std::collections::BTreeMap;
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"PRHE";
const VERSION: u8 = 1;
const HEADER: usize = 6 + FINGERPRINT_BYTES;
const LAYOUT: usize = 17;
/// Bits of a residue.
const WIDTH: u32 = 30;
/// Most rotation keys in one message.
pub const MAX_GALOIS_KEYS: usize = 512;

#[derive(Clone, Copy)]
enum Kind {
    PublicKey = 1,
    GaloisKeys = 2,
    Matrix = 3,
    Answer = 4,
}

pub(crate) fn fingerprint_error(params: &Params, found: &[u8]) -> HeError {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    HeError::Fingerprint {
        found: hex(found),
        expected: hex(params.fingerprint()),
    }
}

/// Bytes of one limb.
fn limb_bytes(params: &Params) -> usize {
    params.degree() * WIDTH as usize / 8
}

fn expect_length(bytes: &[u8], expected: usize) -> Result<(), HeError> {
    if bytes.len() == expected {
        Ok(())
    } else {
        Err(HeError::Length {
            expected,
            actual: bytes.len(),
        })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(params: &Params, kind: Kind, len: usize) -> Self {
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, kind as u8]);
        bytes.extend(params.fingerprint());
        Self(bytes)
    }

    fn number(&mut self, x: usize) {
        let x = u32::try_from(x).expect("counts of ciphertexts and columns fit 32 bits");
        self.0.extend(x.to_le_bytes());
    }

    fn layout(&mut self, layout: &Layout, chunks: &Chunks, count: usize) {
        self.0.push(layout.packing() as u8);
        for x in [layout.tokens(), layout.period(), chunks.total(), count] {
            self.number(x);
        }
    }

    fn residues(&mut self, residues: &[u32]) {
        pack::pack(residues.iter().map(|&x| x.into()), WIDTH, &mut self.0);
    }
}

/// Reads a message whose length has been checked.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks the common header.
    fn new(params: &Params, kind: Kind, bytes: &'a [u8]) -> Result<Self, HeError> {
        if bytes.len() < HEADER {
            return Err(HeError::Length {
                expected: HEADER,
                actual: bytes.len(),
            });
        }
        let mut reader = Self(bytes);
        let number = |b: &[u8]| b.iter().rev().fold(0, |x, &b| (x << 8) | u64::from(b));
        for (field, expected) in [
            ("magic", &MAGIC[..]),
            ("version", &[VERSION]),
            ("kind", &[kind as u8]),
        ] {
            let found = reader.take(expected.len());
            if found != expected {
                return Err(HeError::Header {
                    field,
                    found: number(found),
                    expected: number(expected),
                });
            }
        }
        let fingerprint = reader.take(FINGERPRINT_BYTES);
        if fingerprint != params.fingerprint() {
            return Err(fingerprint_error(params, fingerprint));
        }
        Ok(reader)
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(len);
        self.0 = rest;
        now
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn seed(&mut self) -> Seed {
        self.take(SEED_BYTES).try_into().expect("a seed")
    }

    fn layout(&mut self, layout: &Layout, chunks: &Chunks, count: usize) -> Result<(), HeError> {
        use crate::error::agree;
        agree(
            "packing of the message",
            self.take(1)[0].into(),
            layout.packing() as usize,
        )?;
        for (what, ours) in [
            ("tokens of the message", layout.tokens()),
            ("cell width of the message", layout.period()),
            ("columns of the message", chunks.total()),
            ("ciphertexts of the message", count),
        ] {
            agree(what, self.number() as usize, ours)?;
        }
        Ok(())
    }

    /// Limbs modulo the given primes, in this order.
    fn limbs(
        &mut self,
        params: &Params,
        primes: impl Iterator<Item = usize>,
    ) -> Result<Vec<u32>, HeError> {
        let primes: Vec<_> = primes.collect();
        let mut out = vec![0; primes.len() * params.degree()];
        for (limb, j) in out.chunks_exact_mut(params.degree()).zip(primes) {
            let bytes = self.take(limb_bytes(params));
            pack::unpack_u32(bytes, WIDTH, params.prime(j).value(), limb)?;
        }
        Ok(out)
    }
}

impl PublicKey {
    /// Bytes of a public key.
    pub fn wire_len(params: &Params) -> usize {
        HEADER + SEED_BYTES + params.flood_limbs() * limb_bytes(params)
    }

    /// The key as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(&self.params, Kind::PublicKey, Self::wire_len(&self.params));
        out.0.extend(self.seed);
        out.residues(self.b.data());
        out.0
    }

    /// The key from its bytes.
    ///
    /// # Errors
    /// If the bytes are not a public key for these parameters.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, Kind::PublicKey, bytes)?;
        expect_length(bytes, Self::wire_len(params))?;
        let seed = reader.seed();
        let b = reader.limbs(params, 0..params.flood_limbs())?;
        Ok(Self::from_parts(params, seed, Poly::from_data(params, b)))
    }
}

impl GaloisKeys {
    /// Bytes of `count` rotation keys.
    pub fn wire_len(params: &Params, count: usize) -> usize {
        HEADER + 4 + count * Self::one(params)
    }

    fn one(params: &Params) -> usize {
        4 + SEED_BYTES + params.data_primes() * params.all_primes() * limb_bytes(params)
    }

    /// The keys as they travel.
    pub fn to_bytes(&self) -> Vec<u8> {
        let len = Self::wire_len(&self.params, self.keys.len());
        let mut out = Writer::new(&self.params, Kind::GaloisKeys, len);
        out.number(self.keys.len());
        for (&steps, key) in &self.keys {
            out.0.extend(steps.to_le_bytes());
            out.0.extend(key.seed);
            out.residues(&key.b);
        }
        out.0
    }

    /// The keys from their bytes.
    ///
    /// # Errors
    /// If the bytes are not rotation keys for these parameters, in rising order, at most
    /// [`MAX_GALOIS_KEYS`].
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, Kind::GaloisKeys, bytes)?;
        if reader.0.len() < 4 {
            return Err(HeError::Length {
                expected: Self::wire_len(params, 0),
                actual: bytes.len(),
            });
        }
        let count = reader.number() as usize;
        if count > MAX_GALOIS_KEYS {
            return Err(HeError::Range {
                what: "number of rotation keys",
                value: count,
                max: MAX_GALOIS_KEYS,
            });
        }
        expect_length(bytes, Self::wire_len(params, count))?;
        let row = params.row() as i32;
        let mut keys = BTreeMap::new();
        let data = params.data_primes();
        for _ in 0..count {
            let steps = reader.number() as i32;
            let last = keys.last_key_value().map(|(&s, _)| s);
            if steps == 0
                || !(-row / 2..row / 2).contains(&steps)
                || last.is_some_and(|l| l >= steps)
            {
                return Err(HeError::Header {
                    field: "rotation",
                    found: steps as u32 as u64,
                    expected: centre(last.unwrap_or(-row / 2) + 1, row) as u32 as u64,
                });
            }
            let seed = reader.seed();
            let b = reader.limbs(
                params,
                (0..params.all_primes()).flat_map(|j| std::iter::repeat_n(j, data)),
            )?;
            keys.insert(steps, GaloisKey::receive(params, steps, seed, b));
        }
        Ok(Self {
            params: params.clone(),
            keys,
        })
    }
}

impl EncryptedMatrix {
    /// Bytes of a matrix with this layout and these chunks.
    pub fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        let one = SEED_BYTES + params.data_primes() * limb_bytes(params);
        HEADER + LAYOUT + Self::count(layout, chunks) * one
    }

    /// The matrix as it travels.
    pub fn to_bytes(&self, params: &Params) -> Vec<u8> {
        let len = Self::wire_len(params, &self.layout, &self.chunks);
        let mut out = Writer::new(params, Kind::Matrix, len);
        out.layout(&self.layout, &self.chunks, self.ciphertexts.len());
        for ct in &self.ciphertexts {
            out.0.extend(ct.seed);
            out.residues(ct.c0.data());
        }
        out.0
    }

    /// A matrix from its bytes; layout and chunks are those that the receiver's plan expects.
    ///
    /// # Errors
    /// If the bytes are not such a matrix.
    pub fn from_bytes(
        params: &Params,
        layout: &Layout,
        chunks: &Chunks,
        bytes: &[u8],
    ) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, Kind::Matrix, bytes)?;
        expect_length(bytes, Self::wire_len(params, layout, chunks))?;
        let count = Self::count(layout, chunks);
        reader.layout(layout, chunks, count)?;
        let ciphertexts = (0..count)
            .map(|_| {
                let seed = reader.seed();
                let c0 = reader.limbs(params, 0..params.data_primes())?;
                Ok(SeededCiphertext {
                    seed,
                    c0: Poly::from_data(params, c0),
                })
            })
            .collect::<Result<_, HeError>>()?;
        Ok(Self {
            layout: *layout,
            chunks: chunks.clone(),
            ciphertexts,
        })
    }
}

impl EncryptedAnswer {
    /// Bytes of an answer with this layout and these chunks.
    pub fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        let count = EncryptedMatrix::count(layout, chunks);
        HEADER + LAYOUT + count * 2 * ANSWER_LIMBS * limb_bytes(params)
    }

    /// The answer as it travels.
    pub fn to_bytes(&self, params: &Params) -> Vec<u8> {
        let len = Self::wire_len(params, &self.layout, &self.chunks);
        let mut out = Writer::new(params, Kind::Answer, len);
        out.layout(&self.layout, &self.chunks, self.answers.len());
        for half in self.answers.iter().flat_map(|a| &a.halves) {
            out.residues(half.data());
        }
        out.0
    }

    /// An answer from its bytes; layout and chunks are those that the receiver's plan expects.
    ///
    /// # Errors
    /// If the bytes are not such an answer.
    pub fn from_bytes(
        params: &Params,
        layout: &Layout,
        chunks: &Chunks,
        bytes: &[u8],
    ) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, Kind::Answer, bytes)?;
        expect_length(bytes, Self::wire_len(params, layout, chunks))?;
        let count = EncryptedMatrix::count(layout, chunks);
        reader.layout(layout, chunks, count)?;
        let answers = (0..count)
            .map(|_| {
                let mut half = || {
                    let data = reader.limbs(params, 0..ANSWER_LIMBS)?;
                    Ok::<_, HeError>(Poly::from_data(params, data))
                };
                Ok(Answer {
                    halves: [half()?, half()?],
                })
            })
            .collect::<Result<_, HeError>>()?;
        Ok(Self {
            layout: *layout,
            chunks: chunks.clone(),
            answers,
        })
    }
}
