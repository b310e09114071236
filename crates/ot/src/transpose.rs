//! Transposing a bit matrix of 128 columns: the step from an extension's columns to its rows.
//!
//! Column `c` is a string of bits; row `j` collects bit `j` of every column into a 128-bit word,
//! column 0 in the lowest bit. The work goes by tiles of 128 columns and 256 rows. The portable
//! form swaps ever smaller blocks (seven rounds); where the processor has AVX2, `transpose_avx2`
//! does the same.

use crate::transpose_avx2;
use zeroize::Zeroizing;

/// Columns of the matrix.
pub const COLUMNS: usize = 128;
/// Rows of a tile.
pub(crate) const TILE: usize = 256;
/// Bytes of a column of a tile.
pub(crate) const TILE_BYTES: usize = TILE / 8;

/// Room for a tile.
pub(crate) type Scratch = [[u8; TILE_BYTES]; COLUMNS];

/// Transposes the tile whose columns begin at `offset`, `stride` bytes apart.
pub(crate) type Tile = fn(
    columns: &[u8],
    stride: usize,
    offset: usize,
    scratch: &mut Scratch,
    rows: &mut [u128; TILE],
);

/// Turns 128 columns, `stride` bytes apart, into rows.
///
/// # Panics
/// If `stride` is not a multiple of 16, is too short for the rows, or the columns are not 128.
pub fn transpose(columns: &[u8], stride: usize, rows: &mut [u128]) {
    transpose_by(transpose_avx2::tile, columns, stride, rows);
}

fn transpose_by(tile: Tile, columns: &[u8], stride: usize, rows: &mut [u128]) {
    assert!(
        stride.is_multiple_of(16) && rows.len() <= 8 * stride,
        "columns are long enough"
    );
    assert_eq!(columns.len(), COLUMNS * stride, "there are 128 columns");
    let mut scratch = Zeroizing::new([[0; TILE_BYTES]; COLUMNS]);
    let mut chunks = rows.chunks_exact_mut(TILE);
    let mut offset = 0;
    for chunk in &mut chunks {
        let chunk = chunk.try_into().expect("whole tiles");
        tile(columns, stride, offset, &mut scratch, chunk);
        offset += TILE_BYTES;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        // A column may end before the tile does.
        let mut whole = Zeroizing::new([0; COLUMNS * TILE_BYTES]);
        let there = rest.len().div_ceil(8);
        for (to, from) in whole
            .chunks_exact_mut(TILE_BYTES)
            .zip(columns.chunks_exact(stride))
        {
            to[..there].copy_from_slice(&from[offset..offset + there]);
        }
        let mut last = Zeroizing::new([0; TILE]);
        tile(&*whole, TILE_BYTES, 0, &mut scratch, &mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Transposes one tile, as two squares: swaps the off-diagonal blocks of size 64, then of 32 within
/// each, and so on.
pub(crate) fn portable(
    columns: &[u8],
    stride: usize,
    offset: usize,
    _: &mut Scratch,
    rows: &mut [u128; TILE],
) {
    for (half, rows) in rows.chunks_exact_mut(COLUMNS).enumerate() {
        for (c, row) in rows.iter_mut().enumerate() {
            let at = c * stride + offset + 16 * half;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    fn check(tile: Tile, rows: usize) {
        let stride = rows.div_ceil(128) * 16 + 16;
        let mut columns = vec![0; COLUMNS * stride];
        Prg::new(&[rows as u8; 16]).fill(&mut columns);
        let mut out = vec![0u128; rows];
        transpose_by(tile, &columns, stride, &mut out);
        for (j, row) in out.iter().enumerate() {
            for c in 0..COLUMNS {
                let bit = columns[c * stride + j / 8] >> (j % 8) & 1;
                assert_eq!((row >> c & 1) as u8, bit, "row {j}, column {c}");
            }
        }
    }

    #[test]
    fn portable_is_the_definition() {
        for rows in [0, 1, 7, 127, 128, 129, 255, 256, 257, 300, 1024] {
            check(portable, rows);
        }
    }

    #[test]
    fn the_vector_twin_is_the_definition() {
        for rows in [0, 1, 7, 127, 128, 129, 255, 256, 257, 300, 1024] {
            check(transpose_avx2::tile, rows);
        }
    }

    #[test]
    #[should_panic(expected = "columns are long enough")]
    fn short_columns_are_our_mistake() {
        transpose(&[0; 128 * 16], 16, &mut [0; 129]);
    }
}
