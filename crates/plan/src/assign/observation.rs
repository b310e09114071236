//! What calibration saw of values and weights.

use crate::graph::ValueId;
use std::collections::HashMap;

/// The range of one value over the calibration text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Smallest element.
    pub min: f64,
    /// Largest element.
    pub max: f64,
    /// Smallest maximum of a row.
    pub min_row_max: f64,
}

impl Observation {
    /// Nothing seen yet.
    pub const EMPTY: Self = Self {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        min_row_max: f64::INFINITY,
    };

    /// Takes in one row.
    pub fn record(&mut self, row: impl IntoIterator<Item = f64>) {
        let max = self.widen(row);
        self.min_row_max = self.min_row_max.min(max);
    }

    /// Takes in a row whose maximum does not count, and returns that maximum.
    ///
    /// Comparisons skip what is not a number, so anything that is not finite widens the range to
    /// infinity, and [`super::assign`] refuses it.
    pub fn widen(&mut self, row: impl IntoIterator<Item = f64>) -> f64 {
        let mut max = f64::NEG_INFINITY;
        for v in row {
            if v.is_finite() {
                self.min = self.min.min(v);
                max = max.max(v);
            } else {
                (self.min, max) = (f64::NEG_INFINITY, f64::INFINITY);
            }
        }
        self.max = self.max.max(max);
        max
    }

    pub(super) fn max_abs(&self) -> f64 {
        self.max.abs().max(self.min.abs())
    }
}

/// What calibration saw of all values.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    /// One for each value of the graph.
    pub values: Vec<Observation>,
    /// For scores, one for each head in addition; for other values, or if heads were not told
    /// apart, none. Maxima are those of all rows, including padded queries, over keys that are not
    /// padding.
    pub by_head: Vec<Vec<Observation>>,
    /// For values whose columns are sorted, their ranges; where there is no entry, all columns have
    /// the range of the value.
    pub columns: Columns,
}

impl Observations {
    /// Collects what was seen of values whose heads and columns were not told apart.
    pub fn of(values: Vec<Observation>) -> Self {
        Self {
            by_head: values.iter().map(|_| Vec::new()).collect(),
            values,
            columns: Columns::new(),
        }
    }
}

/// The largest absolute element of every column of some values, over the calibration text.
pub type Columns = HashMap<ValueId, Vec<f64>>;

/// How large one weight is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightRange {
    /// The largest absolute element of a dense matrix, or of the gains of a diagonal one.
    pub max_abs: f64,
    /// The largest absolute mean of a diagonal one.
    pub mean_max_abs: f64,
    /// The root of the mean squared length of the columns of the matrix that it stands for.
    pub column: f64,
    /// The largest singular value of a table of embeddings; zero for other weights.
    pub norm: f64,
}
