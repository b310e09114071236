//! Transposing a bit matrix of 128 columns: the step from IKNP's columns to its rows.
//!
//! Column `c` is a string of bits; row `j` collects bit `j` of every column into a 128-bit word,
//! column 0 in the lowest bit. The work goes by squares of 128 × 128. The portable form swaps ever
//! smaller blocks (seven rounds); where the processor has AVX2, `transpose_avx2` does the same.

use crate::transpose_avx2;

/// Columns of the matrix.
pub const COLUMNS: usize = 128;

/// Transposes a square.
pub(crate) type Square =
    fn(columns: &[u8], stride: usize, offset: usize, rows: &mut [u128; COLUMNS]);

/// Turns 128 columns, `stride` bytes apart, into rows.
///
/// # Panics
/// If `stride` is not a multiple of 16, is too short for the rows, or the columns are not 128.
pub fn transpose(columns: &[u8], stride: usize, rows: &mut [u128]) {
    transpose_by(transpose_avx2::square, columns, stride, rows);
}

fn transpose_by(square: Square, columns: &[u8], stride: usize, rows: &mut [u128]) {
    assert!(
        stride.is_multiple_of(16) && rows.len() <= 8 * stride,
        "columns are long enough"
    );
    assert_eq!(columns.len(), COLUMNS * stride, "there are 128 columns");
    let mut chunks = rows.chunks_exact_mut(COLUMNS);
    let mut offset = 0;
    for chunk in &mut chunks {
        let chunk = chunk.try_into().expect("whole squares");
        square(columns, stride, offset, chunk);
        offset += COLUMNS / 8;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let mut last = zeroize::Zeroizing::new([0; COLUMNS]);
        square(columns, stride, offset, &mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// One square: swap the off-diagonal blocks of size 64, then of 32 within each, and so on.
pub(crate) fn portable(columns: &[u8], stride: usize, offset: usize, rows: &mut [u128; COLUMNS]) {
    for (c, row) in rows.iter_mut().enumerate() {
        let at = c * stride + offset;
        *row = u128::from_le_bytes(columns[at..at + 16].try_into().expect("sixteen bytes"));
    }
    let mut size = COLUMNS / 2;
    let mut mask = u128::MAX >> 64;
    while size > 0 {
        for i in (0..COLUMNS).filter(|i| i & size == 0) {
            let swap = ((rows[i] >> size) ^ rows[i + size]) & mask;
            rows[i] ^= swap << size;
            rows[i + size] ^= swap;
        }
        size /= 2;
        mask ^= mask << size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    fn check(square: Square, rows: usize) {
        let stride = rows.div_ceil(128) * 16 + 16;
        let mut columns = vec![0; COLUMNS * stride];
        Prg::new(&[rows as u8; 16]).fill(&mut columns);
        let mut out = vec![0u128; rows];
        transpose_by(square, &columns, stride, &mut out);
        for (j, row) in out.iter().enumerate() {
            for c in 0..COLUMNS {
                let bit = columns[c * stride + j / 8] >> (j % 8) & 1;
                assert_eq!((row >> c & 1) as u8, bit, "row {j}, column {c}");
            }
        }
    }

    #[test]
    fn portable_is_the_definition() {
        for rows in [0, 1, 7, 127, 128, 129, 300, 1024] {
            check(portable, rows);
        }
    }

    #[test]
    fn the_vector_twin_is_the_definition() {
        for rows in [0, 1, 7, 127, 128, 129, 300, 1024] {
            check(transpose_avx2::square, rows);
        }
    }

    #[test]
    #[should_panic(expected = "columns are long enough")]
    fn short_columns_are_our_mistake() {
        transpose(&[0; 128 * 16], 16, &mut [0; 129]);
    }
}
