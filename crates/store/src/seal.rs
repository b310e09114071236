//! Encryption of the bulk: sealed chunks in the STREAM construction.
//!
//! ```text
//! file   = magic (16) ‖ salt (32) ‖ chunk 0 ‖ … ‖ chunk n
//! key    = BLAKE3-keyed(store key, context ‖ id ‖ salt)
//! chunk i = AES-256-GCM(key, nonce = 0^7 ‖ i as u32 big-endian ‖ last?, plaintext)
//!           256 KiB of plaintext, or fewer in the last chunk
//! ```
//!
//! The nonce counts the chunks and marks the last one (Hoang, Reyhanitabar, Rogaway, Vizár, CRYPTO
//! 2015), so that chunks cannot be exchanged, repeated, left out or cut off. Every file has a fresh
//! random salt and with it a fresh key: no nonce meets a key twice, even when a name is drafted
//! twice. The name is part of the derivation, so that the files of two bundles cannot be exchanged
//! either. A chunk is authenticated as a whole before any byte of it is given out.
//!
//! In a page's slots the cipher is ChaCha20-Poly1305 (`cipher` says why), under a context of its
//! own. `benches/bundle.rs` has the measured rate of AES-GCM.

pub use crate::cipher::TAG_BYTES;

use crate::cipher::Cipher;
use crate::id::BundleId;
use primer_ring::wipe::SecretBytes;
use std::io::{self, Read, Write};
use thiserror::Error;
use zeroize::Zeroizing;

/// Plaintext bytes of every chunk except the last.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of a salt.
pub const SALT_BYTES: usize = 32;
/// How a bulk file begins.
pub const MAGIC: [u8; 16] = *b"primer bundle 01";
/// Bytes before the first chunk.
pub const HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES;

/// Tells derivations apart.
#[cfg(feature = "files")]
const FILES: &[u8; 34] = b"primer store v1: key of one bundle";
#[cfg(feature = "slots")]
const SLOTS: &[u8; 34] = b"primer slots v1: key of one bundle";

/// Why a sealed stream cannot be read. Comes inside an [`io::Error`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SealError {
    /// Authentication failed.
    #[error("chunk {chunk} of the bundle is not what was written: damaged, cut off or exchanged")]
    Forged {
        /// Which chunk, from zero.
        chunk: u32,
    },
    /// The file ended before its length.
    #[error("the bundle ends within chunk {chunk}")]
    Short {
        /// Which chunk, from zero.
        chunk: u32,
    },
    /// No stream has this length.
    #[error("no bundle has {bytes} bytes of chunks")]
    Length {
        /// The length given.
        bytes: u64,
    },
    /// More chunks than the counter counts.
    #[error("a bundle may have 2^32 chunks at most")]
    TooLong,
}

/// The key of one bundle. Wiped when dropped.
pub struct BundleKey(Cipher);

impl BundleKey {
    /// Derives the key of the bundle `id` whose file has this salt.
    #[cfg(feature = "files")]
    pub fn derive(store_key: &[u8; 32], id: BundleId, salt: &[u8; SALT_BYTES]) -> Self {
        Self(Cipher::aes(&derive(FILES, store_key, id, salt)))
    }

    /// Derives the key of the bundle `id` whose slot has this salt.
    #[cfg(feature = "slots")]
    pub(crate) fn of_slot(store_key: &[u8; 32], id: BundleId, salt: &[u8; SALT_BYTES]) -> Self {
        Self(Cipher::chacha(&derive(SLOTS, store_key, id, salt)))
    }
}

fn derive(
    context: &[u8; 34],
    store_key: &[u8; 32],
    id: BundleId,
    salt: &[u8; SALT_BYTES],
) -> Zeroizing<[u8; 32]> {
    let mut input = Zeroizing::new([0; 34 + 16 + SALT_BYTES]);
    input[..34].copy_from_slice(context);
    input[34..50].copy_from_slice(id.as_bytes());
    input[50..].copy_from_slice(salt);
    Zeroizing::new(*blake3::keyed_hash(store_key, &*input).as_bytes())
}

#[cfg(feature = "files")]
impl BundleKey {
    /// Derives the key of a bundle whose salt may be kept in two halves, one in its file and one
    /// elsewhere: their sum is the salt.
    pub(crate) fn derive_from(
        store_key: &[u8; 32],
        id: BundleId,
        salt: &[u8; SALT_BYTES],
        other_salt: Option<&[u8; SALT_BYTES]>,
    ) -> Self {
        let mut sum = Zeroizing::new(*salt);
        for (byte, other) in sum.iter_mut().zip(other_salt.into_iter().flatten()) {
            *byte ^= other;
        }
        Self::derive(store_key, id, &sum)
    }
}

fn nonce(chunk: u32, last: bool) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[7..11].copy_from_slice(&chunk.to_be_bytes());
    bytes[11] = u8::from(last);
    bytes
}

/// Returns the number of bytes of the chunks of a plaintext.
pub fn sealed_bytes(plain: u64) -> u64 {
    let chunks = plain.div_ceil(CHUNK_BYTES as u64).max(1);
    plain + chunks * TAG_BYTES as u64
}

