//! What travels: versioned, bit-packed, bound to its parameters.
//!
//! Every message starts with the same 22 bytes: `PRHE`, the version, the kind, and the fingerprint
//! of the parameters. Matrices go on with the layout that they are in (packing, tokens, cell width,
//! columns, ciphertexts), so that a receiver with another idea of the plan says so instead of
//! computing nonsense. Then come seeds (16 bytes) and limbs, each limb `N` residues of 30 bits.
//!
//! | message | bytes after the header |
//! |---|---|
//! | public key | `16 + 4·l` with `l = 30·N/8` bytes a limb |
//! | public key without rotations | `16 + L·l` |
//! | Galois keys | `4 + k·(4 + 16 + L·(L+1)·l)` for `k` rotations |
//! | encrypted matrix | `17 + c·(16 + L·l)` for `c` ciphertexts |
//! | answer | `17 + c·4·l` |
//! | split query | `17 + c·(16 + L·l)` |
//! | split answer | `17 + c·w·N`, `w` bytes for each coefficient of the half that is sent |
//!
//! A receiver knows the length of every message before it allocates anything: matrices from the
//! layout it expects, key sets from their count, which it checks against a limit and the bytes at
//! hand. Residues are checked against their primes. Whatever is wrong is an error.

mod keys;
mod matrices;
mod split;

pub(crate) use split::{
    CiphertextWriter, Described, answer_ciphertexts, answer_len, ciphertext_len, query_ciphertexts,
    query_len, read_answer, read_query, start_answer, start_query,
};

use crate::error::HeError;
use crate::keys::{GaloisKeys, PublicKey};
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::params::{FINGERPRINT_BYTES, Params};
use primer_ring::pack;
use primer_ring::prg::{SEED_BYTES, Seed};
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"PRHE";
const VERSION: u8 = 1;
const HEADER: usize = 6 + FINGERPRINT_BYTES;
const LAYOUT: usize = 17;
/// Bits of a residue.
const WIDTH: u32 = 30;

#[derive(Clone, Copy)]
enum Kind {
    PublicKey = 1,
    GaloisKeys = 2,
    Matrix = 3,
    Answer = 4,
    SplitQuery = 5,
    SplitAnswer = 7,
}

/// Bytes for people to compare.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn fingerprint_error(params: &Params, found: &[u8]) -> HeError {
    HeError::Fingerprint {
        found: hex(found),
        expected: hex(params.fingerprint()),
    }
}

/// Bytes of one limb.
fn limb_bytes(params: &Params) -> usize {
    params.degree() * WIDTH as usize / 8
}

/// Fails unless a message has a length.
pub(crate) fn expect_length(bytes: &[u8], expected: usize) -> Result<(), HeError> {
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

/// A message decoded and encoded again: the fuzzer asks of every decoder that one value has one
/// encoding. Kinds are a public key, rotation keys, a query and an answer; the last two of a matrix
/// of some size, tokens-first.
///
/// # Errors
/// If the bytes are not such a message.
pub fn recoded(
    kind: u8,
    params: &Arc<Params>,
    (rows, cols): (usize, usize),
    bytes: &[u8],
) -> Result<Vec<u8>, HeError> {
    let layout = Layout::tokens_first(params, rows)?;
    let chunks = Chunks::even(&layout, cols);
    Ok(match kind {
        0 => PublicKey::from_bytes(params, bytes)?.to_bytes(),
        1 => GaloisKeys::from_bytes(params, bytes)?.to_bytes(),
        2 => EncryptedMatrix::from_bytes(params, &layout, &chunks, bytes)?.to_bytes(params),
        _ => EncryptedAnswer::from_bytes(params, &layout, &chunks, bytes)?.to_bytes(params),
    })
}
