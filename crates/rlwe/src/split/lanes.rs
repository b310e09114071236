//! Lanes: how many rows lie side by side in a ciphertext, and where.

use crate::params::Params;
use std::ops::Range;

/// Fewest rows side by side: what the kernel's vectors hold.
const MIN_LANES: usize = 8;
/// Most rows side by side: 16 points are left for features at degree 8192.
const MAX_LANES: usize = 512;

/// Rows of a matrix as powers of `X`: `T` of them in one ciphertext, `F` powers of `Y` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    rows: usize,
    lanes: usize,
    points: usize,
}

impl Lanes {
    /// Chooses as many lanes as a matrix has rows, within the bounds.
    pub(crate) fn new(params: &Params, rows: usize) -> Self {
        let lanes = rows.next_power_of_two().clamp(MIN_LANES, MAX_LANES);
        Self {
            rows,
            lanes,
            points: params.degree() / lanes,
        }
    }

    /// Counts the rows of the matrix.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns `T`, rows of one ciphertext.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns `F`, powers of `Y`.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// Tells how often all ciphertexts are repeated because there are more rows than lanes.
    pub(crate) fn runs(&self) -> usize {
        self.rows.div_ceil(self.lanes)
    }

    /// Returns the rows of one run.
    pub(crate) fn of_run(&self, run: usize) -> Range<usize> {
        let first = run * self.lanes;
        first..(first + self.lanes).min(self.rows)
    }

    /// Returns the coefficient of `X^t·Y^i`.
    pub(crate) fn at(&self, t: usize, i: usize) -> usize {
        t + self.lanes * i
    }

    /// Returns the coefficients of the rows of a run, power by power of `Y`.
    pub(crate) fn coefficients(&self, run: usize) -> Vec<usize> {
        let rows = self.of_run(run).len();
        let at = |i| (0..rows).map(move |t| self.at(t, i));
        (0..self.points).flat_map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_the_rows_and_lanes_the_ring() {
        let params = Params::split();
        for (rows, lanes, runs) in [(1, 8, 1), (30, 32, 1), (512, 512, 1), (513, 512, 2)] {
            let found = Lanes::new(&params, rows);
            assert_eq!((found.lanes(), found.runs()), (lanes, runs));
            assert_eq!(lanes * found.points(), 8192);
            let of_run = (0..runs).map(|run| found.of_run(run).len());
            assert_eq!(of_run.sum::<usize>(), rows);
            for run in 0..runs {
                let mut all = found.coefficients(run);
                assert!(all.iter().all(|&at| at < 8192));
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), found.of_run(run).len() * found.points());
            }
        }
    }
}
