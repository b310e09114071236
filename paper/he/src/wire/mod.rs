//! What travels, beside public keys: versioned, bit-packed, bound to its parameters, with the
//! header of [`primer_rlwe::wire`].
//!
//! Matrices go on with the layout that they are in (packing, tokens, cell width, columns,
//! ciphertexts), so that a receiver with another idea of the plan says so instead of computing
//! nonsense. Then come seeds (16 bytes) and limbs, each limb `N` residues of 30 bits.
//!
//! | message | kind | bytes after the header |
//! |---|---|---|
//! | public key | 1 | `16 + 4·l` with `l = 30·N/8` bytes a limb |
//! | Galois keys | 2 | `4 + k·(4 + 16 + L·(L+1)·l)` for `k` rotations |
//! | encrypted matrix | 3 | `17 + c·(16 + L·l)` for `c` ciphertexts |
//! | answer | 4 | `17 + c·4·l` |
//!
//! A receiver knows the length of every message before it allocates anything: matrices from the
//! layout it expects, key sets from their count, which it checks against a limit and the bytes at
//! hand. Residues are checked against their primes. Anything wrong is an error.

mod keys;
mod matrices;

use crate::error::HeError;
use crate::keys::GaloisKeys;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::params::Params;
use primer_rlwe::error::{HeError as Common, agree};
use primer_rlwe::keys::PublicKey;
use primer_rlwe::wire::{Reader, Writer};
use std::sync::Arc;

/// Code of rotation keys.
const GALOIS_KEYS: u8 = 2;
/// Code of an encrypted matrix.
const MATRIX: u8 = 3;
/// Code of an answer.
const ANSWER: u8 = 4;

/// Writes a layout.
fn write_layout(out: &mut Writer, layout: &Layout, chunks: &Chunks, count: usize) {
    out.bytes(&[layout.packing() as u8]);
    for x in [layout.tokens(), layout.period(), chunks.total(), count] {
        out.number(x);
    }
}

/// Reads a layout, which has to be the one that is expected.
fn read_layout(
    reader: &mut Reader<'_>,
    layout: &Layout,
    chunks: &Chunks,
    count: usize,
) -> Result<(), Common> {
    agree(
        "packing of the message",
        reader.take(1)[0].into(),
        layout.packing() as usize,
    )?;
    for (what, ours) in [
        ("tokens of the message", layout.tokens()),
        ("cell width of the message", layout.period()),
        ("columns of the message", chunks.total()),
        ("ciphertexts of the message", count),
    ] {
        agree(what, reader.number() as usize, ours)?;
    }
    Ok(())
}

/// Decodes a message and encodes it again: the fuzzer asks of every decoder that one value has one
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
