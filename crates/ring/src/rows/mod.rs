//! Sums of the rows that public bits select of a matrix of short integers.
//!
//! ```text
//! sum      Σ_i bit_i · row_i
//! ```
//!
//! for many strings of bits and one matrix: a product without a multiplication, for which half of
//! the rows are read on average. The bits are public, so they are branched on.
//!
//! **Order.** A block of `BLOCK` rows stays in the second-level cache while every string passes it;
//! the rows that a string selects there are added up four at a time before they reach its sums.
//! Sums have 32 bits, which `DRAIN` rows cannot overflow, and then join sums of 64.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::matrix::Matrix;

/// Rows of a block: as many as a word has bits.
const BLOCK: usize = 64;
/// Rows whose sums fit 32 bits.
const DRAIN: usize = 1 << 16;
const _: () = assert!(DRAIN as i64 * i16::MIN as i64 >= i32::MIN as i64);
const _: () = assert!(DRAIN.is_multiple_of(BLOCK));

/// The form of the inner loop that runs. Only detection makes the vector form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    fn add(self, rows: &[&[i16]], sums: &mut [i32]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::add(rows, sums),
            Self::Portable => add(rows, sums),
        }
    }
}

/// Returns a row of sums for each string. A string has `bytes` bytes; the lowest bit of its first
/// byte selects the first row. Only the first `rows` rows of the matrix are selected from, and
/// further bits are ignored.
///
/// # Panics
/// If a string is too short for `rows` rows, the matrix has fewer, or the strings are not whole.
pub fn selected(matrix: &Matrix<i16>, rows: usize, strings: &[u8], bytes: usize) -> Matrix<i64> {
    run(Kernel::detect(), matrix, rows, strings, bytes)
}

fn run(
    kernel: Kernel,
    matrix: &Matrix<i16>,
    rows: usize,
    strings: &[u8],
    bytes: usize,
) -> Matrix<i64> {
    assert!(rows <= matrix.rows() && rows.div_ceil(8) <= bytes);
    assert!(strings.len().is_multiple_of(bytes.max(1)));
    let (count, cols) = (strings.len() / bytes.max(1), matrix.cols());
    let mut wide = Matrix::<i64>::zeros(count, cols);
    let mut sums = vec![0i32; count * cols];
    for drained in (0..rows).step_by(DRAIN) {
        for first in (drained..rows.min(drained + DRAIN)).step_by(BLOCK) {
            let there = BLOCK.min(rows - first);
            for (t, string) in strings.chunks_exact(bytes.max(1)).enumerate() {
                let mut chosen: [&[i16]; BLOCK] = [&[]; BLOCK];
                let mut left = word(string, first) & (u64::MAX >> (BLOCK - there));
                let mut number = 0;
                while left != 0 {
                    chosen[number] = matrix.row(first + left.trailing_zeros() as usize);
                    left &= left - 1;
                    number += 1;
                }
                kernel.add(&chosen[..number], &mut sums[t * cols..][..cols]);
            }
        }
        for (wide, sum) in wide.data_mut().iter_mut().zip(&mut sums) {
            *wide += i64::from(std::mem::take(sum));
        }
    }
    wide
}

/// Returns the bits of a block that begins with row `first`.
fn word(string: &[u8], first: usize) -> u64 {
    let mut bytes = [0; 8];
    let from = &string[first / 8..];
    let there = from.len().min(8);
    bytes[..there].copy_from_slice(&from[..there]);
    u64::from_le_bytes(bytes)
}

/// Adds rows to sums. Nothing wraps ([`DRAIN`]), but the additions are wrapping ones, because
/// checks would keep the loops from becoming vectors.
#[inline(always)]
fn add(rows: &[&[i16]], sums: &mut [i32]) {
    let (fours, rest) = rows.as_chunks();
    for [a, b, c, d] in fours {
        let (a, b) = (&a[..sums.len()], &b[..sums.len()]);
        let (c, d) = (&c[..sums.len()], &d[..sums.len()]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let (ab, cd) = (
                i32::from(a[i]).wrapping_add(b[i].into()),
                i32::from(c[i]).wrapping_add(d[i].into()),
            );
            *sum = sum.wrapping_add(ab.wrapping_add(cd));
        }
    }
    for row in rest {
        for (sum, x) in sums.iter_mut().zip(*row) {
            *sum = sum.wrapping_add(i32::from(*x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prg::Prg;
    use rand_core::Rng;

    fn expected(matrix: &Matrix<i16>, rows: usize, strings: &[u8], bytes: usize) -> Vec<i64> {
        let strings = strings.chunks_exact(bytes);
        let sums = strings.flat_map(|string| {
            (0..matrix.cols()).map(|c| {
                let bit = |i: usize| i64::from(string[i / 8] >> (i % 8) & 1);
                (0..rows)
                    .map(|i| bit(i) * i64::from(matrix.get(i, c)))
                    .sum()
            })
        });
        sums.collect()
    }

    fn kernels() -> Vec<Kernel> {
        let mut kernels = vec![Kernel::Portable, Kernel::detect()];
        kernels.dedup();
        kernels
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        let mut prg = Prg::new(&[4; 16]);
        for (rows, all, cols, count) in [
            (1, 1, 1, 1),
            (7, 9, 3, 2),
            (64, 64, 16, 3),
            (65, 80, 17, 1),
            (1000, 1003, 33, 5),
        ] {
            let matrix = Matrix::from_fn(all, cols, |_, _| prg.next_u32() as i16);
            // Bits behind the last row exist, and are set at times.
            let bytes = all.div_ceil(8) + 1;
            let mut strings = vec![0; count * bytes];
            prg.fill(&mut strings);
            let want = expected(&matrix, rows, &strings, bytes);
            for kernel in kernels() {
                let found = run(kernel, &matrix, rows, &strings, bytes);
                assert_eq!(found.data(), want, "{kernel:?} {rows}");
            }
        }
    }

    /// Checks the largest possible sums, over more rows than 32 bits hold.
    #[test]
    fn sums_of_many_rows_do_not_wrap() {
        let rows = 2 * DRAIN + 100;
        let matrix = Matrix::from_fn(rows, 2, |_, c| [i16::MIN, i16::MAX][c]);
        let strings = vec![0xff; rows.div_ceil(8)];
        for kernel in kernels() {
            let found = run(kernel, &matrix, rows, &strings, strings.len());
            let rows = rows as i64;
            let want = [rows * i64::from(i16::MIN), rows * i64::from(i16::MAX)];
            assert_eq!(found.data(), want);
        }
    }
}
