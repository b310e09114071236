//! Arithmetic on a party's shares: matrices of residues modulo p.

use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use rand_core::CryptoRng;

/// A party's share of a value.
pub(crate) type Share = Matrix<u64>;

/// Uniform residues.
pub(crate) fn random(rows: usize, cols: usize, rng: &mut impl CryptoRng) -> Share {
    Matrix::from_fn(rows, cols, |_, _| modulus::random(rng))
}

/// `a += b`.
pub(crate) fn add_assign(a: &mut Share, b: &Share) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    a.data_mut()
        .iter_mut()
        .zip(b.data())
        .for_each(|(a, b)| *a = modulus::add(*a, *b));
}

/// `a -= b`.
pub(crate) fn sub_assign(a: &mut Share, b: &Share) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    a.data_mut()
        .iter_mut()
        .zip(b.data())
        .for_each(|(a, b)| *a = modulus::sub(*a, *b));
}

/// `a - b`.
pub(crate) fn sub(a: &Share, b: &Share) -> Share {
    let mut out = a.clone();
    sub_assign(&mut out, b);
    out
}

/// `a *= 2^by`.
pub(crate) fn shift(a: &mut Share, by: u32) {
    let factor = power(by);
    a.data_mut()
        .iter_mut()
        .for_each(|a| *a = modulus::mul(*a, factor));
}

/// `2^by mod p`; checked plans shift by at most `K`.
pub(crate) fn power(by: u32) -> u64 {
    debug_assert!(by <= K);
    (1u64 << by) % P
}

/// The first rows of a share.
pub(crate) fn first_rows(share: &Share, rows: usize) -> Share {
    Matrix::from_vec(
        rows,
        share.cols(),
        share.data()[..rows * share.cols()].to_vec(),
    )
}

/// Columns `block·width ..` of a share.
pub(crate) fn block(share: &Share, block: usize, width: usize) -> Share {
    share.columns(block * width, width)
}

/// Rows `block·height ..` of a share.
pub(crate) fn row_block(share: &Share, block: usize, height: usize) -> Share {
    let size = height * share.cols();
    Matrix::from_vec(
        height,
        share.cols(),
        share.data()[block * size..][..size].to_vec(),
    )
}

/// Puts blocks of rows on top of each other.
pub(crate) fn stack(blocks: impl IntoIterator<Item = Share>, cols: usize) -> Share {
    let data: Vec<u64> = blocks.into_iter().flat_map(Share::into_data).collect();
    Matrix::from_vec(data.len() / cols, cols, data)
}

/// Puts blocks of columns side by side.
pub(crate) fn beside(blocks: &[Share]) -> Share {
    let (rows, width) = (blocks[0].rows(), blocks[0].cols());
    Matrix::from_fn(rows, width * blocks.len(), |r, c| {
        blocks[c / width].get(r, c % width)
    })
}
