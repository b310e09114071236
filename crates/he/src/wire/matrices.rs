//! Encrypted matrices and answers as they travel.

use super::{HEADER, Kind, LAYOUT, Reader, Writer, expect_length, limb_bytes};
use crate::answer::Answer;
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use crate::params::{ANSWER_LIMBS, Params};
use primer_lattice::poly::Poly;
use primer_ring::prg::SEED_BYTES;

impl EncryptedMatrix {
    /// Bytes of a matrix with this layout and these chunks.
    pub(crate) fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        let one = SEED_BYTES + params.data_primes() * limb_bytes(params);
        HEADER + LAYOUT + Self::count(layout, chunks) * one
    }

    /// The matrix as it travels.
    pub(crate) fn to_bytes(&self, params: &Params) -> Vec<u8> {
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
    pub(crate) fn from_bytes(
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
                    c0: Poly::from_data(params.basis(), c0),
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
    pub(crate) fn wire_len(params: &Params, layout: &Layout, chunks: &Chunks) -> usize {
        let count = EncryptedMatrix::count(layout, chunks);
        HEADER + LAYOUT + count * 2 * ANSWER_LIMBS * limb_bytes(params)
    }

    /// The answer as it travels.
    pub(crate) fn to_bytes(&self, params: &Params) -> Vec<u8> {
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
    pub(crate) fn from_bytes(
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
                    Ok::<_, HeError>(Poly::from_data(params.basis(), data))
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