/// Returns the number of bytes of the file of a bundle.
#[cfg(feature = "files")]
pub(crate) fn file_bytes(plain: u64) -> u64 {
    HEADER_BYTES as u64 + sealed_bytes(plain)
}

/// Plaintext of a chunk on its way, with room for its tag. Wiped when dropped. It never grows
/// beyond its first capacity, which would leave a copy behind.
pub(crate) type Chunk = SecretBytes;

/// Makes an empty chunk.
pub(crate) fn empty_chunk() -> Chunk {
    SecretBytes::with_capacity(CHUNK_BYTES + TAG_BYTES)
}

/// Seals whole chunks. After an error the stream must not be continued.
pub(crate) struct Chunks<W> {
    key: BundleKey,
    out: W,
    next: u32,
}

impl<W: Write> Chunks<W> {
    pub(crate) fn new(out: W, key: BundleKey) -> Self {
        Self { key, out, next: 0 }
    }

    /// Seals a chunk in place and writes it; it is empty then.
    pub(crate) fn seal(&mut self, chunk: &mut Chunk, last: bool) -> io::Result<()> {
        // The counter's last value is kept for a last chunk, so that it never wraps.
        if !last && self.next == u32::MAX {
            return Err(io::Error::other(SealError::TooLong));
        }
        if !self.key.0.seal(nonce(self.next, last), chunk) {
            return Err(io::Error::other("encryption failed"));
        }
        self.out.write_all(chunk)?;
        chunk.clear();
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Returns the writer below.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// Returns a reference to the writer below.
    #[cfg(feature = "files")]
    pub(crate) fn get_ref(&self) -> &W {
        &self.out
    }
}

/// Encrypts what is written to it. After an error the stream must not be continued.
pub struct Sealer<W> {
    chunks: Chunks<W>,
    buffer: Chunk,
    plain: u64,
}

impl<W: Write> Sealer<W> {
    /// Makes a stream of chunks into `out`.
    pub fn new(out: W, key: BundleKey) -> Self {
        Self {
            chunks: Chunks::new(out, key),
            buffer: empty_chunk(),
            plain: 0,
        }
    }

    /// Writes the last chunk. Returns the writer below, and the plaintext's length.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.chunks.seal(&mut self.buffer, true)?;
        Ok((self.chunks.into_inner(), self.plain))
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        // A full chunk waits for more: only then is it known not to be the last.
        if self.buffer.len() == CHUNK_BYTES {
            self.chunks.seal(&mut self.buffer, false)?;
        }
        let now = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..now]);
        self.plain += now as u64;
        Ok(now)
    }

    /// Passes on what is sealed. An unfinished chunk stays, since every chunk but the last is full.
    fn flush(&mut self) -> io::Result<()> {
        self.chunks.out.flush()
    }
}

/// Decrypts what is read from it, a chunk at a time, each authenticated before a byte of it is
/// given out.
pub struct Opener<R> {
    key: BundleKey,
    source: R,
    /// Bytes of chunks not yet read.
    left: u64,
    buffer: SecretBytes,
    given: usize,
    chunk: u32,
    failed: bool,
}

impl<R: Read> Opener<R> {
    /// Makes a reader of the plaintext of the chunks in `source`, which has `sealed` bytes of them.
    pub fn new(source: R, key: BundleKey, sealed: u64) -> Result<Self, SealError> {
        let chunk = (CHUNK_BYTES + TAG_BYTES) as u64;
        let chunks = sealed.div_ceil(chunk);
        let last = sealed.saturating_sub(chunks.saturating_sub(1) * chunk);
        // A last chunk is empty only where it is the only one.
        let shortest = TAG_BYTES as u64 + u64::from(chunks > 1);
        if chunks > 1 << 32 || last < shortest {
            return Err(SealError::Length { bytes: sealed });
        }
        Ok(Self {
            key,
            source,
            left: sealed,
            buffer: SecretBytes::with_capacity(chunk.min(sealed) as usize),
            given: 0,
            chunk: 0,
            failed: false,
        })
    }

