//! Encrypted matrices and answers as they travel.

use super::{ANSWER, MATRIX, read_layout, write_layout};
use crate::answer::AnswerCiphertext;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::params::{ANSWER_LIMBS, Params};
use primer_lattice::poly::Poly;
use primer_rlwe::error::HeError;
use primer_rlwe::wire::{
    HEADER, LAYOUT, Reader, Writer, ciphertext_len, expect_length, limb_bytes,
};

impl EncryptedMatrix {
    /// Counts the bytes of a matrix with this layout and these chunks.
    pub(crate) fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        HEADER + LAYOUT + Self::count(layout, chunks) * ciphertext_len(params)
    }

    /// Returns the matrix as it travels.
    pub(crate) fn to_bytes(&self, params: &Params) -> Vec<u8> {
        let len = Self::wire_len(params, &self.layout, &self.chunks);
        let mut out = Writer::new(params, MATRIX, len);
        write_layout(&mut out, &self.layout, &self.chunks, self.ciphertexts.len());
        for ct in &self.ciphertexts {
            out.bytes(&ct.seed);
            out.residues(ct.c0.data());
        }
        out.finish()
    }

    /// Reads a matrix from its bytes; layout and chunks are those that the receiver's plan expects.
    ///
    /// # Errors
    /// If the bytes are not such a matrix.
    pub(crate) fn from_bytes(
        params: &Params,
        layout: &Layout,
        chunks: &Chunks,
        bytes: &[u8],
    ) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, MATRIX, bytes)?;
        expect_length(bytes, Self::wire_len(params, layout, chunks))?;
        let count = Self::count(layout, chunks);
        read_layout(&mut reader, layout, chunks, count)?;
        let ciphertexts = reader.ciphertexts(params, count)?;
        Ok(Self {
            layout: *layout,
            chunks: chunks.clone(),
            ciphertexts,
        })
    }
}

impl EncryptedAnswer {
    /// Counts the bytes of an answer with this layout and these chunks.
    pub(crate) fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        let count = EncryptedMatrix::count(layout, chunks);
        HEADER + LAYOUT + count * 2 * ANSWER_LIMBS * limb_bytes(params)
    }

    /// Returns the answer as it travels.
    pub(crate) fn to_bytes(&self, params: &Params) -> Vec<u8> {
        let len = Self::wire_len(params, &self.layout, &self.chunks);
        let mut out = Writer::new(params, ANSWER, len);
        write_layout(&mut out, &self.layout, &self.chunks, self.answers.len());
        for half in self.answers.iter().flat_map(|a| &a.halves) {
            out.residues(half.data());
        }
        out.finish()
    }

    /// Reads an answer from its bytes; layout and chunks are those that the receiver's plan
    /// expects.
    ///
    /// # Errors
    /// If the bytes are not such an answer.
    pub(crate) fn from_bytes(
        params: &Params,
        layout: &Layout,
        chunks: &Chunks,
        bytes: &[u8],
    ) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, ANSWER, bytes)?;
        expect_length(bytes, Self::wire_len(params, layout, chunks))?;
        let count = EncryptedMatrix::count(layout, chunks);
        read_layout(&mut reader, layout, chunks, count)?;
        let answers = (0..count)
            .map(|_| {
                let mut half = || {
                    let data = reader.limbs(params, 0..ANSWER_LIMBS)?;
                    Ok::<_, HeError>(Poly::from_data(params.basis(), data))
                };
                Ok(AnswerCiphertext {
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
