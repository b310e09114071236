//! Ciphertexts on their way into the products, and sums on their way out.

use super::layout;
use super::{PANEL, Points};
use crate::kernel::aligned::Aligned;
use crate::prime::Prime;
use crate::simd::Simd;

/// One limb of some ciphertexts as matrices over points.
pub struct PointTerms {
    prime: Prime,
    points: Points,
    terms: usize,
    /// `[point][panel][term][column of the panel]`: balanced.
    data: Aligned,
}

impl PointTerms {
    /// Terms that are all zero.
    ///
    /// # Panics
    /// If there are none.
    pub fn zeros(prime: Prime, points: Points, terms: usize) -> Self {
        assert!(terms > 0, "a product has terms");
        Self {
            prime,
            points,
            terms,
            data: Aligned::zeros(2 * points.degree() * terms),
        }
    }

    /// Uses the buffer for other terms, possibly of another prime. Each of them is to be put:
    /// until then it is whatever the buffer held.
    ///
    /// # Panics
    /// If there are no terms.
    pub fn reuse(&mut self, prime: Prime, points: Points, terms: usize) {
        assert!(terms > 0, "a product has terms");
        (self.prime, self.points, self.terms) = (prime, points, terms);
        self.data.sized(2 * points.degree() * terms);
    }

    /// Puts one half of a ciphertext: its values in transform order, reduced.
    ///
    /// # Panics
    /// If there is no such term or half, or if it is not one polynomial.
    pub fn put(&mut self, simd: Simd, term: usize, half: usize, values: &[u32]) {
        let (points, terms, prime) = (self.points, self.terms, self.prime);
        assert!(term < terms && half < 2 && values.len() == points.degree());
        debug_assert!(values.iter().all(|v| *v < prime.value()));
        let data = self.data.sized(2 * points.degree() * terms);
        let (run, panel) = (points.run(), PANEL * terms);
        if run < PANEL {
            // Both halves share a panel.
            let first = term * PANEL + half * run;
            layout::scatter(simd, prime, &mut data[first..], values, run, panel);
        } else {
            let per_half = run / PANEL * panel;
            for (f, values) in values.chunks_exact(run).enumerate() {
                let first = (2 * f + half) * per_half + term * PANEL;
                layout::scatter(simd, prime, &mut data[first..], values, PANEL, panel);
            }
        }
    }

    /// Number of terms.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// The limb's prime.
    pub fn prime(&self) -> Prime {
        self.prime
    }

    /// The points.
    pub fn points(&self) -> Points {
        self.points
    }

    /// The matrix of one point.
    pub(super) fn at(&self, point: usize) -> &[u32] {
        let len = self.points.columns() * self.terms;
        &self.data.get(self.points.count() * len)[point * len..][..len]
    }
}

/// One limb of the results. They say something about the weights, so they are wiped when dropped.
pub struct PointSums {
    points: Points,
    rows: usize,
    /// `[point][row][column]`: reduced.
    data: Aligned,
}

impl PointSums {
    /// Sums that are all zero.
    pub fn zeros(points: Points, rows: usize) -> Self {
        Self {
            points,
            rows,
            data: Aligned::zeros(2 * points.degree() * rows),
        }
    }

    /// Uses the buffer for other sums, which are unspecified until a product has overwritten them.
    pub fn reuse(&mut self, points: Points, rows: usize) {
        (self.points, self.rows) = (points, rows);
        self.data.sized(2 * points.degree() * rows);
    }

    /// Takes one half of a row's ciphertext: its values in transform order, reduced.
    ///
    /// # Panics
    /// If there is no such row or half, or if there is not room for one polynomial.
    pub fn take(&self, row: usize, half: usize, values: &mut [u32]) {
        let (points, run) = (self.points, self.points.run());
        assert!(row < self.rows && half < 2 && values.len() == points.degree());
        let stride = points.columns() * self.rows;
        let data = &self.data.get(points.count() * stride)[(2 * row + half) * run..];
        for (values, data) in values.chunks_exact_mut(run).zip(data.chunks(stride)) {
            values.copy_from_slice(&data[..run]);
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The points.
    pub fn points(&self) -> Points {
        self.points
    }

    /// The sums of one point.
    pub(super) fn at_mut(&mut self, point: usize) -> &mut [u32] {
        let len = self.points.columns() * self.rows;
        &mut self.data.sized(self.points.count() * len)[point * len..][..len]
    }
}

impl Drop for PointSums {
    fn drop(&mut self) {
        self.data.wipe();
    }
}