    /// Returns the number of plaintext bytes not yet read.
    pub fn left(&self) -> u64 {
        let chunks = self.left.div_ceil((CHUNK_BYTES + TAG_BYTES) as u64);
        (self.buffer.len() - self.given) as u64 + self.left - chunks * TAG_BYTES as u64
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let chunk = self.chunk;
        let bytes = self.left.min((CHUNK_BYTES + TAG_BYTES) as u64) as usize;
        let last = self.left == bytes as u64;
        self.buffer.resize(bytes, 0);
        self.given = bytes;
        self.source
            .read_exact(&mut self.buffer)
            .map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(e.kind(), SealError::Short { chunk })
                }
                _ => e,
            })?;
        if !self.key.0.open(nonce(chunk, last), &mut self.buffer) {
            let forged = SealError::Forged { chunk };
            return Err(io::Error::new(io::ErrorKind::InvalidData, forged));
        }
        self.given = 0;
        self.left -= bytes as u64;
        self.chunk = chunk.saturating_add(1);
        Ok(())
    }
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.failed {
            let why = "the bundle could not be read before";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if self.given == self.buffer.len() {
            if self.left == 0 {
                return Ok(0);
            }
            self.next_chunk().inspect_err(|_| self.failed = true)?;
        }
        let now = out.len().min(self.buffer.len() - self.given);
        out[..now].copy_from_slice(&self.buffer[self.given..self.given + now]);
        self.given += now;
        Ok(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: BundleId = BundleId::from_bytes([1; 16]);
    const FULL: usize = CHUNK_BYTES + TAG_BYTES;

    fn key(salt: u8) -> BundleKey {
        BundleKey::derive(&[7; 32], ID, &[salt; SALT_BYTES])
    }

    fn seal(plain: &[u8], step: usize) -> Vec<u8> {
        let mut sealer = Sealer::new(Vec::new(), key(0));
        for part in plain.chunks(step.max(1)) {
            sealer.write_all(part).unwrap();
        }
        let (sealed, bytes) = sealer.finish().unwrap();
        assert_eq!(bytes, plain.len() as u64);
        assert_eq!(sealed.len() as u64, sealed_bytes(bytes));
        sealed
    }

    fn open(sealed: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let opener = Opener::new(sealed, key(0), sealed.len() as u64);
        opener.map_err(io::Error::other)?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| ((i * 31) >> 3) as u8).collect()
    }

    #[test]
    fn every_length_comes_back() {
        for bytes in [
            0,
            1,
            15,
            16,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            3 * CHUNK_BYTES,
        ] {
            let plain = text(bytes);
            assert_eq!(open(&seal(&plain, 70_001)).unwrap(), plain, "{bytes} bytes");
        }
    }

    #[test]
    fn chunks_cannot_be_exchanged_repeated_or_left_out() {
        let sealed = seal(&text(3 * CHUNK_BYTES + 5), 1 << 20);
        let chunk = |i: usize| &sealed[i * FULL..((i + 1) * FULL).min(sealed.len())];
        for order in [
            &[1, 0, 2, 3][..],
            &[0, 1, 1, 3],
            &[0, 1, 3],
            &[0, 1, 2],
            &[3],
        ] {
            let forged: Vec<u8> = order.iter().flat_map(|&i| chunk(i).to_vec()).collect();
            let error = open(&forged).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidData,
                "{order:?}: {error}"
            );
            let first = order.iter().zip(0..).find(|&(&i, at)| i != at);
            // Where nothing is out of place, a chunk that was not the last one now is.
            let first = first.map_or(order.len() - 1, |(_, at)| at);
            assert!(error.to_string().starts_with(&format!("chunk {first} ")));
        }
    }

    #[test]
    fn a_failure_lasts_and_other_keys_fail() {
        let mut sealed = seal(&text(2 * CHUNK_BYTES), 1 << 20);
        let mut other = Opener::new(&sealed[..], key(1), sealed.len() as u64).unwrap();
        assert!(other.read(&mut [0; 9]).is_err());
        sealed[FULL + 3] ^= 1;
        let mut opener = Opener::new(&sealed[..], key(0), sealed.len() as u64).unwrap();
        assert_eq!(opener.left(), 2 * CHUNK_BYTES as u64);
        let mut first = vec![0; CHUNK_BYTES];
        opener.read_exact(&mut first).unwrap();
        assert_eq!(first, text(CHUNK_BYTES), "what is authentic is given out");
        assert!(opener.read(&mut first).is_err());
        assert!(opener.read(&mut first).is_err());
    }

    #[test]
    fn names_part_keys() {
        let sealed = seal(b"material", 8);
        let key = BundleKey::derive(&[7; 32], BundleId::from_bytes([2; 16]), &[0; SALT_BYTES]);
        let mut opener = Opener::new(&sealed[..], key, sealed.len() as u64).unwrap();
        assert!(opener.read(&mut [0; 8]).is_err());
    }

    #[test]
    fn impossible_lengths_and_short_files_are_refused() {
        for bytes in [0, 15, FULL as u64 + 16, u64::MAX] {
            assert!(matches!(
                Opener::new(io::empty(), key(0), bytes),
                Err(SealError::Length { .. })
            ));
        }
        let sealed = seal(&text(100), 100);
        let mut opener = Opener::new(&sealed[..50], key(0), sealed.len() as u64).unwrap();
        let error = opener.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(error.to_string(), "the bundle ends within chunk 0");
    }

    proptest! {
        #[test]
        fn no_flipped_bit_passes(bytes in 0usize..600, at: prop::sample::Index, bit in 0u32..8) {
            let mut sealed = seal(&text(bytes), 64);
            let at = at.index(sealed.len());
            sealed[at] ^= 1u8 << bit;
            prop_assert!(open(&sealed).is_err());
        }

        #[test]
        fn no_cut_passes(bytes in 0usize..600, keep in any::<prop::sample::Index>()) {
            let sealed = seal(&text(bytes), 64);
            prop_assert!(open(&sealed[..keep.index(sealed.len())]).is_err());
        }
    }
}
