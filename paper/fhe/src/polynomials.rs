//! Polynomials in the place of a model's non-linear functions.
//!
//! Homomorphic encryption adds and multiplies; everything else has to become a polynomial of low
//! degree on the range that a calibration text shows. A set of [`Polynomials`] belongs to one model
//! and has one for every stop:
//!
//! * **Softmax.** There is no maximum to take off, only a constant of each head. Then
//!   `exp(x) ≈ (1 + x/2^r)^(2^r)` by `r` squarings, and the reciprocal of the row's sum by a
//!   polynomial of each head on the range of sums that was seen. Sums below that range give
//!   probabilities that are too small in all: the row fades. Taking off the row's mean first was
//!   tried: sums vary as much as without.
//! * **Activation, reciprocal root, tangent**: one polynomial each and for each layer.
//!
//! There are two of each: for the first token and for all others. BERTs let the first token's norm
//! grow a hundred times beyond the others', which is too wide for one polynomial of low degree; the
//! position of a token is public, so telling them apart costs nothing.
//!
//! Outside its range a polynomial diverges with the power of its degree, and neither party can
//! notice. Ranges are widened by a margin for that reason, which costs precision inside.

use crate::chebyshev::{self, Chebyshev};
use primer_model::float::{Functions, StopPoint};
use primer_plan::graph::StopFunction;
use primer_ring::matrix::Matrix;

/// The degrees of the functions, which decide how many levels each takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degrees {
    /// Degree of the activation.
    pub activation: usize,
    /// Squarings of the exponential.
    pub squarings: usize,
    /// Degree of the reciprocal of a softmax row's sum.
    pub reciprocal: usize,
    /// Degree of LayerNorm's reciprocal root.
    pub root: usize,
    /// Degree of the pooler's tangent.
    pub tanh: usize,
}

impl Degrees {
    /// As low as still gives answers.
    pub const LOW: Self = Self {
        activation: 7,
        squarings: 5,
        reciprocal: 15,
        root: 3,
        tanh: 3,
    };
    /// The default: the most accurate that leaves a whole model of one layer within the largest
    /// secure ring.
    pub const MIDDLE: Self = Self {
        activation: 15,
        squarings: 6,
        reciprocal: 31,
        root: 7,
        tanh: 7,
    };
    /// Twice the degrees of the default.
    pub const HIGH: Self = Self {
        activation: 31,
        squarings: 7,
        reciprocal: 63,
        root: 15,
        tanh: 15,
    };

    /// Returns the levels of each function: activation, softmax with its mask and division, root,
    /// tangent.
    pub fn depths(&self) -> [usize; 4] {
        [
            chebyshev::depth(self.activation),
            self.squarings + 1 + chebyshev::depth(self.reciprocal) + 1,
            chebyshev::depth(self.root),
            chebyshev::depth(self.tanh),
        ]
    }
}

/// The softmax of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    /// How often the start of the exponential is squared.
    pub squarings: usize,
    /// For the first query and for the others, each head's.
    pub heads: [Vec<HeadSoftmax>; 2],
}

/// What is the head's own.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadSoftmax {
    /// What is taken off the scores, in powers of two.
    pub shift: f64,
    /// Of the sum of a row's exponentials.
    pub reciprocal: Chebyshev,
}

/// Returns which polynomial a token gets: the first's or the others'.
pub fn class(token: usize) -> usize {
    usize::from(token > 0)
}

impl Softmax {
    /// Returns the factor of a score in the start of the exponential.
    pub fn factor(squarings: usize) -> f64 {
        std::f64::consts::LN_2 / f64::from(1u32 << squarings)
    }

    /// Computes `2^x`, approximately.
    pub fn exponential(squarings: usize, x: f64) -> f64 {
        (1.0 + x * Self::factor(squarings)).powi(1 << squarings)
    }

    /// Turns a row of scores into exponentials and returns their sum. The keys beyond `length` are
    /// padding.
    pub fn exponentials(shift: f64, squarings: usize, row: &mut [f32], length: usize) -> f64 {
        row[length..].fill(0.0);
        let mut sum = 0.0;
        for v in &mut row[..length] {
            let e = Self::exponential(squarings, f64::from(*v) - shift);
            *v = e as f32;
            sum += e;
        }
        sum
    }
}

/// The polynomials of one stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Polynomial {
    /// Of one number: for the first token and for the others.
    Plain([Chebyshev; 2]),
    /// Of a row.
    Softmax(Softmax),
}

/// The polynomials of a model, by the value that they are applied to.
pub struct Polynomials {
    pub(crate) degrees: Degrees,
    pub(crate) by_value: Vec<Option<Polynomial>>,
}

impl Polynomials {
    /// Returns the degrees that they were fitted with.
    pub fn degrees(&self) -> &Degrees {
        &self.degrees
    }

    /// Returns the polynomial of a stop, by the index of the value that it reads.
    ///
    /// # Panics
    /// If there is no such stop.
    pub fn get(&self, value: usize) -> &Polynomial {
        self.by_value[value]
            .as_ref()
            .expect("every function has a polynomial")
    }

    /// Returns the polynomial of one number at a stop.
    ///
    /// # Panics
    /// If there is no such stop, or it is a softmax.
    pub fn plain(&self, value: usize) -> &[Chebyshev; 2] {
        match self.get(value) {
            Polynomial::Plain(polynomials) => polynomials,
            Polynomial::Softmax(_) => panic!("a softmax is no function of one number"),
        }
    }

    /// Returns the softmax of a stop.
    ///
    /// # Panics
    /// If there is no such stop, or it is not a softmax.
    pub fn softmax(&self, value: usize) -> &Softmax {
        match self.get(value) {
            Polynomial::Softmax(softmax) => softmax,
            Polynomial::Plain(_) => panic!("a function of one number is no softmax"),
        }
    }
}

impl Functions for Polynomials {
    fn apply(&self, stop: &StopPoint<'_>, x: &mut Matrix<f32>) {
        let value = stop.input.index();
        match stop.function {
            StopFunction::Requantise => {}
            StopFunction::CoarseMaximum
            | StopFunction::Power
            | StopFunction::Reciprocal
            | StopFunction::Summary => unreachable!("the comparator has whole functions"),
            StopFunction::Softmax => {
                let Softmax { squarings, heads } = self.softmax(value);
                for r in 0..x.rows() {
                    let head = &heads[class(r % stop.tokens)][r / stop.tokens];
                    let row = x.row_mut(r);
                    let sum = Softmax::exponentials(head.shift, *squarings, row, stop.length);
                    let by = head.reciprocal.at(sum) as f32;
                    row.iter_mut().for_each(|v| *v *= by);
                }
            }
            StopFunction::Activation | StopFunction::InverseRoot | StopFunction::Tanh => {
                let polynomials = self.plain(value);
                for r in 0..x.rows() {
                    let polynomial = &polynomials[class(r)];
                    let f = |v: &mut f32| *v = polynomial.at(f64::from(*v)) as f32;
                    x.row_mut(r).iter_mut().for_each(f);
                }
            }
        }
    }
}
