//! Messages of products of two secrets: ciphertexts of queries, headers of answers.
//!
//! After the common header come a byte for the form of the matrix and four numbers: rows, columns,
//! how it is cut, and ciphertexts. A query goes on with its ciphertexts. An answer goes on with the
//! halves of ciphertexts that are sent; these are written and read where they are made and opened.

use super::{
    HEADER, LAYOUT, Reader, SPLIT_ANSWER, SPLIT_QUERY, WIDTH, Writer, ciphertext_len, expect_length,
};
use crate::ciphertext::SeededCiphertext;
use crate::error::{HeError, agree};
use crate::params::Params;
use primer_ring::pack;
use primer_ring::prg::{SEED_BYTES, Seed};

/// What a message says about the matrix in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Described {
    /// Which form.
    pub(crate) form: u8,
    /// Rows, columns, how it is cut, ciphertexts.
    pub(crate) numbers: [usize; 4],
}

/// Counts the bytes of a query of some ciphertexts.
pub(crate) fn query_len(params: &Params, count: usize) -> usize {
    HEADER + LAYOUT + count * ciphertext_len(params)
}

/// Counts the bytes of an answer, given those of its ciphertexts.
pub(crate) fn answer_len(ciphertexts: usize) -> usize {
    HEADER + LAYOUT + ciphertexts
}

fn start(params: &Params, kind: u8, described: &Described, len: usize) -> Writer {
    let mut out = Writer::new(params, kind, len);
    out.bytes(&[described.form]);
    described.numbers.iter().for_each(|&x| out.number(x));
    out
}

fn open<'a>(
    params: &Params,
    kind: u8,
    described: &Described,
    bytes: &'a [u8],
    len: usize,
) -> Result<Reader<'a>, HeError> {
    let mut reader = Reader::new(params, kind, bytes)?;
    expect_length(bytes, len)?;
    let form = usize::from(reader.take(1)[0]);
    agree("form of the message", form, described.form.into())?;
    let names = [
        "rows of the message",
        "columns of the message",
        "cut of the message",
        "ciphertexts of the message",
    ];
    for (what, ours) in names.into_iter().zip(described.numbers) {
        agree(what, reader.number() as usize, ours)?;
    }
    Ok(reader)
}

/// Starts a query: it is as it travels, but for its ciphertexts, whose bytes, the last, are zero.
pub(crate) fn start_query(params: &Params, described: &Described) -> Vec<u8> {
    let [.., count] = described.numbers;
    let len = query_len(params, count);
    let mut out = start(params, SPLIT_QUERY, described, len).finish();
    out.resize(len, 0);
    out
}

/// Returns the ciphertexts of a query that was started.
pub(crate) fn query_ciphertexts(query: &mut [u8]) -> &mut [u8] {
    &mut query[HEADER + LAYOUT..]
}

/// Writes one ciphertext into its bytes, limb by limb.
pub(crate) struct CiphertextWriter<'a>(&'a mut [u8]);

impl<'a> CiphertextWriter<'a> {
    /// Writes the seed.
    ///
    /// # Panics
    /// If there is not that much room.
    pub(crate) fn new(seed: &Seed, out: &'a mut [u8]) -> Self {
        let (now, later) = out.split_at_mut(SEED_BYTES);
        now.copy_from_slice(seed);
        Self(later)
    }

    /// Writes the next limb of `c0`.
    ///
    /// # Panics
    /// If there is not that much room.
    pub(crate) fn limb(&mut self, residues: &[u32]) {
        let len = residues.len() * WIDTH as usize / 8;
        let (now, later) = std::mem::take(&mut self.0).split_at_mut(len);
        pack::pack_into(residues.iter().map(|&x| x.into()), WIDTH, now);
        self.0 = later;
    }
}

/// Reads a query from its bytes; the last number of the description says how many ciphertexts it
/// has.
///
/// # Errors
/// If the bytes are not such a query.
pub(crate) fn read_query(
    params: &Params,
    described: &Described,
    bytes: &[u8],
) -> Result<Vec<SeededCiphertext>, HeError> {
    let [.., count] = described.numbers;
    let len = query_len(params, count);
    let mut reader = open(params, SPLIT_QUERY, described, bytes, len)?;
    reader.ciphertexts(params, count)
}

/// Starts an answer of `len` bytes in all, those of its ciphertexts, the last, still zero.
pub(crate) fn start_answer(params: &Params, described: &Described, len: usize) -> Vec<u8> {
    let mut out = start(params, SPLIT_ANSWER, described, len).finish();
    out.resize(len, 0);
    out
}

/// Returns the ciphertexts of an answer that was started.
pub(crate) fn answer_ciphertexts(answer: &mut [u8]) -> &mut [u8] {
    &mut answer[HEADER + LAYOUT..]
}

/// Reads the ciphertexts of an answer of `len` bytes in all.
///
/// # Errors
/// If the bytes are not such an answer.
pub(crate) fn read_answer<'a>(
    params: &Params,
    described: &Described,
    bytes: &'a [u8],
    len: usize,
) -> Result<&'a [u8], HeError> {
    Ok(open(params, SPLIT_ANSWER, described, bytes, len)?.rest())
}
