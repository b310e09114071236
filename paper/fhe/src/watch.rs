//! What leaves the range of a polynomial. In the clear only: under encryption this cannot be seen.

use crate::polynomials::{Polynomial, Polynomials, Softmax, class};
use primer_model::float::Observer;
use primer_plan::graph::ValueId;
use primer_ring::matrix::Matrix;
use primer_text::Input;
use std::collections::BTreeMap;

/// What left the range of one stop's polynomials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outside {
    /// Numbers, or for a softmax sums of rows.
    pub count: usize,
    /// The one farthest beyond its limit.
    pub worst: f64,
    /// The end of its interval.
    pub limit: f64,
}

/// Watches one inference with polynomials.
pub struct Watch<'a> {
    polynomials: &'a Polynomials,
    tokens: usize,
    length: usize,
    /// By the index of the value that a stop reads.
    pub found: BTreeMap<usize, Outside>,
}

impl<'a> Watch<'a> {
    /// Watches the inference of an input.
    pub fn new(polynomials: &'a Polynomials, input: &Input) -> Self {
        Self {
            polynomials,
            tokens: input.tokens(),
            length: input.length,
            found: BTreeMap::new(),
        }
    }

    fn check(&mut self, id: ValueId, x: f64, low: f64, high: f64) {
        // Also true for NaN.
        if !(x >= low && x <= high) {
            let limit = if x < low { low } else { high };
            let first = Outside {
                count: 0,
                worst: limit,
                limit,
            };
            let outside = self.found.entry(id.index()).or_insert(first);
            outside.count += 1;
            if (x - limit).abs() > (outside.worst - outside.limit).abs() {
                (outside.worst, outside.limit) = (x, limit);
            }
        }
    }
}

impl Observer for Watch<'_> {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        let polynomials = self.polynomials;
        match &polynomials.by_value[id.index()] {
            None => {}
            Some(Polynomial::Plain(both)) => {
                for r in 0..value.rows() {
                    let (low, high) = both[class(r)].interval();
                    for &x in value.row(r) {
                        self.check(id, x.into(), low, high);
                    }
                }
            }
            Some(Polynomial::Softmax(softmax)) => {
                for r in 0..value.rows() {
                    let head = &softmax.heads[class(r % self.tokens)][r / self.tokens];
                    let mut row = value.row(r).to_vec();
                    let sum =
                        Softmax::exponentials(head.shift, softmax.squarings, &mut row, self.length);
                    // Sums below the range only fade.
                    self.check(id, sum, 0.0, head.reciprocal.interval().1);
                }
            }
        }
    }
}
