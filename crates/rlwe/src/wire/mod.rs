//! What travels: versioned, bit-packed, bound to its parameters.
//!
//! Every message starts with the same 22 bytes: `PRHE`, the version, the kind, and the fingerprint
//! of the parameters. Matrices go on with what they say about themselves (form, rows, columns, how
//! they are cut, ciphertexts), so that a receiver with another idea of the plan says so instead of
//! computing nonsense. Then come seeds (16 bytes) and limbs, each limb `N` residues of 30 bits.
//!
//! | message | kind | bytes after the header |
//! |---|---|---|
//! | public key | 1 | `16 + L·l` with `l = 30·N/8` bytes a limb |
//! | split query | 5 | `17 + c·(16 + L·l)` for `c` ciphertexts |
//! | split answer | 7 | `17 + c·w·N`, `w` bytes for each coefficient of the half that is sent |
//!
//! Kinds 2, 3 and 4 are messages of `paper/he`, whose public keys have fewer than `L` limbs; 6 is
//! free.
//!
//! A receiver knows the length of every message before it allocates anything. Residues are checked
//! against their primes. Anything wrong is an error.

mod keys;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use split::{
    CiphertextWriter, Described, answer_ciphertexts, answer_len, query_ciphertexts, query_len,
    read_answer, read_query, start_answer, start_query,
};

use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::params::{FINGERPRINT_BYTES, Params};
use primer_lattice::poly::Poly;
use primer_ring::pack;
use primer_ring::prg::{SEED_BYTES, Seed};

const MAGIC: [u8; 4] = *b"PRHE";
const VERSION: u8 = 1;
/// Bytes of the header of every message.
pub const HEADER: usize = 6 + FINGERPRINT_BYTES;
/// Bytes of what a message says about the matrix in it.
pub const LAYOUT: usize = 17;
/// Bits of a residue.
const WIDTH: u32 = 30;

/// Code of a public key.
const PUBLIC_KEY: u8 = 1;
/// Code of a split query.
const SPLIT_QUERY: u8 = 5;
/// Code of a split answer.
const SPLIT_ANSWER: u8 = 7;

/// Writes bytes for people to compare.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the error of something that was made for other parameters.
pub fn fingerprint_error(params: &Params, found: &[u8]) -> HeError {
    HeError::Fingerprint {
        found: hex(found),
        expected: hex(params.fingerprint()),
    }
}

/// Counts the bytes of one limb.
pub fn limb_bytes(params: &Params) -> usize {
    params.degree() * WIDTH as usize / 8
}

/// Counts the bytes of one ciphertext of a query.
pub fn ciphertext_len(params: &Params) -> usize {
    SEED_BYTES + params.data_primes() * limb_bytes(params)
}

/// Checks that a message has a length.
///
/// # Errors
/// [`HeError::Length`] with both.
pub fn expect_length(bytes: &[u8], expected: usize) -> Result<(), HeError> {
    if bytes.len() == expected {
        Ok(())
    } else {
        Err(HeError::Length {
            expected,
            actual: bytes.len(),
        })
    }
}

/// Writes a message.
pub struct Writer(Vec<u8>);

impl Writer {
    /// Writes the header of a message of a kind, which has `len` bytes in the end.
    pub fn new(params: &Params, kind: u8, len: usize) -> Self {
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, kind]);
        bytes.extend(params.fingerprint());
        Self(bytes)
    }

    /// Writes some bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes a number of 32 bits.
    ///
    /// # Panics
    /// If it has more.
    pub fn number(&mut self, x: usize) {
        let x = u32::try_from(x).expect("counts of ciphertexts and columns fit 32 bits");
        self.bytes(&x.to_le_bytes());
    }

    /// Writes residues, packed.
    pub fn residues(&mut self, residues: &[u32]) {
        pack::pack(residues.iter().map(|&x| x.into()), WIDTH, &mut self.0);
    }

    /// Returns the message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a message. What it reads has to be there: lengths are checked first.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks the header of a message of a kind.
    ///
    /// # Errors
    /// If the bytes start in another way.
    pub fn new(params: &Params, kind: u8, bytes: &'a [u8]) -> Result<Self, HeError> {
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
            ("kind", &[kind]),
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

    /// Returns what was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads some bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(len);
        self.0 = rest;
        now
    }

    /// Reads a number of 32 bits.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    /// Reads a seed.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn seed(&mut self) -> Seed {
        self.take(SEED_BYTES).try_into().expect("a seed")
    }

    /// Reads limbs modulo the given primes, in this order.
    ///
    /// # Errors
    /// If a residue is not below its prime.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn limbs(
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

    /// Reads the ciphertexts of a query.
    ///
    /// # Errors
    /// If a residue is not below its prime.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn ciphertexts(
        &mut self,
        params: &Params,
        count: usize,
    ) -> Result<Vec<SeededCiphertext>, HeError> {
        let ciphertexts = (0..count).map(|_| {
            let seed = self.seed();
            let c0 = self.limbs(params, 0..params.data_primes())?;
            let c0 = Poly::from_data(params.basis(), c0);
            Ok(SeededCiphertext { seed, c0 })
        });
        ciphertexts.collect()
    }
}
