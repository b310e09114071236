//! Ciphertexts on their way into the products, and sums on their way out.

use super::layout;
use super::{PANEL, Panels, Points, Rows, TOGETHER};
use crate::kernel::aligned::Aligned;
use crate::prime::Prime;
use crate::simd::Simd;

/// Numbers between two rows of sums: an odd number of lines, more than a page. With rows a power of
/// two apart, or nearly, the lines of a panel's sums would contend for the same place in a cache.
const GAP: usize = 81 * PANEL;

/// One limb of some ciphertexts as matrices over points.
pub struct PointTerms {
    prime: Prime,
    points: Points,
    terms: usize,
    /// `[eight terms][point][panel][term][column of the panel]`, and a few lines after all panels
    /// of eight terms: balanced.
    data: Aligned,
}

impl PointTerms {
    /// Makes terms that are all zero.
    ///
    /// # Panics
    /// If there are none.
    pub fn zeros(prime: Prime, points: Points, terms: usize) -> Self {
        let mut made = Self {
            prime,
            points,
            terms,
            data: Aligned::default(),
        };
        made.reuse(prime, points, terms);
        made
    }

    /// Uses the buffer for other terms, possibly of another prime. Each of them has to be put:
    /// until then it is unspecified.
    ///
    /// # Panics
    /// If there are no terms.
    pub fn reuse(&mut self, prime: Prime, points: Points, terms: usize) {
        assert!(terms > 0, "a product has terms");
        (self.prime, self.points, self.terms) = (prime, points, terms);
        self.data.sized(self.len());
    }

    /// Returns the distance from eight terms to the next: a few lines more than a power of two, so
    /// that panels of the same point do not contend for the same place in a cache.
    fn stride(&self) -> usize {
        TOGETHER * (2 * self.points.degree() + PANEL)
    }

    fn len(&self) -> usize {
        self.terms.div_ceil(TOGETHER) * self.stride()
    }

    /// Returns the places of all terms, eight at a time, in order.
    pub fn slots(&mut self) -> impl Iterator<Item = TermSlots<'_>> {
        let (prime, points, stride, len) = (self.prime, self.points, self.stride(), self.len());
        let all = self.data.sized(len).chunks_exact_mut(stride);
        all.map(move |data| TermSlots {
            prime,
            points,
            data,
        })
    }

    /// Returns the number of terms.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Returns the limb's prime.
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// Returns the points.
    pub fn points(&self) -> Points {
        self.points
    }

    /// Returns the panels of one point.
    pub(super) fn panels(&self, point: usize) -> Panels<'_> {
        let first = TOGETHER * point * self.points.columns();
        Panels {
            data: &self.data.get(self.len())[first..],
            stride: self.stride(),
        }
    }
}

/// Where up to eight terms belong.
pub struct TermSlots<'a> {
    prime: Prime,
    points: Points,
    data: &'a mut [u32],
}

impl TermSlots<'_> {
    /// Puts terms: both halves of each, by values in transform order, reduced.
    ///
    /// # Panics
    /// If there are more than eight, or if a half is not one polynomial.
    pub fn put(&mut self, simd: Simd, terms: &[[&[u32]; 2]]) {
        let (prime, points) = (self.prime, self.points);
        assert!(terms.len() <= TOGETHER, "eight terms lie together");
        let mut polynomials = terms.as_flattened().iter();
        assert!(polynomials.all(|half| half.len() == points.degree()));
        for point in 0..points.count() {
            for column in (0..points.columns()).step_by(PANEL) {
                let first = TOGETHER * (point * points.columns() + column);
                let panel = &mut self.data[first..][..TOGETHER * PANEL];
                let tiles = points.tiles(point, column);
                layout::gather(simd, prime, panel, terms, tiles);
            }
        }
    }
}

/// One limb of the results. They reveal something about the weights, so they are wiped when
/// dropped.
pub struct PointSums {
    points: Points,
    rows: usize,
    /// `[row][half][value]`, and a gap after each row: reduced.
    data: Aligned,
}

impl PointSums {
    /// Makes sums that are all zero.
    pub fn zeros(points: Points, rows: usize) -> Self {
        let mut sums = Self {
            points,
            rows,
            data: Aligned::default(),
        };
        sums.reuse(points, rows);
        sums
    }

    /// Uses the buffer for other sums, which are unspecified until a product has overwritten them.
    pub fn reuse(&mut self, points: Points, rows: usize) {
        (self.points, self.rows) = (points, rows);
        self.data.sized(rows * self.stride());
    }

    fn stride(&self) -> usize {
        2 * self.points.degree() + GAP
    }

    /// Returns one half of a row's ciphertext: its values in transform order, reduced.
    ///
    /// # Panics
    /// If there is no such row or half.
    pub fn values(&self, row: usize, half: usize) -> &[u32] {
        assert!(row < self.rows && half < 2);
        let n = self.points.degree();
        &self.data.get(self.rows * self.stride())[row * self.stride() + half * n..][..n]
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the points.
    pub fn points(&self) -> Points {
        self.points
    }

    /// Returns all rows.
    pub(super) fn all(&mut self) -> Rows<'_> {
        let stride = self.stride();
        Rows {
            data: self.data.sized(self.rows * stride),
            stride,
        }
    }
}

impl Drop for PointSums {
    fn drop(&mut self) {
        self.data.wipe();
    }
}
