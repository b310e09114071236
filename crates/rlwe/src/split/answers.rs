//! Answers one by one: cut out of a message, worked on by threads, added up in one matrix.

use crate::error::HeError;
use crate::threads;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use zeroize::Zeroize;

/// One of the answers of a product.
pub(super) struct ProductAnswer<'a> {
    pub(super) index: usize,
    pub(super) bytes: &'a [u8],
}

/// Opens all answers of a product, of `len` bytes each, divided between threads, each with an
/// opener of its own: `open` adds what an answer says to a matrix of some rows and columns.
///
/// # Errors
/// Those of `opener` and `open`.
pub(super) fn open_all<O>(
    threads: usize,
    bytes: &[u8],
    len: usize,
    (rows, cols): (usize, usize),
    opener: impl Fn() -> Result<O, HeError> + Sync,
    open: impl Fn(&mut O, ProductAnswer<'_>, &mut Matrix<u64>) -> Result<(), HeError> + Sync,
) -> Result<Matrix<u64>, HeError> {
    let answers: Vec<_> = bytes.chunks_exact(len).enumerate().collect();
    let parts = answers
        .chunks(threads::share(answers.len(), threads))
        .collect();
    let opened = threads::each(parts, |answers: &[(usize, &[u8])]| {
        let mut opener = opener()?;
        let mut out = Matrix::zeros(rows, cols);
        for &(index, bytes) in answers {
            open(&mut opener, ProductAnswer { index, bytes }, &mut out)?;
        }
        Ok::<_, HeError>(out)
    });
    let parts = opened.into_iter().collect::<Result<_, _>>()?;
    Ok(add_up(parts, (rows, cols)))
}

/// Returns the sum of matrices of one size, which are wiped.
pub(super) fn add_up(parts: Vec<Matrix<u64>>, (rows, cols): (usize, usize)) -> Matrix<u64> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_else(|| Matrix::zeros(rows, cols));
    for mut part in parts {
        for (x, &y) in all.data_mut().iter_mut().zip(part.data()) {
            *x = modulus::add(*x, y);
        }
        part.data_mut().zeroize();
    }
    all
}
