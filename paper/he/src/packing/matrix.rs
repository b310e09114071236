//! Encrypted matrices: what the client sends, and what it gets back.

use crate::answer::AnswerCiphertext;
use crate::ciphertext::encrypt_slots;
use crate::error::HeError;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::params::Params;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_rlwe::ciphertext::SeededCiphertext;
use primer_rlwe::error::agree;
use primer_rlwe::keys::SecretKey;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A matrix of residues modulo p, one row per token, encrypted by the client.
pub(crate) struct EncryptedMatrix {
    pub(crate) layout: Layout,
    pub(crate) chunks: Chunks,
    /// For each run of the layout, one ciphertext for each chunk.
    pub(crate) ciphertexts: Vec<SeededCiphertext>,
}

impl EncryptedMatrix {
    /// Encrypts a matrix whose columns are cut as `chunks` says.
    ///
    /// # Errors
    /// If the matrix does not have the layout's tokens or the chunks' columns.
    pub(crate) fn encrypt(
        secret: &SecretKey,
        layout: &Layout,
        chunks: &Chunks,
        matrix: &Matrix<u64>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, HeError> {
        agree(
            "tokens of layout and matrix",
            layout.tokens(),
            matrix.rows(),
        )?;
        agree(
            "columns of chunks and matrix",
            chunks.total(),
            matrix.cols(),
        )?;
        let mut slots = Zeroizing::new(vec![0; secret.params().degree()]);
        let mut ciphertexts = Vec::with_capacity(Self::count(layout, chunks));
        for run in 0..layout.runs() {
            for chunk in 0..chunks.len() {
                let columns = chunks.columns(chunk);
                slots.fill(0);
                for token in layout.tokens_of_run(run) {
                    let values = &matrix.row(token)[columns.clone()];
                    for at in copies(layout, token) {
                        slots[at..at + values.len()].copy_from_slice(values);
                    }
                }
                ciphertexts.push(encrypt_slots(secret, &slots, rng));
            }
        }
        Ok(Self {
            layout: *layout,
            chunks: chunks.clone(),
            ciphertexts,
        })
    }

    /// Counts the ciphertexts of a matrix.
    pub(crate) fn count(layout: &Layout, chunks: &Chunks) -> usize {
        layout.runs() * chunks.len()
    }
}

/// Ciphertexts, and where the entries of a matrix lie in them: what products read.
#[derive(Clone, Copy)]
pub(crate) struct Ciphertexts<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) chunks: &'a Chunks,
    /// For each run of the layout, one for each chunk.
    pub(crate) list: &'a [SeededCiphertext],
}

impl<'a> From<&'a EncryptedMatrix> for Ciphertexts<'a> {
    fn from(matrix: &'a EncryptedMatrix) -> Self {
        Self {
            layout: &matrix.layout,
            chunks: &matrix.chunks,
            list: &matrix.ciphertexts,
        }
    }
}

/// Returns the first slots of all cells that hold a token.
fn copies(layout: &Layout, token: usize) -> impl Iterator<Item = usize> + use<> {
    use crate::packing::layout::Packing;
    let (count, start, period) = match layout.packing() {
        Packing::TokensFirst => (1, layout.cell(token), layout.period()),
        Packing::FeaturesFirst => (layout.cells(), 0, layout.period()),
    };
    (0..count).map(move |i| start + i * period)
}

/// The server's answer to a product.
pub(crate) struct EncryptedAnswer {
    pub(crate) layout: Layout,
    pub(crate) chunks: Chunks,
    pub(crate) answers: Vec<AnswerCiphertext>,
}

impl EncryptedAnswer {
    /// Decrypts to a matrix of residues modulo p.
    ///
    /// # Errors
    /// If noise exceeds its bound: wrong key or damaged data.
    pub(crate) fn decrypt(&self, secret: &SecretKey) -> Result<Matrix<u64>, HeError> {
        let mut out = Matrix::zeros(self.layout.tokens(), self.chunks.total());
        for (index, answer) in self.answers.iter().enumerate() {
            let slots = answer.decrypt_slots(secret, index)?;
            let columns = self.chunks.columns(index % self.chunks.len());
            for token in self.layout.tokens_of_run(index / self.chunks.len()) {
                let at = self.layout.cell(token);
                out.row_mut(token)[columns.clone()].copy_from_slice(&slots[at..at + columns.len()]);
            }
        }
        Ok(out)
    }
}

/// Draws the mask of one answer ciphertext, by coefficients: uniform in every slot but those of the
/// result, which get the caller's mask, or nothing.
pub(crate) fn mask(
    params: &Params,
    layout: &Layout,
    chunks: &Chunks,
    index: usize,
    values: Option<&Matrix<u64>>,
    rng: &mut impl CryptoRng,
) -> Zeroizing<Vec<u64>> {
    let mut slots = Zeroizing::new(vec![0; params.degree()]);
    for slot in slots.iter_mut() {
        *slot = modulus::random(rng);
    }
    let columns = chunks.columns(index % chunks.len());
    for token in layout.tokens_of_run(index / chunks.len()) {
        let at = layout.cell(token);
        let cell = &mut slots[at..at + columns.len()];
        match values {
            Some(values) => cell.copy_from_slice(&values.row(token)[columns.clone()]),
            None => cell.fill(0),
        }
    }
    let mut plain = Zeroizing::new(vec![0; params.degree()]);
    params.slots().encode(&slots, &mut plain);
    plain
}
