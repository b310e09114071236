//! Dense floating-point products on one thread: the `gemm` crate behind safe functions.
//!
//! This is the only place that calls it. The float reference multiplies in single precision, the
//! exact integer products of [`crate::matrix`] in double precision.
#![allow(unsafe_code)] // Raw strides of the `gemm` crate; every call checks them against slices.

use ::gemm::Parallelism;

/// Where the elements of a matrix lie in its slice.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl Layout {
    /// Returns the layout of rows laid end to end.
    pub const fn rows(rows: usize, cols: usize) -> Self {
        Self {
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// Returns the layout of some columns of a wider matrix whose rows have `row_stride` elements.
    pub const fn columns_of(rows: usize, cols: usize, row_stride: usize) -> Self {
        Self {
            rows,
            cols,
            row_stride,
            col_stride: 1,
        }
    }

    /// Returns the layout that reads the same elements with rows and columns exchanged.
    pub const fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Returns the number of elements that a slice must have for every index to be inside it.
    const fn span(self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }
}

macro_rules! product {
    ($name:ident, $into:ident, $scalar:ty) => {
        /// Computes `out = left · right`, with `out` in rows.
        ///
        /// # Panics
        /// If the inner dimensions differ or a slice is too short for its layout.
        pub fn $name(
            left: &[$scalar],
            left_at: Layout,
            right: &[$scalar],
            right_at: Layout,
            out: &mut [$scalar],
        ) {
            $into(
                left,
                left_at,
                right,
                right_at,
                out,
                Layout::rows(left_at.rows, right_at.cols),
            );
        }

        /// Computes `out = left · right`, with `out` laid out as `out_at` says.
        ///
        /// # Panics
        /// If the dimensions disagree or a slice is too short for its layout.
        pub fn $into(
            left: &[$scalar],
            left_at: Layout,
            right: &[$scalar],
            right_at: Layout,
            out: &mut [$scalar],
            out_at: Layout,
        ) {
            assert_eq!(
                left_at.cols, right_at.rows,
                "inner dimensions of a product agree"
            );
            assert_eq!((left_at.rows, right_at.cols), (out_at.rows, out_at.cols));
            assert!(
                left.len() >= left_at.span(),
                "the left operand fills its layout"
            );
            assert!(
                right.len() >= right_at.span(),
                "the right operand fills its layout"
            );
            assert!(out.len() >= out_at.span(), "the result fills its layout");
            // SAFETY: every index that the strides reach is inside its slice (`span`), and `out` is
            // borrowed mutably, so it overlaps neither operand.
            unsafe {
                ::gemm::gemm(
                    left_at.rows,
                    right_at.cols,
                    left_at.cols,
                    out.as_mut_ptr(),
                    out_at.col_stride as isize,
                    out_at.row_stride as isize,
                    false,
                    left.as_ptr(),
                    left_at.col_stride as isize,
                    left_at.row_stride as isize,
                    right.as_ptr(),
                    right_at.col_stride as isize,
                    right_at.row_stride as isize,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        }
    };
}

product!(f32, f32_into, f32);
product!(f64, f64_into, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_and_strided() {
        // left is 2x3, right is given as its transpose (4x3), the result goes into columns 1..5.
        let left = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let right_t: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let mut out = [0.0; 12];
        let into = Layout::columns_of(2, 4, 6);
        f32_into(
            &left,
            Layout::rows(2, 3),
            &right_t,
            Layout::rows(4, 3).transposed(),
            &mut out[1..],
            into,
        );
        assert_eq!(
            out,
            [
                0.0, 8.0, 26.0, 44.0, 62.0, 0.0, 0.0, 17.0, 62.0, 107.0, 152.0, 0.0
            ]
        );
    }

    #[test]
    #[should_panic(expected = "fills its layout")]
    fn short_slices_are_refused() {
        f64(
            &[1.0; 5],
            Layout::rows(2, 3),
            &[1.0; 6],
            Layout::rows(3, 2),
            &mut [0.0; 4],
        );
    }
}
